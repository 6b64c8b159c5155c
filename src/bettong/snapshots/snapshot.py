"""The bytes of a snapshot's increment.

0        4          8
+--------+----------+-----------------------------------+
| "BTG2" | CRC-32C  | protobuf bettong.v1.Snapshot      |
+--------+----------+-----------------------------------+
           (big-endian, over all that follows)

Protobuf holds 2 GiB at most. States that make it larger follow it, and it names them with empty values:

0        4          8                16
+--------+----------+----------------+----------+---------------+--------+---------------+--------+--
| "BTG3" | CRC-32C  | 64-bit length  | protobuf | 64-bit length | states | 64-bit length | states | ..
+--------+----------+----------------+----------+---------------+--------+---------------+--------+--
                                                  (by field, then by computation, both in order of their names)
"""

import struct
from collections.abc import Iterator, MutableMapping, Sequence

import crc32c
from google.protobuf.message import DecodeError, EncodeError

from bettong.errors import SnapshotError
from bettong.identifiers import PartitionId
from bettong.v1.snapshot_pb2 import Snapshot

_HEADER = struct.Struct(">4sI")
_LENGTH = struct.Struct(">Q")
_MAGIC = b"BTG2"
# Earlier versions refuse it and restore an older state: so it is only written where the other form cannot be.
LARGE_MAGIC = b"BTG3"
# Protobuf refuses to write a field of more; fields that are larger together it writes, but may not be able to read.
_PROTOBUF_BYTES_MAX = 2**31 - 1

# Counters that resume from a snapshot must stay within 64 bits. An offset is multiplied
# (`worker.output.numbering.PARTS_MAX`).
_NUMBER_MAX = 2**63 - 1
_OFFSET_MAX = 2**43


def encode(snapshot: Snapshot) -> bytes:
    """The bytes of an increment. Raises SnapshotError when it exceeds 2 GiB even without its states."""
    try:
        body = _serialized(snapshot)
    except (EncodeError, ValueError):
        return encode_large(snapshot)
    return sealed(_MAGIC, [body])


def encode_large(snapshot: Snapshot) -> bytes:
    """The bytes of an increment whose states follow the message. Raises SnapshotError as `encode` does."""
    return sealed(LARGE_MAGIC, [*_large_parts(snapshot)])


def sealed(magic: bytes, parts: Sequence[bytes]) -> bytes:
    """The content of an increment behind its header."""
    checksum = 0
    for part in parts:
        checksum = crc32c.crc32c(part, checksum)
    return b"".join([_HEADER.pack(magic, checksum), *parts])


def checksum(data: bytes) -> int:
    """The checksum in the header of an encoded increment."""
    return int(_HEADER.unpack_from(data)[1])


def decode(data: bytes, *, application: str, partition: PartitionId) -> Snapshot:
    """Reads an increment. Raises SnapshotError when it is damaged or not of this partition."""
    name = f"snapshot of {application}/{partition}"
    if len(data) < _HEADER.size:
        raise SnapshotError(f"{name}: {len(data)} bytes are too few for one")
    magic, checksum = _HEADER.unpack_from(data)
    body = memoryview(data)[_HEADER.size :]
    if magic not in (_MAGIC, LARGE_MAGIC):
        raise SnapshotError(f"{name}: starts with {magic!r}, expected {_MAGIC!r}")
    if crc32c.crc32c(body) != checksum:
        raise SnapshotError(f"{name}: its checksum does not match: it is damaged")
    try:
        snapshot = Snapshot.FromString(bytes(body)) if magic == _MAGIC else _large(body)
    except (DecodeError, ValueError) as error:
        raise SnapshotError(f"{name}: {error}") from None
    found = PartitionId(snapshot.stage, snapshot.partition)
    if (snapshot.application, found) != (application, partition):
        raise SnapshotError(f"{name}: it belongs to {snapshot.application}/{found}")
    largest = max(
        snapshot.now_ns,
        snapshot.delivery.age_ns,
        snapshot.delivery.clock_ns,
        *(each.sequence for each in snapshot.sent),
        *(value for _, value in snapshot.counters.ListFields()),
    )
    if snapshot.offset > _OFFSET_MAX or largest > _NUMBER_MAX:
        raise SnapshotError(
            f"{name}: at offset {snapshot.offset}, {largest} is its largest number: it is damaged"
        )
    return snapshot


def _serialized(snapshot: Snapshot) -> bytes:
    """Protobuf's bytes. Raises EncodeError or ValueError where they are too many for it."""
    body = snapshot.SerializeToString(deterministic=True)
    if len(body) > _PROTOBUF_BYTES_MAX:
        raise ValueError(f"{len(body)} bytes, at most {_PROTOBUF_BYTES_MAX} are possible")
    return body


def _large_parts(snapshot: Snapshot) -> Iterator[bytes]:
    """What follows the header of a large increment."""
    rest = Snapshot()
    rest.CopyFrom(snapshot)
    for each in _states(rest):
        for computation in sorted(each):
            each[computation] = b""
    try:
        body = _serialized(rest)
    except (EncodeError, ValueError) as error:
        raise SnapshotError(
            f"snapshot of {snapshot.application}/{snapshot.stage}/{snapshot.partition}, without its states: {error}; if"
            " it lists too many streams of clients, use more partitions (`bettong repartition`)"
        ) from None
    for part in (body, *(each[computation] for each in _states(snapshot) for computation in sorted(each))):
        yield _LENGTH.pack(len(part))
        yield part


def _large(data: memoryview) -> Snapshot:
    """Reads what follows the header of a large increment. Raises ValueError, DecodeError."""
    body, data = _next_part(data)
    snapshot = Snapshot.FromString(body)
    for each in _states(snapshot):
        for computation in sorted(each):
            each[computation], data = _next_part(data)
    if data:
        raise ValueError(f"{len(data)} bytes follow its states: it is damaged")
    return snapshot


def _next_part(data: memoryview) -> tuple[bytes, memoryview]:
    if len(data) < _LENGTH.size:
        raise ValueError("a length is missing: it is damaged")
    end = _LENGTH.size + int(_LENGTH.unpack_from(data)[0])
    if end > len(data):
        raise ValueError(f"{end} bytes are expected where {len(data)} follow: it is damaged")
    return bytes(data[_LENGTH.size : end]), data[end:]


def _states(snapshot: Snapshot) -> tuple[MutableMapping[str, bytes], ...]:
    """The fields that grow with the number of keys: bytes by computation."""
    return snapshot.ended, snapshot.last_event_ns, snapshot.last_ns, snapshot.states
