"""Which records a topic of the user's takes, by their size: known before they are sent.

Kafka refuses a whole batch, at the cost of its transaction, and does not say which record it was for.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

# Of a record alone in its batch, beside key and value: at most 61 + 36 bytes (KIP-98).
_OVERHEAD_BYTES = 128
_LIMIT = "max.message.bytes"
# What a client takes unless its connection says otherwise, as kafka-python does.
_RECORD_BYTES_MAX = 1024 * 1024
_BATCH_BYTES_MAX = 1024 * 1024
# Every topic that may be takes this.
_BATCH_BYTES_MIN = 16 * 1024
# Arrow's codecs compress as librdkafka's do, to about the same size.
_COMPRESSED_MORE = 1.03


def batch_limit(admin: KafkaAdminClient, topic: str) -> int | None:
    """How large a batch the topic takes; None when Kafka does not say (the right DescribeConfigs is missing)."""
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    try:
        answer = admin.describe_configs([resource], config_filter="all")
        return int(answer["topic"][topic][_LIMIT]["value"])
    except (KafkaError, KeyError):
        return None


class RecordSizes:
    """What a client with these options (of librdkafka) may send to a topic. `limit`: see `batch_limit`."""

    def __init__(self, options: Mapping[str, object], limit: int | None) -> None:
        self.record_bytes_max = int(str(options.get("message.max.bytes", _RECORD_BYTES_MAX)))
        # Kafka refuses batches, and a batch of small records must not be larger than the topic takes.
        most = _BATCH_BYTES_MIN if limit is None else limit
        self.batch_bytes_max = min(int(str(options.get("batch.size", _BATCH_BYTES_MAX))), most)
        self._limit = limit
        codec = options.get("compression.type", "none")
        self._codec = None if codec in ("none", None) else pa.Codec(codec)

    def too_large(self, records: Sequence[tuple[bytes | None, bytes]]) -> list[int]:
        """The indexes of the (key, value) that the client cannot send, or the topic would not take."""
        return [index for index, record in enumerate(records) if self._is_too_large(*record)]

    def _is_too_large(self, key: bytes | None, value: bytes) -> bool:
        size_max = len(key or b"") + len(value) + _OVERHEAD_BYTES
        if size_max > self.record_bytes_max:
            return True
        if self._limit is None or size_max <= self._limit:
            return False
        if self._codec is None:
            return True
        compressed = self._codec.compress((key or b"") + value, asbytes=True)
        return len(compressed) * _COMPRESSED_MORE + _OVERHEAD_BYTES > self._limit
