"""Messages that kill the worker, in real processes: found, left out, and nothing else is lost."""

import gc
import itertools
import mmap
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bettong.errors import PoisonError, SupersededError
from bettong.frames.frame import tick_record
from bettong.identifiers import PartitionId
from bettong.worker.halving import Death, Unknown
from bettong.worker.partition import Assignment, PartitionWorker
from bettong_processor.crashes.marks import Marks
from bettong_processor.crashes.trial import SuspectRecord, Trial
from bettong_processor.crashes.watch import Watch
from tests.samples.deadly import Number, Seen, count, count_compiled, frame, ready
from tests.samples.worker import FRAME_BYTES_MAX, dead_letters, results
from tests.simulation.crash_guards import guard
from tests.simulation.worker_lives import DONE, fold_in_a_process, live, lived, output
from tests.waiting import eventually

OUT = "meters.sink.out"
SEGFAULT = "killed the worker: signal 11 (SIGSEGV)"


@pytest.mark.parametrize(
    ("deed", "limit_ms", "reason"),
    [
        (1, 0, SEGFAULT),
        (2, 0, "killed the worker: exit code 7"),
        (3, 0, "killed the worker: exit code 0"),
        (4, 0, "killed the worker: signal 9 (SIGKILL)"),
        (5, 300, "took longer than 300 ms (BETTONG_MESSAGE_MS_MAX)"),
        (6, 200, "took longer than 200 ms (BETTONG_MESSAGE_MS_MAX)"),
    ],
)
def test_a_message_that_kills_is_a_dead_letter_and_all_others_are_folded(
    deed: int, limit_ms: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bettong_processor.crashes.watch.TURN_S", 0.3)
    log = [frame(1, [0, 9]), frame(2, [0, 0, 0, deed, 0, 0, 0]), frame(3, [0])]
    # Where the limit is known to be the cause, the second process knows what to do; not of one that the kernel ended.
    assert lived(ready(), log, tmp_path, limit_ms) == (2 if deed == 5 else 3)
    found = output(tmp_path)
    (dead_letter,) = dead_letters(found)
    assert (dead_letter.computation, dead_letter.reason) == ("count", reason)
    assert (dead_letter.origin, dead_letter.sequence, dead_letter.index) == ("in/a", 2, 3)
    assert dead_letter.message == b'{"group":0,"deed":%d}' % deed
    assert [each.deed // 1000 for each in results(found, OUT, Number)] == [1, 1, 2, 2, 1, 3, 2, 3, 4]
    # Without whatever has killed it, a replay leaves out the same.
    harmless = [frame(1, [0, 9]), frame(2, [0, 0, 0, 0, 0, 0, 0]), frame(3, [0])]
    assert fold_in_a_process(ready(), harmless, tmp_path, 0) == DONE
    again = results(output(tmp_path), OUT, Number)
    assert again == results(found, OUT, Number)
    assert [each.index for each in dead_letters(output(tmp_path))] == [3]


@pytest.mark.parametrize(("deed", "limit_ms"), [(1, 0), (5, 50)])
def test_of_a_compiled_function_too(deed: int, limit_ms: int, tmp_path: Path) -> None:
    log = [frame(1, [0, 9, deed, 0, 8, deed, 0])]
    lived(ready(count_compiled), log, tmp_path, limit_ms)
    found = output(tmp_path)
    assert [(each.index, each.computation) for each in dead_letters(found)] == [(2, "count"), (5, "count")]
    assert len(results(found, OUT, Number)) == 5


def test_several_in_a_frame_and_in_several_frames_are_all_found(tmp_path: Path) -> None:
    log = [frame(1, [1, 0, 2, 0]), frame(2, [0]), frame(3, [4])]
    assert lived(ready(), log, tmp_path) == 5
    found = output(tmp_path)
    assert [(each.sequence, each.index) for each in dead_letters(found)] == [(1, 0), (1, 2), (3, 0)]
    assert len(results(found, OUT, Number)) == 3


def test_with_stop_the_partition_stops_there_and_a_mended_function_goes_on(tmp_path: Path) -> None:
    log = [frame(1, [0]), frame(2, [0, 1])]
    of = ready(on_error="stop")
    statuses = [fold_in_a_process(of, log, tmp_path, 0) for _ in range(4)]
    assert statuses == [-11, -11, 8, 8]
    reported = (tmp_path / "stopped").read_text()
    assert f"cannot process a message: {SEGFAULT}; stage 'in', partition 0, offset 1" in reported
    assert fold_in_a_process(of, [log[0], frame(2, [0, 0])], tmp_path, 0) == DONE
    assert dead_letters(output(tmp_path)) == []


@pytest.mark.parametrize(
    ("first", "named"),
    [(frame(1, [0, 9]), "origin in/a, sequence 1"), (tick_record("in", 1), "origin in/tick, sequence 0")],
    ids=["messages", "a TICK"],
)
def test_a_death_that_was_none_of_its_messages_changes_nothing(
    tmp_path: Path, first: bytes, named: str
) -> None:
    of, log = ready(), [first, frame(2, [0])]
    for _ in range(2):
        child = os.fork()
        if child == 0:
            Marks(tmp_path, 16).of(PartitionId("in", 0)).begin(0)
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        fold_in_a_process(of, [], tmp_path, 0)  # it has noticed
    assert lived(of, log, tmp_path) == 1
    assert dead_letters(output(tmp_path)) == []
    assert f"workers died 2 time(s) at offset 0, {named}" in (tmp_path / "reported").read_text()


def test_who_holds_the_partition_no_more_decides_nothing(tmp_path: Path) -> None:
    log = [frame(1, [0, 1])]
    for _ in range(2):
        assert fold_in_a_process(ready(), log, tmp_path, 0) == -signal.SIGSEGV
    own = guard(tmp_path)
    worker = PartitionWorker(ready(), Assignment("meters", 0, 1, FRAME_BYTES_MAX))
    with pytest.raises(SupersededError, match="in/0 is another task's by now"):
        own.of(worker, lambda: False)(0, log[0])
    assert own.exclusions.known(PartitionId("in", 0)) == {}


def test_a_child_that_takes_all_memory_is_ended_before_the_kernel_ends_somebody() -> None:
    worker = PartitionWorker(ready(), Assignment("meters", 0, 1, FRAME_BYTES_MAX))
    trial = Trial(worker, SuspectRecord(0, frame(1, [0, 7]), 2), 0, memory_left=lambda: 64 << 20)
    assert trial.fold([0, 1]) == Death("killed the worker: out of memory", "count", 1)
    assert trial.fold([0]) is None


def time_for_80_messages(monkeypatch: pytest.MonkeyPatch) -> Callable[[Number, Seen], Number]:
    """Trials that end for their age at the 81st message, however fast the machine is; the function that they fold by.

    A child stands at that message, and only then the clock goes on that its trial reads.
    """
    begun = memoryview(mmap.mmap(-1, 8)).cast("q")  # by a trial's child, who shares it with who waits for it
    children: list[int] = []
    ticks = itertools.count()

    class TrialOfFew(Trial):
        def run(self, task: Callable[[], object]) -> Death | Unknown | None:
            def in_child() -> None:
                children.append(os.getpid())
                task()

            begun[0] = 0
            return super().run(in_child)

    def clock() -> float:
        return next(ticks) / 10 if begun[0] > 80 else 0.0

    def count_for_a_time(number: Number, seen: Seen) -> Number:
        if children:
            begun[0] += 1
            if begun[0] > 80:
                threading.Event().wait()
        return count(number, seen)

    monkeypatch.setattr("bettong_processor.crashes.guard.Trial", partial(TrialOfFew, clock=clock))
    monkeypatch.setattr("bettong_processor.crashes.trial.TRIAL_S_MAX", 0.4)
    return count_for_a_time


@pytest.mark.parametrize("kills", [(199,), (150, 199)])
def test_a_killer_behind_more_messages_than_a_child_has_time_for_is_found_and_left_out_alone(
    kills: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = [frame(1, [1 if index in kills else 0 for index in range(200)])]
    of = ready(time_for_80_messages(monkeypatch))
    assert lived(of, log, tmp_path) == 2 + len(kills)
    assert [(each.index, each.reason) for each in dead_letters(output(tmp_path))] == [
        (index, SEGFAULT) for index in kills
    ]
    assert len(results(output(tmp_path), OUT, Number)) == 200 - len(kills)


def test_who_was_paused_at_a_record_costs_no_more_than_one_trial(tmp_path: Path) -> None:
    """Its record is harmless, however often that happens there: what is tried survives."""
    of, log = ready(), [frame(1, [0, 9]), frame(2, [0])]
    paused = []
    for count_ in range(3):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            Marks(tmp_path, 16).of(PartitionId("in", 0)).begin(0)
            os.write(write, b".")
            signal.pause()
        paused.append(child)
        os.read(read, 1)
        assert lived(of, log, tmp_path) == 1, count_
    for child in paused:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert dead_letters(output(tmp_path)) == []
    assert len(results(output(tmp_path), OUT, Number)) == 3


def test_a_function_that_keeps_the_lock_is_found_though_its_slots_live(tmp_path: Path) -> None:
    """Under the resident schedule its partitions go to the next slot long before the kernel ends the process."""
    log = [frame(1, [0, 6, 0])]
    hogs = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            live(ready(), log, tmp_path, 200)
        hogs.append(child)
        eventually(lambda: at_work(tmp_path) == hogs[-1], what="it stands at the record")
    assert fold_in_a_process(ready(), log, tmp_path, 200) == DONE
    assert [each.index for each in dead_letters(output(tmp_path))] == [1]
    for child in hogs:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def at_work(folder: Path) -> int:
    """The process that stands at a record of partition 0; 0 for none."""
    path = folder / "in.marks"
    cells = memoryview(path.read_bytes()).cast("q") if path.exists() and path.stat().st_size else [0] * 3
    return cells[0] if cells[2] else 0


def test_a_record_that_stands_still_is_reported_with_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bettong_processor.crashes.watch.STANDS_S", 0.5)
    reported: list[str] = []
    own = guard(tmp_path, reported=reported)

    def wait(number: Number, seen: Seen) -> Number:
        if number.deed == 5:
            eventually(lambda: bool(reported), what="it is reported")
        return count(Number(number.group, 0), seen)

    worker = PartitionWorker(ready(wait), Assignment("meters", 0, 1, FRAME_BYTES_MAX))
    with Watch(own.at_work, own.reports, 0):
        own.of(worker)(0, frame(1, [0, 5, 0]))
        assert reported[0].startswith("in/0: offset 0, origin in/a, sequence 1, index 1: folded for ")
        eventually(lambda: reported[-1] == "in/0: ", what="it is reported that it goes on")


@pytest.mark.parametrize("was_on", [True, False])
def test_the_garbage_collector_waits_for_a_frame_and_is_afterwards_as_it_was(
    tmp_path: Path, *, was_on: bool
) -> None:
    seen: list[bool] = []

    def look(number: Number, state: Seen) -> Number:
        seen.append(gc.isenabled())
        if number.deed:
            raise ValueError("no")
        return number

    worker = PartitionWorker(ready(look, "stop"), Assignment("meters", 0, 1, FRAME_BYTES_MAX))
    fold = guard(tmp_path).of(worker, lambda: True)
    (gc.enable if was_on else gc.disable)()
    try:
        fold(0, frame(1, [0]))
        assert gc.isenabled() == was_on
        with pytest.raises(PoisonError):
            fold(1, frame(2, [1]))
        assert gc.isenabled() == was_on
    finally:
        gc.enable()
    assert seen[-2:] == [False, False]
