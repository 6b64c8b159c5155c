"""Connects librdkafka's producer and consumer, which determine a stream's speed, and maps their errors.

Through kafka-python a record costs five times the CPU and ten times the latency (decision 14).
"""

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from bettong.config.connection_settings import KafkaConnection
from bettong.edges.kafka_log.connecting import CONNECT_WAIT_MS_MAX
from bettong.edges.kafka_log.faults import bootstrap_servers, log_error
from bettong.edges.kafka_log.secured import SILENT, librdkafka_options, refusal, settings_error
from bettong.errors import LogError, LogUnavailableError

_TOO_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}
_MISSING = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - librdkafka's own codes have such names
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
}
_OUT_OF_RANGE = {
    KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001
    KafkaError.OFFSET_OUT_OF_RANGE,
    KafkaError._LOG_TRUNCATION,  # noqa: SLF001
}
_UNAVAILABLE = {
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._MSG_TIMED_OUT,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
}

# One attempt to connect: short, so that a refusal is reported soon.
_ATTEMPT_MS = 1_000

# Options of a consumer with assigned partitions, without a group, that never skips missing offsets.
ALONE: Mapping[str, object] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "allow.auto.create.topics": False,
    "message.max.bytes": 1000,  # for producers only, but fetches may not be smaller
    # Wait before fetching into a queue that was full. In the default of a second a queue would run dry.
    "fetch.queue.backoff.ms": 2,
}


def connect(
    kind: type[Producer] | type[Consumer], connection: KafkaConnection, options: dict[str, object]
) -> tuple[Any, dict[str, int]]:
    """A client that has reached a broker, and the number of partitions of each topic.

    Raises LogUnavailableError when no broker answers within 10 s, or the password cannot be read; LogError when the
    broker refuses it.
    """
    on_error = options.get("error_cb")
    refusals: list[LogError] = []

    def note_refusal(error: KafkaError) -> None:
        if (refused := refusal(error, "connecting", connection)) is not None:
            refusals[:] = [refused]
        if callable(on_error):
            on_error(error)

    connecting = client(kind, connection, options | {"error_cb": note_refusal})
    deadline_s = time.monotonic() + CONNECT_WAIT_MS_MAX / 1000
    try:
        while True:
            try:
                return connecting, topics_at(connecting, connection.bootstrap, wait_ms=_ATTEMPT_MS)
            except LogUnavailableError:
                connecting.poll(0)  # calls back with errors
                if refusals:
                    raise refusals[0] from None
                if time.monotonic() > deadline_s:
                    raise
    except BaseException:
        connecting.close()
        raise


def client(
    kind: type[Producer] | type[Consumer], connection: KafkaConnection, options: dict[str, object]
) -> Any:
    """A client that connects when it is used. Raises LogError for files that do not fit."""
    try:
        return kind(_options(connection) | options, logger=SILENT)
    except KafkaException as error:
        raise settings_error(error.args[0].str(), connection) from None


def _options(connection: KafkaConnection) -> dict[str, object]:
    return {
        "bootstrap.servers": bootstrap_servers(connection.bootstrap),
        "socket.nagle.disable": True,
        # By default librdkafka waits up to 10 s between two attempts to connect; a broker restarts in 4 s.
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
        "log.connection.close": False,
        **librdkafka_options(connection),
    }


def topics_at(client: Any, bootstrap: str, *, wait_ms: int) -> dict[str, int]:
    """The number of partitions of each topic. Raises LogUnavailableError when no broker answers in time.

    Asks for all topics, because a request for one by its name may make the broker create it.
    """
    try:
        found = client.list_topics(timeout=wait_ms / 1000)
    except KafkaException as error:
        raise map_librdkafka_error(error.args[0], "connecting", bootstrap) from None
    return {name: len(topic.partitions) for name, topic in found.topics.items()}


def polled(consumer: Any, timeout_ms: int, records_max: int) -> list[Any]:
    """Returns the messages that are there as soon as there is one, or [] after `timeout_ms`. Raises KafkaException.

    The consumer's own `consume` would wait until it has `records_max`.
    """
    first = consumer.poll(timeout_ms / 1000)
    if first is None:
        return []
    return [first, *consumer.consume(records_max - 1, 0)] if records_max > 1 else [first]


def map_librdkafka_error(error: KafkaError, doing: str, bootstrap: str) -> LogError:
    """Maps librdkafka's error. `doing` names the operation and its topic."""
    return log_error(
        doing,
        bootstrap,
        f"{error.name()}: {error.str()}",
        is_missing=error.code() in _MISSING,
        is_too_large=error.code() in _TOO_LARGE,
        is_transient=is_transient(error),
    )


def is_transient(error: KafkaError) -> bool:
    """Whether a retry may succeed: no broker answers, or not yet."""
    return error.code() in _UNAVAILABLE or bool(error.retriable())


def is_out_of_range(error: KafkaError) -> bool:
    """Whether a requested offset is not, or no longer, in the log."""
    return error.code() in _OUT_OF_RANGE
