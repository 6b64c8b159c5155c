"""How large states are, how old their snapshots, and what these cost: reported by workers, and shown to people."""

from __future__ import annotations

from bettong.cli.status_texts import stuck
from bettong.cli.top.lines import PartitionLine
from bettong.identifiers import PartitionId
from bettong.inspection.changes import changes_between
from bettong.inspection.measures import TimedInspection
from bettong.inspection.overall_state import Level, Need, needs
from bettong.inspection.overview import SnapshotRow
from bettong.inspection.trends import PartitionTrend
from bettong.snapshots.chain import Increment, chain
from bettong.worker.chain_sizes import ChainSizes
from bettong.worker.stage_program import program
from bettong_processor.saved_snapshots import SavedSnapshot, SnapshotCost
from tests.samples.deployments import measured, moment, partition, services
from tests.samples.worker import Reading, data, meters, worker

COST = SnapshotCost(saved_s=1_800_000_000.25, size=4096, took_ms=7.5, paused_ms=1.25)


def test_the_size_of_a_state_is_that_of_the_chain_that_a_recovery_reads() -> None:
    ready = program(meters().stages[0], compiled=False)
    one = worker(ready)
    assert one.chain_sizes.total == 0
    saved: dict[Increment, bytes] = {}
    needed: tuple[Increment, ...] = ()
    for number in range(40):
        readings = [Reading(f"{number}-{each}", each) for each in range(700 if number < 10 else 2)]
        one.fold(number, data("readings/a", number + 1, readings))
        increment, content = one.increment()
        saved[increment] = content
        needed = chain(saved, increment) or ()
        assert one.chain_sizes.total == sum(len(saved[each]) for each in needed)
    assert len(needed) > 1
    again = worker(ready)
    for each in needed:
        again.restore(saved[each])
    assert again.chain_sizes.total == one.chain_sizes.total


def test_increments_that_are_not_needed_any_more_are_forgotten() -> None:
    sizes = ChainSizes()
    for offset in range(100, 100_000, 100):
        sizes.note(offset, max(100, offset - 300), 10)
    assert sizes.total == 40
    sizes.note(100_000, 100_000, 5)
    assert sizes.total == 5


def test_a_record_says_what_the_newest_snapshot_cost_and_leaves_out_what_is_not_known() -> None:
    assert SavedSnapshot(7).metrics() == {"snapshot_offset": 7}
    record = {"offset": 9, "state_bytes": 8192, **SavedSnapshot(7, COST).metrics()}
    found = moment(0, services(), partition("s", 0, **record)).found
    (row,) = found.partitions
    assert (row.snapshot_offset, row.state_bytes) == (7, 8192)
    assert row.snapshot == SnapshotRow(1_800_000_000.25, 4096, 7.5, 1.25)
    assert found.stages[0].state_bytes == 8192
    line = PartitionLine(row, PartitionTrend(), 1_800_000_030.25)
    assert line.snapshot == "30 s"


def test_a_cost_that_is_no_number_or_half_told_is_none() -> None:
    for broken in ({"snapshot_bytes": "many"}, {"snapshot_ms": "nan"}, {"snapshot_saved": ""}):
        record = {"offset": 9, "state_bytes": "-", **SavedSnapshot(7, COST).metrics(), **broken}
        found = moment(
            0, services(), {**partition("s", 0, **record), **partition("s", 1, state_bytes=3)}
        ).found
        assert (found.partitions[0].snapshot, found.partitions[0].state_bytes) == (None, None)
        assert found.stages[0].state_bytes is None


def test_a_store_that_takes_no_snapshots_needs_a_person_and_is_a_change_as_is_its_return() -> None:
    def at(time_s: float, fault: str) -> tuple[TimedInspection, list[Need]]:
        records = {**partition("s", 0, offset=5, snapshot_fault=fault), **partition("s", 1, offset=5)}
        found = moment(time_s, services(receiver={"lag": 0}), records)
        return found, needs(found.found, measured(found))

    (well, none), (broken, some) = at(0, ""), at(1, "the bucket does not answer")
    assert none == []
    (need,) = some
    assert need.level is Level.NOTICE
    assert need.what == "1 of 2 partitions is not saved: the bucket does not answer"
    assert stuck(well.found.partitions) == []
    assert stuck(broken.found.partitions) == [
        "[yellow]1 partition is not saved[/yellow]: the bucket does not answer"
    ]
    (begun,) = changes_between(well.found, broken.found, 1.0)
    assert (begun.what, begun.text) == ("snapshots", "not saved: s/0: the bucket does not answer")
    (ended,) = changes_between(broken.found, well.found, 2.0)
    assert (ended.what, ended.text) == ("snapshots", "saved again: s/0")
    assert broken.found.partitions[0].id == PartitionId("s", 0)
