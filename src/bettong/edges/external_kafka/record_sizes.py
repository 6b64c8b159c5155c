"""Which records a topic of the user's takes, by their size: known before they are sent.

Kafka refuses a whole batch, at the cost of its transaction, and does not say which record it was for.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

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
# Where nobody says what the topic takes.
_BATCH_BYTES_UNKNOWN = 16 * 1024
# The levels of librdkafka. Its lz4 divides a batch into blocks, so it is larger than Arrow's by up to a twentieth.
_LEVELS = {"gzip": 6, "zstd": 3}
_COMPRESSED_MORE = 1.1

# A record: key and value.
KeyValue: TypeAlias = tuple[bytes | None, bytes]


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
        default = _BATCH_BYTES_MAX if limit is not None else _BATCH_BYTES_UNKNOWN
        batch_bytes = int(str(options.get("batch.size", default)))
        self.batch_bytes_max = batch_bytes if limit is None else min(batch_bytes, limit)
        self._limit = limit
        codec = str(options.get("compression.type", "none"))
        self._codec = None if codec == "none" else pa.Codec(codec, _LEVELS.get(codec))

    def too_large(self, records: Sequence[KeyValue]) -> list[int]:
        """The indexes of those that the client cannot send, or the topic would not take."""
        limit = self.record_bytes_max if self._limit is None else min(self.record_bytes_max, self._limit)
        fits = limit - _OVERHEAD_BYTES
        # A call for each record would take as long as to send it.
        return [
            index
            for index, (key, value) in enumerate(records)
            if (len(value) if key is None else len(key) + len(value)) > fits
            and self._is_too_large(key or b"", value)
        ]

    def _is_too_large(self, key: bytes, value: bytes) -> bool:
        """Of one that is larger than the client or the topic takes as it is."""
        size = len(key) + len(value) + _OVERHEAD_BYTES
        if size > self.record_bytes_max or self._limit is None or self._codec is None:
            return True
        compressed = self._codec.compress(key + value, asbytes=True)
        return len(compressed) * _COMPRESSED_MORE + _OVERHEAD_BYTES > self._limit
