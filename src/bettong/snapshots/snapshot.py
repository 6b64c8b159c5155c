"""The bytes of a snapshot's increment.

0        4          8
+--------+----------+-----------------------------------+
| "BTG2" | CRC-32C  | protobuf bettong.v1.Snapshot      |
+--------+----------+-----------------------------------+
           (big-endian, over the protobuf bytes)
"""

import struct

import crc32c
from google.protobuf.message import DecodeError, EncodeError

from bettong.errors import SnapshotError
from bettong.identifiers import PartitionId
from bettong.v1.snapshot_pb2 import Snapshot

_HEADER = struct.Struct(">4sI")
_MAGIC = b"BTG2"

# Counters that resume from a snapshot must stay within 64 bits. An offset is multiplied
# (`worker.output.numbering.PARTS_MAX`).
_NUMBER_MAX = 2**63 - 1
_OFFSET_MAX = 2**43


def encode(snapshot: Snapshot) -> bytes:
    """The bytes of an increment. Raises SnapshotError when it exceeds the 2 GiB that protobuf can hold."""
    try:
        body = snapshot.SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        name = f"snapshot of {snapshot.application}/{snapshot.stage}/{snapshot.partition}"
        raise SnapshotError(
            f"{name}: {error}; the states of {len(snapshot.states)} computation(s) are too large: keep less in each,"
            " or use more partitions (`bettong repartition`)"
        ) from None
    return _HEADER.pack(_MAGIC, crc32c.crc32c(body)) + body


def checksum(data: bytes) -> int:
    """The checksum in the header of an encoded increment."""
    return int(_HEADER.unpack_from(data)[1])


def decode(data: bytes, *, application: str, partition: PartitionId) -> Snapshot:
    """Reads an increment. Raises SnapshotError when it is damaged or not of this partition."""
    name = f"snapshot of {application}/{partition}"
    if len(data) < _HEADER.size:
        raise SnapshotError(f"{name}: {len(data)} bytes are too few for one")
    magic, checksum = _HEADER.unpack_from(data)
    body = data[_HEADER.size :]
    if magic != _MAGIC:
        raise SnapshotError(f"{name}: starts with {magic!r}, expected {_MAGIC!r}")
    if crc32c.crc32c(body) != checksum:
        raise SnapshotError(f"{name}: its checksum does not match: it is damaged")
    try:
        snapshot = Snapshot.FromString(body)
    except DecodeError as error:
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
