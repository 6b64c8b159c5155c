"""A repartitioning that is interrupted at any call to what it changes: run again it ends as if it had not been, or is
taken back to what was.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bettong.errors import LogError, LogTruncatedError, NotAtRestError
from bettong.identifiers import Origin, PartitionId, SequenceNumber
from bettong.inspection.live.repartitioning import Repartitioned
from bettong.snapshots import snapshot as codec
from bettong.snapshots.chain import Increment
from bettong.snapshots.partitioning import Partitioning, fault_of
from tests.simulation.application_at_rest import FIRST, Cut, CutOffError, World


@pytest.fixture
def worlds(tmp_path: Path) -> Callable[[], World]:
    """Makes new worlds."""
    numbers = iter(range(10_000))

    def made() -> World:
        folder = tmp_path / str(next(numbers))
        shutil.rmtree(folder, ignore_errors=True)
        return World(folder)

    return made


def calls_of(worlds: Callable[[], World], to: int) -> int:
    """How many calls a change makes."""
    cut = Cut(0, done=True)
    worlds().change(to, cut)
    return cut.calls


@pytest.mark.parametrize("to", [1, 2, 8])
def test_states_are_the_same_by_their_keys(worlds: Callable[[], World], to: int) -> None:
    world = worlds()
    before = world.states(FIRST)
    assert len(before["tally"]) == 7
    report = world.change(to)
    assert (report.old, report.new) == (FIRST, to)
    assert report.states == {"readings": 7, "places": len(before["newest"])}
    assert world.states(to) == before
    assert world.settled() == settled(world, to)
    assert world.rest.begun == {id_: end for id_, end in world.rest.ends().items() if id_.partition < to}


@pytest.mark.parametrize("to", [2, 5])
@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_interrupted_at_any_call_it_ends_the_same_when_it_is_run_again(
    worlds: Callable[[], World], to: int, *, done: bool
) -> None:
    straight = worlds()
    straight.change(to)
    for at in range(1, calls_of(worlds, to) + 1):
        world = worlds()
        with pytest.raises(CutOffError):
            world.change(to, Cut(at, done=done))
        may_start(world)
        world.change(to)
        assert world.ends_as() == straight.ends_as(), at
        assert world.rest.begun == straight.rest.begun or world.settled() == settled(world, to)


@pytest.mark.parametrize("to", [2, 5])
@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_interrupted_before_the_switch_it_can_be_taken_back(
    worlds: Callable[[], World], to: int, *, done: bool
) -> None:
    switched = taken_back = 0
    for at in range(1, calls_of(worlds, to) + 1):
        world = worlds()
        before = world.ends_as()
        with pytest.raises(CutOffError):
            world.change(to, Cut(at, done=done))
        record = world.rest.record
        if record is None or record.change is None:
            continue
        if record.change.switched:
            switched += 1
            with pytest.raises(LogError, match=f"has switched to {to} partitions: finish that"):
                world.repartitioning().take_back()
            world.change(to)
            assert world.settled() == settled(world, to)
            continue
        taken_back += 1
        world.repartitioning().take_back()
        assert fault_of(world.rest.record, "meters", FIRST) is None
        assert world.ends_as() == {**before, "record": Partitioning(0, FIRST)}
        world.change(4)
        assert world.settled() == settled(world, 4)
    assert switched > 5
    assert taken_back > 2


@settings(max_examples=30, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_is_tried_and_cut_off_states_are_where_their_keys_belong(
    worlds: Callable[[], World], data: st.DataObject
) -> None:
    world, partitions = worlds(), FIRST
    expected = world.states(FIRST)
    for _ in range(data.draw(st.integers(1, 4))):
        cut = Cut(data.draw(st.integers(1, 120)), done=data.draw(st.booleans()))
        to = data.draw(st.integers(1, 8))
        with suppress(CutOffError):
            world.change(to, cut)
        record = world.rest.record
        if record is not None and record.change is not None and not record.change.switched:
            if data.draw(st.booleans()):
                world.repartitioning().take_back()
            else:
                world.change(to)
        elif record is not None and record.change is not None:
            world.change(to)
        partitions = partitions if world.rest.record is None else world.rest.record.partitions
        assert fault_of(world.rest.record, "meters", partitions) is None
        assert world.states(partitions) == expected


def settled(world: World, partitions: int) -> Partitioning:
    """The stored state after one change: each log ends with its mark."""
    begins: dict[str, list[int]] = {}
    for id_, end in world.rest.ends().items():
        if id_.partition < max(FIRST, partitions):
            begins.setdefault(id_.stage, []).append(end)
    offsets = {stage: tuple(each) for stage, each in begins.items()}
    return Partitioning(1, partitions, begins=offsets, before=FIRST)


def may_start(world: World) -> None:
    """Where services may start with the old number, everything is as it was; where with the new one, all is done."""
    record = world.rest.record
    if fault_of(record, "meters", FIRST) is None:
        assert not any(world.rest.logs.values())
        assert record is None
    elif record is not None and record.change is None:
        for id_, log in world.rest.logs.items():
            assert len(log) == 1
            if id_.partition < record.partitions:
                assert world.worker(id_, record.partitions).next_offset == world.rest.ends()[id_]


def test_there_and_back_again_is_what_was(worlds: Callable[[], World]) -> None:
    world = worlds()
    before = world.states(FIRST)
    for to in (8, 2, 5, FIRST):
        world.change(to)
        assert world.states(to) == before
    assert world.rest.record is not None
    assert (world.rest.record.generation, world.rest.record.partitions) == (4, FIRST)
    assert world.rest.topics == dict.fromkeys(world.rest.topics, 8)
    assert world.change(FIRST) == Repartitioned(FIRST, FIRST, {})


def test_of_logs_that_are_marked_in_part_the_others_get_their_marks(
    worlds: Callable[[], World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, straight = worlds(), worlds()
    straight.change(2)
    mark = world.rest.mark

    def mark_half(marks: dict[PartitionId, tuple[int, bytes]]) -> None:
        mark(dict(list(marks.items())[::2]))
        raise CutOffError

    monkeypatch.setattr(world.rest, "mark", mark_half)
    with pytest.raises(CutOffError):
        world.change(2)
    assert 0 < len(world.rest.logs) < len(straight.rest.logs)
    monkeypatch.undo()
    world.change(2)
    assert world.ends_as() == straight.ends_as()


def test_a_fold_does_not_pass_a_mark_with_states_of_the_generation_before(
    worlds: Callable[[], World],
) -> None:
    world = worlds()
    id_ = PartitionId("readings", 0)
    old = world.worker(id_, FIRST)
    world.change(2)
    (mark,) = world.rest.logs[id_]
    with pytest.raises(LogTruncatedError, match="its application changed to 2 partitions, and no snapshot"):
        old.fold(old.next_offset, mark)
    new = world.worker(id_, 2)
    # Its writer was killed after the write began, and it arrived all the same.
    assert new.fold(new.next_offset, mark) == []


def test_nothing_is_changed_while_the_application_is_not_at_rest(worlds: Callable[[], World]) -> None:
    world = worlds()
    before = world.ends_as()
    world.rest.live = ["sender"]
    with pytest.raises(NotAtRestError, match="sender of 'meters' runs: stop senders first"):
        world.change(8)
    world.rest.live = []
    world.rest.first_ends[PartitionId("places", 1)] += 2
    with pytest.raises(NotAtRestError, match=r"stage 'places', partition 1: saved up to offset \d+, its log"):
        world.change(8)
    assert world.ends_as() == before


def test_a_client_whose_frames_may_have_come_in_part_is_named(worlds: Callable[[], World]) -> None:
    world = worlds()
    world.rest.known[Origin("readings/client")] = SequenceNumber(38)
    with pytest.raises(
        NotAtRestError,
        match=r"of 1 clients have arrived completely: readings/client \(frames 39 to 40\)\. Redis",
    ):
        world.change(8)
    assert world.rest.record is None
    world.change(8, given_up=["readings/client"])
    for number in range(8):
        delivery = world.worker(PartitionId("readings", number), 8)._delivery
        assert delivery.highest[Origin("readings/client")] == 40


def test_another_change_has_to_wait_for_the_one_under_way(worlds: Callable[[], World]) -> None:
    world = worlds()
    world.rest.keep(Partitioning(0, FIRST).begun(5, "another"))
    with pytest.raises(
        LogError, match="is being changed to 5 partitions already, not 8: finish it with --parti"
    ):
        world.change(8)
    world.change(5)
    with pytest.raises(LogError, match="is not being repartitioned: it has 5 partitions"):
        world.repartitioning().take_back()


def test_a_service_that_is_told_another_number_is_refused() -> None:
    assert fault_of(None, "meters", 3) is None
    assert fault_of(Partitioning(2, 8), "meters", 8) is None
    assert "set BETTONG_PARTITIONS to 8" in (fault_of(Partitioning(2, 8), "meters", 3) or "")
    begun = Partitioning(2, 8).begun(3, "a")
    for number in (3, 8):
        assert "from 8 to 3 partitions: finish" in (fault_of(begun, "meters", number) or "")
        assert "--back" in (fault_of(begun, "meters", number) or "")
        assert "--back" not in (fault_of(begun.switched({}), "meters", number) or "")
        assert "from 8 to 3 partitions: finish" in (fault_of(begun.switched({}), "meters", number) or "")


def test_what_is_kept_reads_as_it_was_written() -> None:
    for each in (
        Partitioning(1, 4),
        Partitioning(0, 4).begun(7, "a"),
        Partitioning(3, 4).begun(7, "a").switched({"a": (1, 2, 6), "b": (3, 4, 5)}),
        Partitioning(3, 4).begun(7, "a").switched({"a": (1, 2, 6)}).completed(),
    ):
        assert Partitioning.decode(each.encode()) == each
    with pytest.raises(LogError, match="is damaged"):
        Partitioning.decode(b"\xff\xff")
    with pytest.raises(LogError, match=r"offsets from 0 to 5: expected 1 to \d+"):
        Partitioning.decode(Partitioning(1, 2, begins={"a": (5, 0)}).encode())
    with pytest.raises(LogError, match="expected 1 to 4096 partitions"):
        Partitioning.decode(b"")


def test_a_snapshot_says_its_generation(worlds: Callable[[], World]) -> None:
    world = worlds()
    world.change(2)
    id_ = PartitionId("readings", 1)
    data = world.newest(id_)
    assert data is not None
    found = codec.decode(data, application="meters", partition=id_)
    assert found.generation == 1
    assert world.snapshots.increments(id_)[-1] == Increment(found.offset, 0, found.offset)
    assert world.worker(id_, 2).snapshot() == data


@pytest.mark.parametrize("at", ["add_partitions", "running"])
def test_what_is_appended_meanwhile_is_found_before_the_switch(
    worlds: Callable[[], World], monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    world = worlds()
    method = getattr(world.rest, at)

    def appended(*arguments: Any, **named: Any) -> Any:
        result = method(*arguments, **named)
        if world.rest.record is not None:
            world.rest.first_ends[PartitionId("readings", 1)] += 1
        return result

    monkeypatch.setattr(world.rest, at, appended)
    with pytest.raises(NotAtRestError, match="the log of 'meters' has grown meanwhile: a service runs"):
        world.change(8)
    assert world.settled() == Partitioning(0, FIRST).begun(8, "")
    monkeypatch.undo()
    with pytest.raises(NotAtRestError, match="stage 'readings', partition 1: saved up to offset"):
        world.change(8)
    world.repartitioning().take_back()
    assert world.settled() == Partitioning(0, FIRST)


@pytest.mark.parametrize("name", ["readings/none", "nothing/*", "readings/cli*", "*"])
def test_a_client_that_nobody_knows_cannot_be_given_up(worlds: Callable[[], World], name: str) -> None:
    with pytest.raises(NotAtRestError, match=f"--give-up {re.escape(name)}: no stage knows it"):
        worlds().change(8, given_up=[name])


def test_all_clients_of_a_source_can_be_given_up(worlds: Callable[[], World]) -> None:
    world = worlds()
    world.rest.known.clear()
    with pytest.raises(
        NotAtRestError, match=r"of 2 clients have arrived .*: limits/client .*, readings/client \("
    ):
        world.change(8)
    with pytest.raises(NotAtRestError, match="of 1 clients have arrived completely: limits/client"):
        world.change(8, given_up=["readings/*"])
    world.change(8, given_up=["readings/*", "limits/client"])
    assert world.states(8) == worlds().states(FIRST)
