"""What an Arrow IPC message says of itself, read before anything in it is believed.

    u32 0xFFFFFFFF | u32 size of the metadata | metadata: a Message | body: buffers

    Message      table: version, header_type, header, bodyLength
    RecordBatch  table: length, nodes (i64 length, i64 nulls), buffers (i64 start in the body, i64 size), compression

A table starts with the distance back to its vtable; the vtable holds 16-bit places of the fields, two bytes each
after its first four (FlatBuffers; Arrow's format/Message.fbs).
"""

from __future__ import annotations

import operator
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from bettong.errors import FrameError

_PREFIX = struct.Struct("<II")
_CONTINUES = 0xFFFFFFFF
_MESSAGE_TYPE = 1
_RECORD_BATCH = 3
_MESSAGE_HEADER = 2
_BATCH_LENGTH = 0
_BATCH_NODES = 1
_BATCH_BUFFERS = 2
_BATCH_COMPRESSION = 3
# Larger ones, of some 300 columns, are left to Arrow: what is looked up is kept.
_METADATA_BYTES_MAX = 16 * 1024
# So many fields of a table are read here; tables end with the last one that is there.
_FIELDS = 4


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """What matters of a record batch before it is read: a few compressed bytes could fill any memory."""

    columns: int
    compressed: bool


def batch_facts(message: pa.ipc.Message) -> BatchFacts:
    """The facts of a record batch message. Raises FrameError when it is none."""
    if message.type != "record batch":
        raise FrameError(f"expected an Arrow IPC record batch message, got a {message.type}")
    metadata = message.metadata.to_pybytes()
    try:
        batch = _fields(metadata, struct.unpack_from("<I", metadata)[0])[_MESSAGE_HEADER]
        fields = _fields(metadata, _follow(metadata, batch))
        nodes = fields[_BATCH_NODES]
        columns = struct.unpack_from("<I", metadata, _follow(metadata, nodes))[0] if nodes else 0
        return BatchFacts(columns, fields[_BATCH_COMPRESSION] != 0)
    except struct.error as error:
        raise FrameError(f"the metadata of the Arrow message cannot be followed: {error}") from None


class Layout(NamedTuple):
    """What metadata say: how many rows, where in the payload the values of each column begin.

    `size`: bytes that the body must have. `spare`: of the columns' buffers, most bytes that one has beyond its values.
    """

    rows: int
    starts: tuple[int, ...]
    size: int
    spare: int


def value_places(payload: bytes, sizes: tuple[int, ...]) -> Layout | None:
    """The rows of a record batch, and where in the payload the values of each column begin: a third of Arrow's time.

    `sizes`: bytes of a value, by column. None for anything but columns of those widths that lie there without nulls and
    without compression: then Arrow's reader has to say what is wrong with it, if anything is.
    """
    if len(payload) < _PREFIX.size:
        return None
    continues, size = _PREFIX.unpack_from(payload)
    body = _PREFIX.size + size
    if continues != _CONTINUES or body > len(payload) or size > _METADATA_BYTES_MAX:
        return None
    layout = _layout(payload[_PREFIX.size : body], sizes)
    if layout is None or body + layout.size > len(payload):
        return None
    return layout


# Batches of one schema and as many rows have the same metadata, byte for byte.
_CACHED = 1024


@lru_cache(maxsize=_CACHED)
def batch_head(sizes: tuple[int, ...], rows: int) -> bytes:
    """What comes before the values in a message of `rows` rows of such columns, each padded to 8 bytes, without nulls.

    `sizes`: bytes of a value, by column.
    """
    arrays = [
        pa.Array.from_buffers(pa.binary(size), rows, [None, pa.py_buffer(bytes(rows * size))])
        for size in sizes
    ]
    message: bytes = pa.RecordBatch.from_arrays(arrays, [""] * len(sizes)).serialize().to_pybytes()
    return message[: _PREFIX.size + _PREFIX.unpack_from(message)[1]]


@lru_cache(maxsize=_CACHED)
def _layout(metadata: bytes, sizes: tuple[int, ...]) -> Layout | None:
    try:
        message = _fields(metadata, struct.unpack_from("<I", metadata)[0])
        if metadata[message[_MESSAGE_TYPE]] != _RECORD_BATCH:
            return None
        batch = _fields(metadata, _follow(metadata, message[_MESSAGE_HEADER]))
        # A field that is 0 is left out.
        rows: int = struct.unpack_from("<q", metadata, batch[_BATCH_LENGTH])[0] if batch[_BATCH_LENGTH] else 0
        nodes = _pairs(metadata, batch[_BATCH_NODES])
        buffers = _pairs(metadata, batch[_BATCH_BUFFERS])
    except (struct.error, IndexError):
        return None
    if (
        rows < 0
        or batch[_BATCH_COMPRESSION]
        or nodes != (rows, 0) * len(sizes)
        or len(buffers) != 4 * len(sizes)
    ):
        return None
    # Two buffers a column: which values are there, and the values.
    starts, given = buffers[2::4], buffers[3::4]
    spare = [held - rows * wanted for held, wanted in zip(given, sizes, strict=True)]
    if min(starts, default=0) < 0 or min(spare, default=0) < 0:
        return None
    body = _PREFIX.size + len(metadata)
    ends = map(operator.add, starts, given)
    return Layout(
        rows, tuple(body + start for start in starts), size=max(ends, default=0), spare=max(spare, default=0)
    )


def _pairs(payload: bytes, place: int) -> tuple[int, ...]:
    """The numbers of a vector of pairs."""
    vector = _follow(payload, place)
    count: int = struct.unpack_from("<I", payload, vector)[0]
    return struct.unpack_from(f"<{2 * count}q", payload, vector + 4)


def _follow(metadata: bytes, place: int) -> int:
    distance: int = struct.unpack_from("<I", metadata, place)[0]
    return place + distance


def _fields(metadata: bytes, table: int) -> list[int]:
    """Where the fields of a table lie; 0 for those that are left out."""
    vtable = table - struct.unpack_from("<i", metadata, table)[0]
    count = (struct.unpack_from("<H", metadata, vtable)[0] - 4) // 2
    distances = struct.unpack_from(f"<{max(count, 0)}H", metadata, vtable + 4)
    return [table + distance if distance else 0 for distance in distances] + [0] * (_FIELDS - count)
