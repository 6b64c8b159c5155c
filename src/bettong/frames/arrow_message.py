"""What an Arrow IPC message says of itself, read before anything in it is believed.

    Message      table: version, header_type, header, bodyLength
    RecordBatch  table: length, nodes, buffers, compression

A table starts with the distance back to its vtable; the vtable holds 16-bit places of the fields, two bytes each
after its first four (FlatBuffers; Arrow's format/Message.fbs).
"""

import struct
from dataclasses import dataclass

import pyarrow as pa

from bettong.errors import FrameError

_MESSAGE_HEADER = 2
_BATCH_NODES = 1
_BATCH_COMPRESSION = 3


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
        batch = _follow(metadata, _field(metadata, struct.unpack_from("<I", metadata)[0], _MESSAGE_HEADER))
        nodes = _field(metadata, batch, _BATCH_NODES)
        columns = struct.unpack_from("<I", metadata, _follow(metadata, nodes))[0] if nodes else 0
        return BatchFacts(columns, _field(metadata, batch, _BATCH_COMPRESSION) != 0)
    except struct.error as error:
        raise FrameError(f"the metadata of the Arrow message cannot be followed: {error}") from None


def _follow(metadata: bytes, place: int) -> int:
    distance: int = struct.unpack_from("<I", metadata, place)[0]
    return place + distance


def _field(metadata: bytes, table: int, number: int) -> int:
    """Where a field of a table lies; 0 when it is left out."""
    vtable = table - struct.unpack_from("<i", metadata, table)[0]
    size = struct.unpack_from("<H", metadata, vtable)[0]
    entry = 4 + 2 * number
    if entry + 2 > size:
        return 0
    distance: int = struct.unpack_from("<H", metadata, vtable + entry)[0]
    return table + distance if distance else 0
