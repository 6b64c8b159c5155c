"""Two runs of a repartitioning at a time, or one that hangs and wakes up later: one counts, and nothing is lost."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bettong.errors import BettongError
from bettong.identifiers import PartitionId
from bettong.snapshots.partitioning import Partitioning, fault_of, newest
from tests.samples.worker import tick
from tests.simulation.application_at_rest import FIRST, Pause, World, ready

# What a run may report that was overtaken, or that finds another run at work, or services that run again.
SAID = re.compile(
    "another `bettong repartition` of application 'meters' runs at the same time, or has undone this one: "
    "|application 'meters' (is being changed|is not being repartitioned|has switched to)"
    "|the log of 'meters' has grown meanwhile|stage 'places', partition "
    r"|(readings|places)/\d: a part of its newest snapshot, at \d+, was deleted while it was read"
)


@pytest.fixture
def worlds(tmp_path: Path) -> Callable[[], World]:
    """Makes new worlds."""
    numbers = iter(range(10_000))

    def made() -> World:
        folder = tmp_path / str(next(numbers))
        shutil.rmtree(folder, ignore_errors=True)
        return World(folder)

    return made


def tried(call: Callable[..., object], *arguments: object) -> bool:
    """Whether the run succeeded; otherwise it reported why not."""
    said = ""
    try:
        call(*arguments)
    except BettongError as error:
        said = str(error)
    assert not said or SAID.match(said), said
    return not said


def ids(partitions: int) -> list[PartitionId]:
    return [PartitionId(stage.name, each) for stage in ready().plan.stages for each in range(partitions)]


def run_for_a_while(world: World) -> None:
    """Services, which fold some records more and save each time. They start where no change is under way."""
    record = world.rest.record
    partitions = FIRST if record is None else record.partitions
    if fault_of(record, "meters", partitions) is not None:
        return
    for id_ in ids(partitions):
        worker = world.worker(id_, partitions)
        for _ in range(3):
            worker.fold(world.rest.ends()[id_], tick(1))
            world.rest.logs.setdefault(id_, []).append(tick(1))
            world.snapshots.save(id_, *worker.increment())


def finish(world: World) -> int:
    """Finishes a change that is under way. Returns how many partitions there are then."""
    record = world.rest.record
    if record is not None and record.change is not None:
        world.change(record.partitions if record.change.switched else record.change.partitions)
    record = world.rest.record
    return FIRST if record is None else record.partitions


def check(world: World, expected: object) -> None:
    """All states are where their keys belong, and they are those of the ends of the logs: nothing was reset."""
    partitions = finish(world)
    assert fault_of(world.rest.record, "meters", partitions) is None
    assert world.states(partitions) == expected
    for id_ in ids(partitions):
        assert world.worker(id_, partitions).next_offset == world.rest.ends()[id_]


def calls_of(world: World, to: int) -> int:
    pause = Pause(0, lambda: None)
    world.change(to, pause)
    return pause.calls


@pytest.mark.parametrize("then", ["8", "back, 8", "2, runs", "8, runs", "back, runs"])
def test_while_a_run_hangs_at_any_step_another_one_does_its_work(
    worlds: Callable[[], World], then: str
) -> None:
    expected, done = worlds().states(FIRST), {True: 0, False: 0}

    def meanwhile(world: World) -> None:
        for each in then.split(", "):
            if each == "runs":
                run_for_a_while(world)
            elif each == "back":
                tried(world.repartitioning().take_back)
            else:
                tried(world.change, int(each))

    for at in range(1, calls_of(worlds(), 2) + 1):
        world = worlds()
        done[tried(world.change, 2, Pause(at, partial(meanwhile, world)))] += 1
        check(world, expected)
    assert done[False] > 5


class Other:
    """A run in a thread of its own: until its call number `at`, then, when asked, to its end."""

    def __init__(self, world: World, to: int, at: int) -> None:
        self._there, self._go_on = threading.Event(), threading.Event()
        self._world, self._to, self._at = world, to, at
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.faults: list[BaseException] = []
        self.started = False

    def run_until_there(self) -> None:
        self.started = True
        self._thread.start()
        assert self._there.wait(60)

    def run_to_its_end(self) -> None:
        self._go_on.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        assert not self.faults

    def _run(self) -> None:
        try:
            tried(self._world.change, self._to, Pause(self._at, self._pause))
        except BaseException as error:  # noqa: BLE001 - the test shows it
            self.faults.append(error)
        self._there.set()

    def _pause(self) -> None:
        self._there.set()
        assert self._go_on.wait(60)


@pytest.mark.parametrize("to", [2, 8])
def test_two_runs_take_turns_at_any_two_steps(worlds: Callable[[], World], to: int) -> None:
    expected = worlds().states(FIRST)
    calls, others = calls_of(worlds(), 2), calls_of(worlds(), to)
    # Each step of the one with a few of the other.
    pairs = [
        (each, there) for each in range(1, calls + 1) for there in range(1 + each * 7 % 19, others + 1, 19)
    ]
    for at, there in pairs:
        world = worlds()
        other = Other(world, to, there)
        tried(world.change, 2, Pause(at, other.run_until_there))
        if other.started:
            other.run_to_its_end()
        check(world, expected)


def test_a_record_of_a_run_that_was_overtaken_does_not_count() -> None:
    first = Partitioning(0, 3)
    a, b = first.begun(2, "a"), first.begun(8, "b")
    begins = {"readings": (9, 9, 9)}
    assert newest([]) is None
    for records, found in [
        ([a, b], b),
        ([a, b, a.switched(begins)], b),
        ([a, b, b.switched(begins)], b.switched(begins)),
        ([a, a.completed(), a.switched(begins)], a.completed()),
        ([a, a.completed(), b], b),
        ([a, a.switched(begins), b], a.switched(begins)),
        ([a, a.switched(begins), a.completed()], a.switched(begins)),
        ([a, a.switched(begins), a.switched(begins).completed(), b], a.switched(begins).completed()),
        ([a, b, a.completed()], b),
        ([a, b, b.completed()], b.completed()),
    ]:
        assert newest(records) == found
