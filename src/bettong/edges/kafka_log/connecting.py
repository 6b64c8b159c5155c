"""Connects kafka-python's admin client, and maps its errors."""

from kafka import KafkaAdminClient
from kafka.errors import (
    KafkaError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    RetriableError,
    UnknownBrokerIdError,
    UnknownTopicOrPartitionError,
)
from kafka.net.compat import KafkaNetClient

from bettong.config.connection_settings import KafkaConnection
from bettong.edges.kafka_log.faults import bootstrap_servers, log_error
from bettong.edges.kafka_log.secured import diagnose_refusal, python_options, settings_error
from bettong.errors import LogError

CONNECT_WAIT_MS_MAX = 10_000

# A broker that does not answer for this long is reconnected to. Shorter than people's patience.
REQUEST_WAIT_MS_MAX = 5_000

# kafka-python waits up to 30 s between two attempts to connect; a broker restarts in 4 s.
_RECONNECT_WAIT_MS_MAX = 500


class Networks:
    """The network of a client of kafka-python: a constructor that fails leaves its thread running."""

    def __init__(self) -> None:
        self._opened: list[KafkaNetClient] = []

    def open(self, **configs: object) -> KafkaNetClient:
        """See `kafka_client` of the clients' options."""
        self._opened.append(KafkaNetClient(**configs))
        return self._opened[-1]

    def close(self) -> None:
        """Ends the threads."""
        for each in self._opened:
            each.close()


def connect(
    connection: KafkaConnection, *, wait_ms_max: int, request_wait_ms_max: int = REQUEST_WAIT_MS_MAX
) -> KafkaAdminClient:
    """A connected client; its requests time out after `request_wait_ms_max`, at most `REQUEST_WAIT_MS_MAX`.

    Raises LogUnavailableError when no broker answers within `wait_ms_max`, and then leaks no thread, or the password
    cannot be read; LogError when the broker refuses it.
    """
    networks = Networks()
    try:
        return KafkaAdminClient(
            bootstrap_servers=bootstrap_servers(connection.bootstrap).split(","),
            bootstrap_timeout_ms=wait_ms_max,
            reconnect_backoff_max_ms=_RECONNECT_WAIT_MS_MAX,
            request_timeout_ms=min(request_wait_ms_max, REQUEST_WAIT_MS_MAX),
            client_id="bettong-admin",
            kafka_client=networks.open,
            **python_options(connection),
        )
    except KafkaError as error:
        networks.close()
        raise (
            diagnose_refusal(connection)
            or map_kafka_python_error(error, "connecting", connection.bootstrap, connection)
        ) from None
    except OSError as error:
        raise settings_error(error.strerror or str(error), connection) from None


def map_kafka_python_error(
    error: BaseException, doing: str, bootstrap: str, connection: KafkaConnection | None = None
) -> LogError:
    """Maps Kafka's error. `doing` names the operation and its topic; `connection`: for Bettong's own Kafka."""
    security = f"; BETTONG_KAFKA_SECURITY is {connection.security}" if connection is not None else ""
    return log_error(
        doing,
        bootstrap,
        (str(error) or type(error).__name__) + security,
        is_missing=isinstance(error, UnknownTopicOrPartitionError),
        is_too_large=isinstance(error, MessageSizeTooLargeError | RecordListTooLargeError),
        is_transient=is_transient(error),
    )


def is_transient(error: BaseException) -> bool:
    """Whether a retry may succeed. For a partition without a leader kafka-python asks broker -1 (UnknownBrokerId)."""
    return isinstance(error, RetriableError | UnknownBrokerIdError)
