"""kafka-python's client for topics, and its errors as ours."""

from kafka import KafkaAdminClient
from kafka.errors import (
    KafkaError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    RetriableError,
    UnknownTopicOrPartitionError,
)
from kafka.net.compat import KafkaNetClient

from bettong.edges.kafka_log.faults import log_error, places
from bettong.errors import LogError

CONNECT_WAIT_MS_MAX = 10_000

# A broker that answers nothing for this long is given up and connected to again. Below the time that people wait.
REQUEST_WAIT_MS_MAX = 5_000

# kafka-python waits up to 30 s between two attempts to connect; a broker restarts in 4 s.
_RECONNECT_WAIT_MS_MAX = 500


def connect(bootstrap: str, *, wait_ms_max: int) -> KafkaAdminClient:
    """A connected client.

    Raises LogUnavailableError when no broker answers within `wait_ms_max`, and leaves nothing behind then.
    """
    networks: list[KafkaNetClient] = []

    def network(**configs: object) -> KafkaNetClient:
        networks.append(KafkaNetClient(**configs))
        return networks[-1]

    try:
        return KafkaAdminClient(
            bootstrap_servers=places(bootstrap).split(","),
            bootstrap_timeout_ms=wait_ms_max,
            reconnect_backoff_max_ms=_RECONNECT_WAIT_MS_MAX,
            request_timeout_ms=REQUEST_WAIT_MS_MAX,
            client_id="bettong-admin",
            kafka_client=network,
        )
    except KafkaError as error:
        # A constructor that fails leaves its network thread running; without this, each attempt would leak one.
        for each in networks:
            each.close()
        raise translated(error, "connecting", bootstrap) from None


def translated(error: BaseException, doing: str, bootstrap: str) -> LogError:
    """Kafka's error as ours: `doing` says what failed, and to which topic."""
    return log_error(
        doing,
        bootstrap,
        str(error) or type(error).__name__,
        is_missing=isinstance(error, UnknownTopicOrPartitionError),
        is_too_large=isinstance(error, MessageSizeTooLargeError | RecordListTooLargeError),
        may_pass=isinstance(error, RetriableError),
    )
