"""The options of a connection to an external cluster: kafka-python's names, if librdkafka has the option, too, and
delivery guarantees do not depend on it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from bettong.config.connection_settings import KafkaConnection
from bettong.config.connections import Options, named
from bettong.edges.kafka_log.connecting import CONNECT_WAIT_MS_MAX, Networks, map_kafka_python_error
from bettong.edges.kafka_log.option_names import to_librdkafka, unsupported_by_librdkafka
from bettong.errors import LogError, SettingsError

# Delivery guarantees depend on these; a connection may not set them.
OURS = frozenset(
    {
        "acks",
        "allow_auto_create_topics",
        "auto_offset_reset",
        "bootstrap_timeout_ms",
        "enable_auto_commit",
        "enable_idempotence",
        "group_id",
        "isolation_level",
        "kafka_client",
        "key_deserializer",
        "key_serializer",
        "max_block_ms",
        "partitioner",
        "transaction_timeout_ms",
        "transactional_id",
        "value_deserializer",
        "value_serializer",
    }
)
# Whole numbers from which sizes and waits are computed here, and the minimum that librdkafka accepts.
_LEAST = {"batch_size": 1, "linger_ms": 0, "max_request_size": 1000, "request_timeout_ms": 10}
_COMPRESSIONS = (None, "gzip", "lz4", "snappy", "zstd")
_KINDS = (KafkaAdminClient, KafkaConsumer, KafkaProducer)


class ClientOptions:
    """One connection's options. `servers`: its bootstrap servers, for error messages."""

    def __init__(self, name: str, options: Options) -> None:
        """`name`: the connection's. Raises SettingsError that lists all invalid options, without their values."""
        if faults := _faults(options):
            raise SettingsError(f"{named(name)}: {'; '.join(faults)}")
        self._connection = name
        self.servers = str(options["bootstrap_servers"])
        self._options = dict(options) | {"bootstrap_servers": self.servers.split(",")}

    @property
    def connection(self) -> KafkaConnection:
        """The cluster, for librdkafka's clients."""
        return KafkaConnection(self.servers, connection_name=self._connection)

    def for_librdkafka(self) -> dict[str, object]:
        """The options for a librdkafka client, without the servers."""
        return to_librdkafka(self._options)

    def connect(self, kind: Callable[..., Any], **ours: object) -> Any:
        """A connected client of `kind` (a class of kafka-python); `ours` overrides the options.

        Raises LogUnavailableError when no broker answers within 10 s, LogError when an option is refused.
        """
        configs: Mapping[str, Any] = vars(kind)["DEFAULT_CONFIG"]
        mine = {key: value for key, value in self._options.items() if key in configs}
        defaults = {"client_id": "bettong", "bootstrap_timeout_ms": CONNECT_WAIT_MS_MAX}
        networks = Networks()
        network = {"kafka_client": networks.open} if "kafka_client" in configs else {}
        try:
            return kind(**(defaults | mine | network | ours))
        except KafkaError as error:
            networks.close()
            raise map_kafka_python_error(error, "connecting", self.servers) from None
        except (AssertionError, OSError, TypeError, ValueError) as error:
            # An option of the wrong type, or a missing certificate file.
            raise LogError(
                f"connecting to Kafka at {self.servers}: {type(error).__name__}: {error}"
            ) from None


def _faults(options: Options) -> list[str]:
    known = {key for kind in _KINDS for key in kind.DEFAULT_CONFIG}
    without = set(unsupported_by_librdkafka(options))
    faults = []
    for name in sorted(options):
        if name in OURS:
            faults.append(f"{name!r} is Bettong's own to set")
        elif name not in known:
            faults.append(f"kafka-python has no option {name!r}")
        elif name in without:
            faults.append(f"librdkafka, by which topics are read and written, has no option {name!r}")
        elif name in _LEAST and not _is_whole(options[name], _LEAST[name]):
            faults.append(f"{name!r} is a whole number of at least {_LEAST[name]}")
        elif name == "compression_type" and options[name] not in _COMPRESSIONS:
            faults.append(f"{name!r} is one of {', '.join(filter(None, _COMPRESSIONS))}")
    return faults


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
