"""The metadata of an Arrow IPC message, read and checked before its buffers are used.

    u32 0xFFFFFFFF | u32 size of the metadata | metadata: a Message | body: buffers

    Message      table: version, header_type, header, bodyLength
    RecordBatch  table: length, nodes (i64 length, i64 nulls), buffers (i64 start in the body, i64 size), compression

A table starts with the distance back to its vtable; after its first four bytes the vtable holds the 16-bit offsets of
the fields (FlatBuffers; Arrow's format/Message.fbs).
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import pyarrow as pa

from bettong.errors import FrameError

_PREFIX = struct.Struct("<II")
_CONTINUES = 0xFFFFFFFF
_MESSAGE_TYPE = 1
_RECORD_BATCH = 3
_MESSAGE_HEADER = 2
_MESSAGE_BODY_LENGTH = 3
_BATCH_LENGTH = 0
_BATCH_NODES = 1
_BATCH_BUFFERS = 2
_BATCH_COMPRESSION = 3
# Larger metadata, of some 300 columns, are left to Arrow: these would fill the cache.
_METADATA_BYTES_MAX = 16 * 1024
# Arrow's writer begins buffers at multiples of this.
_ALIGNED_BYTES = 8
_OFFSET_BYTES = 4
# The number of a table's fields that are read here; a table may end before.
_FIELDS = 4


class Node(NamedTuple):
    """A column, or a column nested in another one. `name`: its path."""

    name: str
    nullable: bool


def nodes_of(schema: pa.Schema) -> tuple[Node, ...]:
    """The nodes of a record batch: each column, followed by those nested in it."""
    return tuple(chain.from_iterable(_nodes(field, "", nullable=False) for field in schema))


def _nodes(field: pa.Field, above: str, *, nullable: bool) -> Iterator[Node]:
    """`nullable`: whether its parent may be null."""
    kind, name = field.type, f"{above}{field.name}"
    nullable = nullable or field.nullable
    yield Node(name, nullable)
    if pa.types.is_map(kind):
        within = [pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)]
    elif pa.types.is_list(kind):
        within = [kind.value_field]
    else:
        within = list(kind) if pa.types.is_struct(kind) else []
    for each in within:
        yield from _nodes(each, f"{name}.", nullable=nullable)


def check_batch(payload: bytes, nodes: Sequence[Node]) -> None:
    """Raises FrameError unless it is a record batch of these columns, uncompressed, with nulls only where allowed.

    A few compressed bytes could fill any memory. The contents of buffers remain to be checked (`RecordBatch.validate`).
    """
    metadata = _metadata(payload)
    if metadata is None:
        raise FrameError(f"{len(payload)} bytes that do not begin as an Arrow IPC message")
    try:
        kind, batch, _ = _header(metadata)
        if kind != _RECORD_BATCH:
            raise FrameError(f"an Arrow IPC message of type {kind}, expected {_RECORD_BATCH}: a record batch")
        head = _batch(metadata, batch)
    except (struct.error, IndexError) as error:
        raise FrameError(f"the metadata of the Arrow message cannot be followed: {error}") from None
    if head.compressed:
        raise FrameError("compressed; send the record batch without compression")
    if len(head.nodes) != 2 * len(nodes):
        raise FrameError(f"{len(head.nodes) // 2} columns, expected {len(nodes)}")
    for node, nulls in zip(nodes, head.nodes[1::2], strict=True):
        if nulls and not node.nullable:
            raise FrameError(f"field {node.name!r} has nulls")


class Varying(NamedTuple):
    """The positions in a payload and the sizes in bytes of the two buffers of a column of varying width."""

    offsets: int
    offsets_size: int
    data: int
    data_size: int


class Layout(NamedTuple):
    """The number of rows, and where in the payload the values of each column begin.

    `size`: bytes that the body must have. `spare`: the most bytes that a column's buffer has beyond its values.
    `varying`: the columns of varying width, in order; `starts` has the starts of their offsets.
    """

    rows: int
    starts: tuple[int, ...]
    size: int
    spare: int
    varying: tuple[Varying, ...]


def value_layout(payload: bytes, sizes: tuple[int, ...]) -> Layout | None:
    """The layout of a record batch, read in a third of Arrow's time.

    `sizes`: bytes of a value, by column; 0: they vary. All buffers lie inside the payload and are long enough for the
    rows; the values of offsets remain to be checked. None for anything but uncompressed columns of those widths without
    nulls: then Arrow's reader has to find the error, if there is one.
    """
    metadata = _metadata(payload)
    if metadata is None or len(metadata) > _METADATA_BYTES_MAX:
        return None
    layout = _layout(metadata, sizes)
    if layout is None or _PREFIX.size + len(metadata) + layout.size > len(payload):
        return None
    return layout


# Batches of one schema and number of rows have the same metadata, byte for byte.
_CACHED = 1024


@lru_cache(maxsize=_CACHED)
def batch_head(sizes: tuple[int, ...], rows: int) -> bytes:
    """The bytes before the values in a message of `rows` rows of such columns, each padded to 8 bytes, without nulls.

    `sizes`: bytes of a value, by column.
    """
    arrays = [
        pa.Array.from_buffers(pa.binary(size), rows, [None, pa.py_buffer(bytes(rows * size))])
        for size in sizes
    ]
    message: bytes = pa.RecordBatch.from_arrays(arrays, [""] * len(sizes)).serialize().to_pybytes()
    return message[: _PREFIX.size + _PREFIX.unpack_from(message)[1]]


def message_of(sizes: tuple[int, ...], rows: int, values: Iterable[bytes]) -> bytes:
    """The bytes that Arrow would write for the values of such columns, in a third of the time: see `batch_head`."""
    parts = [batch_head(sizes, rows)]
    for each in values:
        parts += (each, bytes(-len(each) % _ALIGNED_BYTES))
    return b"".join(parts)


@lru_cache(maxsize=_CACHED)
def _layout(metadata: bytes, sizes: tuple[int, ...]) -> Layout | None:
    try:
        kind, batch, body_size = _header(metadata)
        if kind != _RECORD_BATCH:
            return None
        rows, nodes, buffers, compressed = _batch(metadata, batch)
    except (struct.error, IndexError):
        return None
    # Two buffers a column: the validity bitmap, and the values. Where widths vary, offsets come before the values.
    expected = 4 * len(sizes) + 2 * sizes.count(0)
    body = _PREFIX.size + len(metadata)
    aligned = not body % _ALIGNED_BYTES and not any(start % _ALIGNED_BYTES for start in buffers[::2])
    if rows < 0 or compressed or nodes != (rows, 0) * len(sizes) or len(buffers) != expected or not aligned:
        return None
    starts: list[int] = []
    spare: list[int] = []
    varying: list[Varying] = []
    index = 2
    for size in sizes:
        start, held = buffers[index : index + 2]
        starts.append(body + start)
        if size:
            spare.append(held - rows * size)
        else:
            # Writers may leave out the offsets of no rows.
            spare.append(held - (rows + 1) * _OFFSET_BYTES if rows else 0)
            index += 2
            varying.append(Varying(body + start, held, body + buffers[index], buffers[index + 1]))
        index += 4
    if min(buffers) < 0 or min(spare) < 0:
        return None
    size = max(body_size, *map(operator.add, buffers[::2], buffers[1::2]))
    return Layout(rows, tuple(starts), size, max(spare), tuple(varying))


class _Batch(NamedTuple):
    """A record batch: numbers of `nodes` and `buffers` in pairs, see the module."""

    rows: int
    nodes: tuple[int, ...]
    buffers: tuple[int, ...]
    compressed: bool


def _metadata(payload: bytes) -> bytes | None:
    """The metadata of a message; None for bytes that do not begin like one."""
    if len(payload) < _PREFIX.size:
        return None
    continues, size = _PREFIX.unpack_from(payload)
    body = _PREFIX.size + size
    if continues != _CONTINUES or body > len(payload):
        return None
    return payload[_PREFIX.size : body]


def _header(metadata: bytes) -> tuple[int, int, int]:
    """The type of a message, the position of its header, and the size of its body.

    Raises struct.error or IndexError, as `_batch` does.
    """
    message = _fields(metadata, struct.unpack_from("<I", metadata)[0])
    header, length = _follow(metadata, message[_MESSAGE_HEADER]), message[_MESSAGE_BODY_LENGTH]
    body_size: int = struct.unpack_from("<q", metadata, length)[0] if length else 0
    return metadata[message[_MESSAGE_TYPE]], header, body_size


def _batch(metadata: bytes, table: int) -> _Batch:
    fields = _fields(metadata, table)
    # FlatBuffers omits a field that is 0.
    rows: int = struct.unpack_from("<q", metadata, fields[_BATCH_LENGTH])[0] if fields[_BATCH_LENGTH] else 0
    nodes = _pairs(metadata, fields[_BATCH_NODES])
    buffers = _pairs(metadata, fields[_BATCH_BUFFERS])
    return _Batch(rows, nodes, buffers, fields[_BATCH_COMPRESSION] != 0)


def _pairs(payload: bytes, position: int) -> tuple[int, ...]:
    """The numbers in a vector of pairs; empty where there is no vector."""
    if not position:
        return ()
    vector = _follow(payload, position)
    count: int = struct.unpack_from("<I", payload, vector)[0]
    return struct.unpack_from(f"<{2 * count}q", payload, vector + 4)


def _follow(metadata: bytes, position: int) -> int:
    distance: int = struct.unpack_from("<I", metadata, position)[0]
    return position + distance


def _fields(metadata: bytes, table: int) -> list[int]:
    """The positions of a table's fields; 0 for those that are omitted."""
    vtable = table - struct.unpack_from("<i", metadata, table)[0]
    count = (struct.unpack_from("<H", metadata, vtable)[0] - 4) // 2
    distances = struct.unpack_from(f"<{max(count, 0)}H", metadata, vtable + 4)
    return [table + distance if distance else 0 for distance in distances] + [0] * (_FIELDS - count)
