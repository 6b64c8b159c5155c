"""States that kill the worker which saves or restores them, in real processes: named, and the partition goes on."""

import ctypes
import faulthandler
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
import structlog

import bettong
from bettong import Application, metrics
from bettong.application.plan import Plan, plan
from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.errors import DeadlyStateError
from bettong.identifiers import PartitionId
from bettong.snapshots.chain import Increment
from bettong.worker.halving import Death, Unknown
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import program
from bettong_processor.crashes.marks import Activity, Marks
from bettong_processor.crashes.states import GuardedStates
from bettong_processor.crashes.trial import Trial
from bettong_processor.programs import Programs
from bettong_processor.reporting import PartitionMetrics
from bettong_processor.restoring import Restoring, WorkerLimits
from tests.samples.worker import FRAME_BYTES_MAX, data
from tests.simulation.crash_guards import guard

ID = PartitionId("in", 0)
DONE = 42
FAULT = metrics.FAULT.name
LIMITS = WorkerLimits(1, FRAME_BYTES_MAX)
# What a class does where it is pickled or unpickled; the processes of a test inherit it.
DEEDS: dict[str, Callable[[], object]] = {}


@dataclass
class Item:
    key: str
    value: int


class Kept:
    """Its code in C may crash."""

    def __init__(self) -> None:
        self.total = 0

    def __getstate__(self) -> dict[str, int]:
        if self.total >= 5:
            DEEDS.get("save", int)()
        return {"total": self.total}

    def __setstate__(self, state: dict[str, int]) -> None:
        DEEDS.get("restore", int)()
        self.total = state["total"]


def add(item: Item, kept: Any) -> Item:
    kept.total += item.value
    return item


def described() -> Plan:
    app = Application("meters")
    app.source("in", schema=Item, key="key").stateful(
        add, name="fold", state=Kept, state_codec=bettong.Pickle
    ).sink("out")
    return plan(app)


LOG = [data("in/a", number, [Item("k", 1)]) for number in range(1, 9)]


@pytest.fixture(autouse=True)
def harmless() -> None:
    DEEDS.clear()


def life(folder: Path) -> int:
    """One process: it restores the newest state, folds the rest of the log, and saves after each record."""
    child = os.fork()
    if child == 0:
        code = 99
        reported: list[str] = []
        try:
            faulthandler.disable()
            code = lived(folder, reported)
        except DeadlyStateError:
            code = 5
        finally:
            (folder / "reported").write_text("\n".join(reported))
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def lived(folder: Path, reported: list[str]) -> int:
    own = guard(folder / "marks", reported=reported)
    states = GuardedStates(own)
    store = DirectorySnapshots(folder / "store")
    worker = restoring().newest(store, ID, states)
    fold = own.of(worker)
    (folder / "begun").write_text(str(worker.next_offset))
    for offset in range(worker.next_offset, len(LOG)):
        fold(offset, LOG[offset])
        if (saved := states.increment(worker)) is not None:
            store.save(ID, *saved)
    return DONE


def restoring() -> Restoring:
    return Restoring(made(), LIMITS, structlog.get_logger())


def made() -> Programs:
    planned = described()
    return Programs(planned, {"in": program(planned.stages[0], compiled=False, state_key=b"k" * 32)})


def fresh() -> PartitionWorker:
    return restoring().fresh(ID)


def reported(folder: Path) -> str:
    return (folder / "reported").read_text()


def segfault() -> None:
    ctypes.string_at(0)


def test_a_state_that_kills_who_saves_it_is_named_and_the_partition_goes_on_without_a_snapshot(
    tmp_path: Path,
) -> None:
    DEEDS["save"] = segfault
    assert [life(tmp_path) for _ in range(4)] == [-signal.SIGSEGV, -signal.SIGSEGV, DONE, DONE]
    last = reported(tmp_path).splitlines()[-1]
    assert last == (
        "in/0: workers died 2 time(s) while they saved the states of stage 'in', computation 'fold', the last one at"
        " offset 5, and so did a trial (killed the worker: signal 11 (SIGSEGV), computation 'fold'): no snapshot, a"
        " restart folds the log again from offset 4; results go on. Give workers more memory, shorten"
        " BETTONG_SNAPSHOT_INTERVAL_MS, or mend what saves that state"
    )
    DEEDS.clear()
    assert life(tmp_path) == DONE
    assert (tmp_path / "begun").read_text() == "4"
    assert reported(tmp_path).splitlines()[-1] == "in/0: "
    assert life(tmp_path) == DONE
    assert (tmp_path / "begun").read_text() == "8"
    assert reported(tmp_path) == ""


def test_a_state_that_kills_who_restores_it_is_named_and_kills_nobody_any_more(tmp_path: Path) -> None:
    assert life(tmp_path) == DONE
    DEEDS["restore"] = segfault
    assert [life(tmp_path) for _ in range(4)] == [-signal.SIGSEGV, -signal.SIGSEGV, 5, 5]
    assert reported(tmp_path).startswith(
        "in/0: workers died 2 time(s) while they restored the states of stage 'in', computation 'fold', the last one at"
    )
    assert "the partition waits. Give workers more memory" in reported(tmp_path)
    DEEDS.clear()
    assert life(tmp_path) == DONE
    assert reported(tmp_path) == "in/0: "
    assert life(tmp_path) == DONE
    assert reported(tmp_path) == ""


def test_a_state_that_cannot_be_saved_is_tried_again_after_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    DEEDS["save"] = segfault
    assert [life(tmp_path) for _ in range(2)] == [-signal.SIGSEGV] * 2
    trials: list[float] = []
    now_s = [0.0]

    def run(*_: object) -> Death:
        trials.append(now_s[0])
        return Death("killed the worker", "fold")

    monkeypatch.setattr("bettong_processor.crashes.states.Trial.run", run)
    own, worker = guard(tmp_path / "marks"), fresh()
    fold = own.of(worker)
    states = GuardedStates(own, lambda: now_s[0])
    fold(0, LOG[0])
    for each_s in (100.0, 100.1, 129.9, 130.0, 130.1):
        now_s[0] = each_s
        assert states.increment(worker) is None
    assert trials == [100.0, 130.0]
    own.marks.of(ID).forget(Activity.SAVING)  # another process has saved them
    assert states.increment(worker) is not None


@pytest.mark.parametrize("seen", ["when it saves", "when it acquires the partition again"])
def test_what_another_process_has_mended_is_reported_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: str
) -> None:
    DEEDS["save"] = segfault
    assert [life(tmp_path) for _ in range(2)] == [-signal.SIGSEGV] * 2
    monkeypatch.setattr("bettong_processor.crashes.states.Trial.run", lambda *_: Death("killed", "fold"))
    written: list[tuple[PartitionId, object]] = []
    reports = PartitionMetrics(cast("Any", Written(written)), lambda: 0.0, structlog.get_logger(), 30)
    own, worker = replace(guard(tmp_path / "marks"), reports=reports), fresh()
    own.of(worker)(0, LOG[0])
    states = GuardedStates(own, lambda: 0.0)
    assert states.increment(worker) is None
    own.of(worker)
    assert "while they saved" in str(reports.of(worker, None, "")[FAULT]), "it still cannot be saved"
    assert len(written) == 1
    own.marks.of(ID).forget(Activity.SAVING)
    if seen == "when it saves":
        states.increment(worker)
    else:
        own.of(worker)
    assert reports.of(worker, None, "")[FAULT] == ""
    assert written[1:] == [(ID, "")]
    own.of(worker)
    states.increment(worker)
    assert len(written) == 2, "what is not held costs nothing"


class Written:
    """Live metrics, of which only faults are looked at."""

    def __init__(self, written: list[tuple[PartitionId, object]]) -> None:
        self._written = written

    def write_partition(self, partition: PartitionId, values: Mapping[str, object]) -> None:
        self._written.append((partition, values[FAULT]))


def test_all_increments_of_a_suspect_state_are_tried_in_one_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert life(tmp_path) == DONE
    DEEDS["restore"] = segfault
    assert [life(tmp_path) for _ in range(2)] == [-signal.SIGSEGV] * 2
    DEEDS.clear()
    ended: list[Death | Unknown | None] = []
    run = Trial.run

    def counted(trial: Trial, task: Callable[[], object]) -> Death | Unknown | None:
        ended.append(run(trial, task))
        return ended[-1]

    monkeypatch.setattr(Trial, "run", counted)
    saving, saved = fresh(), dict[Increment, bytes]()
    for offset, value in enumerate(LOG):
        saving.fold(offset, value)
        saved.update([saving.increment()])
    states, worker = GuardedStates(guard(tmp_path / "marks")), fresh()
    assert restoring().apply_increments(worker, tuple(saved), lambda _, each: saved[each], states)
    assert worker.snapshot() == saving.snapshot()
    assert ended == [None], "one for eight increments"
    DEEDS["restore"] = segfault
    with pytest.raises(DeadlyStateError, match=r"while they restored the states of stage 'in'.*SIGSEGV"):
        restoring().apply_increments(fresh(), tuple(saved), lambda _, each: saved[each], states)
    assert len(ended) == 2


def test_a_mark_of_a_version_with_more_computations_ends_nobody(tmp_path: Path) -> None:
    assert life(tmp_path) == DONE
    for _ in range(2):
        if (child := os.fork()) == 0:
            mark = Marks(tmp_path / "marks", 16).of(ID)
            mark.begin_states(8, Activity.RESTORING)
            mark.at(99, None)
            os._exit(0)
        os.waitpid(child, 0)
        Marks(tmp_path / "marks", 16).of(ID).deaths()
    DEEDS["restore"] = segfault
    assert life(tmp_path) == 5
    assert reported(tmp_path).startswith(
        "in/0: workers died 2 time(s) while they restored the states of stage 'in', the last one at offset 8, and"
    )


def test_one_death_is_chance_and_those_at_records_are_others(tmp_path: Path) -> None:
    mark = Marks(tmp_path, 4).of(ID)

    def die(offset: int, activity: Activity) -> tuple[int, Activity]:
        child = os.fork()
        if child == 0:
            of = Marks(tmp_path, 4).of(ID)
            of.begin(offset) if activity is Activity.FOLDING else of.begin_states(offset, activity)
            os._exit(0)
        os.waitpid(child, 0)
        deaths, _ = mark.deaths()
        assert deaths is not None
        return deaths.count, deaths.activity

    assert die(5, Activity.FOLDING) == (1, Activity.FOLDING)
    assert die(5, Activity.SAVING) == (1, Activity.SAVING)
    assert die(9, Activity.SAVING) == (2, Activity.SAVING)
    assert die(9, Activity.RESTORING) == (1, Activity.RESTORING)
    assert die(9, Activity.FOLDING) == (1, Activity.FOLDING)
    assert die(9, Activity.FOLDING) == (2, Activity.FOLDING)
    mark.forget(Activity.SAVING)
    assert mark.known_deaths() is not None
    assert die(9, Activity.SAVING) == (1, Activity.SAVING)
    mark.forget(Activity.SAVING)
    assert mark.known_deaths() is None
