"""Clients of kafka-python, and its errors as ours."""

from collections.abc import Callable
from typing import Any

from kafka.errors import (
    KafkaError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    RetriableError,
    UnknownTopicOrPartitionError,
)
from kafka.net.compat import KafkaNetClient

from bettong.endpoints import servers
from bettong.errors import LogError, LogUnavailableError

CONNECT_WAIT_MS_MAX = 10_000

# A broker that answers nothing for this long is given up and connected to again. Below the time that people wait.
REQUEST_WAIT_MS_MAX = 5_000

# kafka-python waits up to 30 s between two attempts to connect; a broker restarts in 4 s.
_RECONNECT_WAIT_MS_MAX = 500


def connect(
    kind: Callable[..., Any], bootstrap: str, *, wait_ms_max: int = CONNECT_WAIT_MS_MAX, **options: object
) -> tuple[Any, KafkaNetClient]:
    """A connected client of `kind` (KafkaAdminClient, KafkaProducer, KafkaConsumer) and the network under it.

    Raises LogUnavailableError when no broker answers within `wait_ms_max`, and leaves nothing behind then.
    """
    try:
        places = servers(bootstrap).split(",")
    except ValueError as error:
        raise LogError(f"Kafka's bootstrap servers {bootstrap!r}: {error}") from None
    networks: list[KafkaNetClient] = []

    def network(**configs: object) -> KafkaNetClient:
        networks.append(KafkaNetClient(**configs))
        return networks[-1]

    try:
        client = kind(
            bootstrap_servers=places,
            bootstrap_timeout_ms=wait_ms_max,
            reconnect_backoff_max_ms=_RECONNECT_WAIT_MS_MAX,
            kafka_client=network,
            **options,
        )
    except KafkaError as error:
        # A constructor that fails leaves its network thread running; without this, each attempt would leak one.
        for each in networks:
            each.close()
        raise translated(error, "connecting", bootstrap) from None
    return client, networks[0]


def is_connected(network: KafkaNetClient) -> bool:
    """Whether a connection to any broker is open now."""
    return any(network.connected(broker.node_id) for broker in network.cluster.brokers())


def translated(error: BaseException, doing: str, bootstrap: str) -> LogError:
    """Kafka's error as ours: `doing` says what failed, and to which topic."""
    reason = str(error) or type(error).__name__
    if isinstance(error, UnknownTopicOrPartitionError):
        return LogError(
            f"{doing}: the topic or partition does not exist at {bootstrap}; create the topics first"
        )
    if isinstance(error, MessageSizeTooLargeError | RecordListTooLargeError):
        return LogError(f"{doing}: larger than the topic takes; raise its max.message.bytes ({reason})")
    if isinstance(error, RetriableError):
        return LogUnavailableError(
            f"{doing}: no answer from Kafka at {bootstrap}; is it running and reachable? ({reason})"
        )
    return LogError(f"{doing}: Kafka at {bootstrap} refused: {reason}")
