"""Whether an application can go on from what is kept, looked at before anything runs."""

from pathlib import Path

import pytest

from bettong.errors import LogHoleError, StateChangedError
from bettong.settings import ProcessorSettings, read
from bettong.snapshots.chain import Increment
from bettong.snapshots.directory import DirectorySnapshots
from bettong.worker.partition import Assignment, PartitionWorker
from bettong_processor.programs import Programs, programs
from bettong_processor.restoring import Limits
from bettong_processor.resuming import check, holes

PROGRAM = """
from dataclasses import dataclass
import bettong

@dataclass
class Note:
    text: str

@dataclass
class Kept:
    {field}

def keep(note: Note, kept: Kept) -> Note:
    return note

app = bettong.Application("kept")
app.source("notes", schema=Note, key="text").stateful(keep, state=Kept).sink("out")
"""
LIMITS = Limits(partitions=2, frame_bytes_max=1024 * 1024)
TOPIC = "kept.stage.notes"


def made(folder: Path, name: str, field: str) -> Programs:
    file = folder / name
    file.write_text(PROGRAM.format(field=field))
    overrides = {"application": str(file), "compiled": False, "kernel_cache": folder / "kernels"}
    return programs(read(ProcessorSettings, overrides))


def saved(ready: Programs, store: DirectorySnapshots, *, partition: int) -> int:
    """A snapshot of a partition after one record; its offset."""
    worker = PartitionWorker(ready.stages["notes"], Assignment("kept", partition, 2, 1024 * 1024))
    worker.fold(0, b"no frame")
    store.save("notes", partition, *worker.increment())
    return worker.next_offset


def test_a_log_that_was_trimmed_beyond_the_newest_snapshot_is_a_hole() -> None:
    place = ("notes", 0)
    whole = Increment(12, 0, 12)
    assert holes({place: [whole]}, {place: 12}) == {}
    assert holes({place: [whole]}, {place: 13}) == {place: (12, 13)}
    assert holes({place: []}, {place: 1}) == {place: (0, 1)}
    assert holes({place: [Increment(20, 12, 12)]}, {place: 13}) == {place: (0, 13)}, (
        "its chain is not complete"
    )
    assert holes({place: []}, {place: 0}) == {}


def test_a_start_from_kept_states_is_allowed_and_one_over_a_hole_refused(tmp_path: Path) -> None:
    ready, store = made(tmp_path, "app.py", "count: int = 0"), DirectorySnapshots(tmp_path / "states")
    elsewhere = DirectorySnapshots(tmp_path / "other")
    check(ready, LIMITS, [store], {})
    offset = saved(ready, store, partition=0)
    check(ready, LIMITS, [elsewhere, store], {(TOPIC, 0): offset})
    with pytest.raises(LogHoleError, match=r"partition 1: no state reaches offset 4, .* it has no snapshot"):
        check(ready, LIMITS, [store], {(TOPIC, 0): offset, (TOPIC, 1): 4})


def test_a_state_of_another_version_is_refused_wherever_it_lies(tmp_path: Path) -> None:
    ready, store = made(tmp_path, "app.py", "count: int = 0"), DirectorySnapshots(tmp_path / "states")
    saved(ready, store, partition=1)
    changed = made(tmp_path, "changed.py", "total: float = 0.0")
    with pytest.raises(StateChangedError, match="snapshot of kept/notes/1"):
        check(changed, LIMITS, [DirectorySnapshots(tmp_path / "other"), store], {})


def test_a_damaged_state_is_left_to_the_workers_which_take_the_one_before(tmp_path: Path) -> None:
    ready, store = made(tmp_path, "app.py", "count: int = 0"), DirectorySnapshots(tmp_path / "states")
    saved(ready, store, partition=0)
    (increment,) = store.increments("notes", 0)
    store.save("notes", 0, increment, b"BTG2 damaged")
    check(ready, LIMITS, [store], {})
