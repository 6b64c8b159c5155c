"""Harnesses of what stores give back: snapshots, positions of sinks, boundaries of external topics, what topics keep.

Their checksums find damage, so most inputs here are sealed anew after they were changed. The states in a snapshot are
left as they were: who reads them has a harness of its own to give (`registry`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache

import crc32c
from google.protobuf.message import DecodeError

from bettong.application.reference_source import reference_source
from bettong.delivery import DeliveryTable
from bettong.errors import FrameError, LogError, SchemaError, SnapshotError
from bettong.frames.frame import CLOCK_NS_MAX
from bettong.identifiers import Origin, PartitionId, SequenceNumber
from bettong.schema.schema import schema_of
from bettong.snapshots import snapshot as codec
from bettong.snapshots.partitioning import Partitioning
from bettong.v1.snapshot_pb2 import Snapshot
from bettong.worker.exclusions import Excluded, ExcludedTimer, Exclusion, decode_exclusion, encode_exclusion
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.references.loaded import loaded_table
from bettong.worker.references.table import ReferenceTable
from bettong_receiver import positions
from bettong_receiver.errors import PositionError
from bettong_receiver.progress import DeliveryProgress
from bettong_sender.batcher import BatchBoundaries
from tests.fuzz.harness import Harness
from tests.fuzz.of_frames import FRAME_BYTES_MAX, record_of, stage
from tests.samples.reference_join import Price
from tests.samples.worker import tick

_POSITION_KEY = positions.PositionKey("fuzzed", "totals", 0)
_ROWS = 100
_PRICES = reference_source("reference", list, "sku", schema_of(Price), None)


def _worker() -> PartitionWorker:
    return PartitionWorker(stage(), Assignment("fuzzed", 0, 1, FRAME_BYTES_MAX))


@cache
def _good() -> bytes:
    worker = _worker()
    worker.fold(0, record_of(1))
    return worker.snapshot()


def read_snapshot(data: bytes) -> None:
    """The bytes of an increment as they are, and behind a right checksum: as a large one, or with good states."""
    with contextlib.suppress(SnapshotError):
        codec.decode(data, application="fuzzed", partition=PartitionId(stage().stage.name, 0))
    large = codec.sealed(codec.LARGE_MAGIC, [data[8:]])
    with contextlib.suppress(SnapshotError):
        codec.decode(large, application="fuzzed", partition=PartitionId(stage().stage.name, 0))
    try:
        changed = Snapshot.FromString(data[8:])
    except DecodeError:
        return
    states = Snapshot.FromString(_good()[8:]).states
    for name in changed.states:
        changed.states[name] = states.get(name, next(iter(states.values())))
    worker = _worker()
    with contextlib.suppress(SnapshotError):
        worker.restore(codec.encode(changed))
        worker.fold(worker.next_offset, record_of(2**64 - 1, origin="varying/last"))
        worker.increment()


def read_position(data: bytes) -> None:
    """The position of a sink."""
    for each in (data, _sealed(data.partition(b"\n")[2])):
        with contextlib.suppress(PositionError):
            progress, length = positions.decode(_POSITION_KEY, each)
            positions.encode(_POSITION_KEY, progress, length_bytes=length)


def _sealed(content: bytes) -> bytes:
    return b"crc32c:%08x\n" % crc32c.crc32c(content) + content


def read_boundaries(data: bytes) -> None:
    """Where an external topic is divided into frames."""
    with contextlib.suppress(FrameError):
        boundaries = BatchBoundaries.decode(data)
        assert BatchBoundaries.decode(boundaries.encode()) == boundaries


def read_exclusion(data: bytes) -> None:
    """What is left out of a record, as the topic holds it."""
    with contextlib.suppress(DecodeError):
        stage_name, exclusion = decode_exclusion(data)
        assert decode_exclusion(encode_exclusion(stage_name, exclusion)) == (stage_name, exclusion)
        assert all(0 <= row < _ROWS for row, _ in exclusion.of_frame(_ROWS))
        for each in exclusion.timers[:20]:
            assert exclusion.record or each.timer in exclusion.of_timers(each.owner)


def read_partitioning(data: bytes) -> None:
    """How many partitions there are, as the topic holds it."""
    with contextlib.suppress(LogError):
        partitioning = Partitioning.decode(data)
        assert Partitioning.decode(partitioning.encode()) == partitioning
        for number in range(3):
            assert partitioning.begin_of(PartitionId("varying", number)) >= 0


def read_reference_table(data: bytes) -> None:
    """A version of a reference table."""
    with contextlib.suppress(SchemaError):
        table = ReferenceTable.decode(_PRICES, data)
        assert ReferenceTable.decode(_PRICES, table.encode()).columns.messages() == table.columns.messages()
        keys = [each.sku for each in table.columns]
        assert table.rows_of_values(keys).tolist() == list(range(len(keys)))


def _reference_tables() -> Iterator[bytes]:
    for count in (0, 1, 100):
        yield loaded_table(_PRICES, [Price(f"sku {number}", number) for number in range(count)]).encode()


def _snapshots() -> Iterator[bytes]:
    yield _good()
    worker = _worker()
    yield worker.increment()[1]
    worker.fold(0, record_of(1))
    yield worker.increment()[1]
    worker.fold(1, tick(CLOCK_NS_MAX))
    yield worker.increment()[1]
    yield codec.encode_large(Snapshot.FromString(_good()[8:]))


def _positions() -> Iterator[bytes]:
    yield positions.encode(_POSITION_KEY, DeliveryProgress.fresh(3))
    progress = DeliveryProgress.fresh(812)
    progress.table = DeliveryTable(
        highest={Origin("totals/varying/0"): SequenceNumber(9)}, heard_ns={Origin("totals/varying/0"): 5}
    )
    progress.outbox.pending = {7: {0: "refused", 3: "refused"}}
    yield positions.encode(_POSITION_KEY, progress, length_bytes=77)


def _boundaries() -> Iterator[bytes]:
    yield BatchBoundaries(SequenceNumber(5), [11, 15], "id-1").encode()
    yield BatchBoundaries(SequenceNumber(0)).encode()


def _exclusions() -> Iterator[bytes]:
    rows = (Excluded(3, 4, "total", "killed the worker: signal 11"), Excluded(7, 2**32 - 1, "", ""))
    timers = (ExcludedTimer("last", b'{"at":7}', "over", "took longer than 5 ms"),)
    yield encode_exclusion("varying", Exclusion(812, rows, timers=timers))
    yield encode_exclusion("varying", Exclusion(0, record="killed the worker: signal 9"))


def _partitionings() -> Iterator[bytes]:
    begun = Partitioning(2, 3).begun(8, "a run")
    yield begun.encode()
    yield begun.switched({"varying": (7, 1, 9, 1), "other": (1, 2, 3, 4)}).encode()
    yield begun.switched({"varying": (7, 1, 9, 1)}).completed().encode()


HARNESSES = (
    Harness("snapshots", read_snapshot, _snapshots, (b"\xff\xff\xff\xff\x0f",)),
    Harness("sink-positions", read_position, _positions, (b"null", b"1e999", b"[", b"{}", b'"offset":')),
    Harness("batch-boundaries", read_boundaries, _boundaries, (b"null", b"1e999", b"[", b'"ends"', b"-1")),
    Harness("partitionings", read_partitioning, _partitionings, (b"\xff\xff\xff\xff\x0f",)),
    Harness("reference-tables", read_reference_table, _reference_tables, (b"BTR1", b"\xff\xff\xff\x7f")),
    Harness("exclusions", read_exclusion, _exclusions, (b"\xff\xff\xff\xff\x0f", b"\x18\x00")),
)
