"""Finds the records that are too large for a user's topic before they are sent.

Kafka would refuse a whole batch, which aborts the transaction, without saying which record is too large.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

# Overhead of a record alone in its batch, without key and value: at most 61 + 36 bytes (KIP-98).
_OVERHEAD_BYTES = 128
_LIMIT = "max.message.bytes"
# The client's limits unless its connection sets others; kafka-python's defaults.
_RECORD_BYTES_MAX = 1024 * 1024
_BATCH_BYTES_MAX = 1024 * 1024
# For a topic whose limit is unknown.
_BATCH_BYTES_UNKNOWN = 16 * 1024
# librdkafka's levels. Its lz4 splits a batch into blocks, so its output is up to a twentieth larger than Arrow's.
_LEVELS = {"gzip": 6, "zstd": 3}
_COMPRESSED_MORE = 1.1

# A record: key and value.
KeyValue: TypeAlias = tuple[bytes | None, bytes]


def batch_limit(settings: Mapping[str, str]) -> int | None:
    """The largest batch that a topic with these settings accepts; None if unknown."""
    return int(settings[_LIMIT]) if _LIMIT in settings else None


class RecordSizes:
    """The sizes that a client with these librdkafka options may send to a topic. `limit`: see `batch_limit`."""

    def __init__(self, options: Mapping[str, object], limit: int | None) -> None:
        self.record_bytes_max = int(str(options.get("message.max.bytes", _RECORD_BYTES_MAX)))
        # Kafka's limit is for batches, so a batch of small records must not exceed it either.
        default = _BATCH_BYTES_MAX if limit is not None else _BATCH_BYTES_UNKNOWN
        batch_bytes = int(str(options.get("batch.size", default)))
        self.batch_bytes_max = batch_bytes if limit is None else min(batch_bytes, limit)
        self._limit = limit
        codec = str(options.get("compression.type", "none"))
        self._codec = None if codec == "none" else pa.Codec(codec, _LEVELS.get(codec))

    def too_large(self, records: Sequence[KeyValue]) -> list[int]:
        """The indexes of the records that the client cannot send, or the topic would refuse."""
        limit = self.record_bytes_max if self._limit is None else min(self.record_bytes_max, self._limit)
        fits = limit - _OVERHEAD_BYTES
        # A function call per record would take as long as sending it.
        return [
            index
            for index, (key, value) in enumerate(records)
            if (len(value) if key is None else len(key) + len(value)) > fits
            and self._is_too_large(key or b"", value)
        ]

    def _is_too_large(self, key: bytes, value: bytes) -> bool:
        """Whether a record that exceeds a limit uncompressed is still too large when compressed."""
        size = len(key) + len(value) + _OVERHEAD_BYTES
        if size > self.record_bytes_max or self._limit is None or self._codec is None:
            return True
        compressed = self._codec.compress(key + value, asbytes=True)
        return len(compressed) * _COMPRESSED_MORE + _OVERHEAD_BYTES > self._limit
