"""Whether an application can resume from its stored states, checked before anything runs."""

import os
import pickle
from pathlib import Path

import pytest

from bettong.config.processor import ProcessorSettings
from bettong.config.reading import read
from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.errors import LogTruncatedError, StateChangedError
from bettong.identifiers import PartitionId, TopicPartition
from bettong.snapshots import snapshot as codec
from bettong.snapshots.chain import Increment
from bettong.worker.partition import Assignment, PartitionWorker
from bettong_processor.programs import Programs, programs
from bettong_processor.restoring import WorkerLimits
from bettong_processor.resuming import check, truncated_logs
from tests.samples.application import COUNTING
from tests.samples.worker import data

NOTES = PartitionId("notes", 0)
NESTED = """
from dataclasses import dataclass, field
import bettong

@dataclass
class Note:
    text: str

@dataclass
class Part:
    {part}

@dataclass
class Kept:
    parts: list[Part] = field(default_factory=lambda: [Part()])

def keep(note: Note, kept: Kept) -> Note:
    return note

{more}
app = bettong.Application("kept")
app.source("notes", schema=Note, key="text").stateful(keep, state=Kept, {options}).sink("out")
"""
LIMITS = WorkerLimits(partitions=2, frame_bytes_max=1024 * 1024)
TOPIC = "kept.stage.notes"


def made(folder: Path, name: str, field: str, text: str = COUNTING) -> Programs:
    file = folder / name
    file.write_text(text if text is not COUNTING else COUNTING.format(field=field))
    overrides = {"application": str(file), "compiled": False, "kernel_cache": folder / "kernels"}
    return programs(read(ProcessorSettings, overrides))


def nested(folder: Path, part: str, more: str = "", options: str = "") -> Programs:
    """An application whose states hold objects of a class of their own."""
    folder.mkdir()
    return made(folder, "app.py", "", NESTED.format(part=part, more=more, options=options))


def saved(ready: Programs, store: DirectorySnapshots, *, partition: int, value: bytes = b"no frame") -> int:
    """A snapshot of a partition after one record; its offset."""
    worker = PartitionWorker(ready.stages["notes"], Assignment("kept", partition, 2, 1024 * 1024))
    worker.fold(0, value)
    store.save(PartitionId("notes", partition), *worker.increment())
    return worker.next_offset


def test_a_log_that_was_truncated_beyond_the_newest_snapshot_is_found() -> None:
    partition = NOTES
    whole = Increment(12, 0, 12)
    assert truncated_logs({partition: [whole]}, {partition: 12}) == {}
    assert truncated_logs({partition: [whole]}, {partition: 13}) == {partition: (12, 13)}
    assert truncated_logs({partition: []}, {partition: 1}) == {partition: (0, 1)}
    assert truncated_logs({partition: [Increment(20, 12, 12)]}, {partition: 13}) == {partition: (0, 13)}, (
        "its chain is not complete"
    )
    assert truncated_logs({partition: []}, {partition: 0}) == {}


def test_a_start_from_kept_states_is_allowed_and_one_over_a_truncated_log_refused(tmp_path: Path) -> None:
    ready, store = made(tmp_path, "app.py", "count: int = 0"), DirectorySnapshots(tmp_path / "states")
    elsewhere = DirectorySnapshots(tmp_path / "other")
    check(ready, LIMITS, [store], {})
    offset = saved(ready, store, partition=0)
    check(ready, LIMITS, [elsewhere, store], {TopicPartition(TOPIC, 0): offset})
    with pytest.raises(
        LogTruncatedError, match=r"partition 1: no state reaches offset 4, .* it has no snapshot"
    ):
        check(ready, LIMITS, [store], {TopicPartition(TOPIC, 0): offset, TopicPartition(TOPIC, 1): 4})


def test_a_state_of_another_version_is_refused_wherever_it_lies(tmp_path: Path) -> None:
    ready, store = made(tmp_path, "app.py", "count: int = 0"), DirectorySnapshots(tmp_path / "states")
    saved(ready, store, partition=1)
    changed = made(tmp_path, "changed.py", "total: float = 0.0")
    with pytest.raises(StateChangedError, match="snapshot of kept/notes/1"):
        check(changed, LIMITS, [DirectorySnapshots(tmp_path / "other"), store], {})


def note(ready: Programs) -> bytes:
    """A frame with one message: a state under its key."""
    (entry,) = ready.stages["notes"].stage.inputs
    return data("notes/a", 1, [entry.schema.message("a")])


def test_a_state_that_holds_objects_of_a_changed_class_is_refused_at_the_start(tmp_path: Path) -> None:
    store = DirectorySnapshots(tmp_path / "states")
    ready = nested(tmp_path / "old", "count: int = 0")
    saved(ready, store, partition=1, value=note(ready))
    check(ready, LIMITS, [store], {})
    changed = nested(tmp_path / "new", "total: float = 0.0")
    with pytest.raises(
        StateChangedError, match=r"state of 'keep': it holds objects of .*Part.* count.* total"
    ):
        check(changed, LIMITS, [store], {})


def test_a_state_that_an_older_version_has_pickled_is_refused_at_the_start(tmp_path: Path) -> None:
    ready, store = made(tmp_path, "app.py", "count: int = 0"), DirectorySnapshots(tmp_path / "states")
    saved(ready, store, partition=0, value=note(ready))
    (increment,) = store.increments(NOTES)
    whole = store.load(NOTES, increment)
    assert whole is not None
    stored = codec.decode(whole, application="kept", partition=PartitionId("notes", 0))
    stored.states["keep"] = pickle.dumps({"a": 1})
    store.save(NOTES, increment, codec.encode(stored))
    with pytest.raises(StateChangedError, match=r"state of 'keep': it is a pickle.*bettong state reset"):
        check(ready, LIMITS, [store], {})


def test_an_increment_that_goes_on_from_another_is_looked_at_by_itself(tmp_path: Path) -> None:
    store = DirectorySnapshots(tmp_path / "states")
    ready = nested(tmp_path / "old", "count: int = 0")
    worker = PartitionWorker(ready.stages["notes"], Assignment("kept", 0, 2, 1024 * 1024))
    for offset, value in enumerate((b"no frame", note(ready))):
        worker.fold(offset, value)
        store.save(NOTES, *worker.increment())
    check(ready, LIMITS, [store], {})
    with pytest.raises(StateChangedError, match="it holds objects of"):
        check(nested(tmp_path / "new", "total: float = 0.0"), LIMITS, [store], {})


def test_a_migration_that_fails_is_reported_at_the_start(tmp_path: Path) -> None:
    store = DirectorySnapshots(tmp_path / "states")
    ready = nested(tmp_path / "old", "count: int = 0")
    saved(ready, store, partition=0, value=note(ready))
    migrate = "def migrate(old, version):\n    return Kept([Part(each.{field}) for each in old.parts])\n"
    options = "version=2, migrate=migrate"
    right = nested(tmp_path / "new", "total: float = 0.0", migrate.format(field="count"), options)
    check(right, LIMITS, [store], {})
    wrong = nested(tmp_path / "wrong", "total: float = 0.0", migrate.format(field="gone"), options)
    with pytest.raises(StateChangedError, match=r"'keep'.*migrate.*AttributeError.*gone.*version 1"):
        check(wrong, LIMITS, [store], {})


DEADLY = """
import os, threading
def migrate(old, version):
    {deed}
"""


def checked(ready: Programs, store: DirectorySnapshots, folder: Path) -> tuple[int, list[str]]:
    """The exit code and output of a process that reads the states."""
    if (child := os.fork()) == 0:
        try:
            said = check(ready, LIMITS, [store], {})
            (folder / "said").write_text("\n".join(said))
        except StateChangedError:
            os._exit(3)
        os._exit(42)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, (folder / "said").read_text().splitlines() if code == 42 else []


@pytest.mark.parametrize(
    ("deed", "trial_s_max", "reason"),
    [
        ("os.kill(os.getpid(), 11)", 60.0, "killed the worker: signal 11 (SIGSEGV)"),
        ("os._exit(0)", 60.0, "killed the worker: exit code 0"),
        ("threading.Event().wait(50)", 0.5, "a trial was not at its end after 0 s"),
    ],
)
def test_a_state_that_kills_who_restores_it_does_not_kill_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: str, trial_s_max: float, reason: str
) -> None:
    monkeypatch.setattr("bettong_processor.crashes.trial.TRIAL_S_MAX", trial_s_max)
    store = DirectorySnapshots(tmp_path / "states")
    ready = nested(tmp_path / "old", "count: int = 0")
    saved(ready, store, partition=0, value=note(ready))
    migrate, options = DEADLY.format(deed=deed), "version=2, migrate=migrate"
    deadly = nested(tmp_path / "new", "total: float = 0.0", migrate, options)
    offset = store.increments(NOTES).copy().pop().offset
    assert checked(deadly, store, tmp_path) == (42, [f"notes/0, states at offset {offset}: {reason}"])


def test_behind_a_state_that_kills_the_next_one_is_looked_at(tmp_path: Path) -> None:
    store = DirectorySnapshots(tmp_path / "states")
    ready = nested(tmp_path / "old", "count: int = 0")
    for partition in (0, 1):
        saved(ready, store, partition=partition, value=note(ready))
    met = str(tmp_path / "met")  # the second one raises
    deed = f"Part().gone if os.path.exists({met!r}) else (open({met!r}, 'x').close(), os._exit(7))"
    deadly = nested(
        tmp_path / "new", "total: float = 0.0", DEADLY.format(deed=deed), "version=2, migrate=migrate"
    )
    assert checked(deadly, store, tmp_path) == (3, [])


def test_a_damaged_state_is_left_to_the_workers_which_take_the_one_before(tmp_path: Path) -> None:
    ready, store = made(tmp_path, "app.py", "count: int = 0"), DirectorySnapshots(tmp_path / "states")
    saved(ready, store, partition=0)
    (increment,) = store.increments(NOTES)
    store.save(NOTES, increment, b"BTG2 damaged")
    check(ready, LIMITS, [store], {})
