"""Marks the record that each partition is folding, in shared memory that outlives the process, and counts deaths there.

    <stage>.marks     a slot of 128 bytes a partition, sixteen signed 64-bit integers

     0  process id        that folds, or folded last          8  deaths: the offset + 1, 0 for none
     1  its start         as ids are reused                   9  how many in a row
     2  offset + 1        of the record, 0 for none          10-12  of the last one, as 3 to 5
     3  computation + 1   that runs, if marked               13  how many in a row at the same position
     4  index + 1         of its message in the frame        14  how many when something was excluded for them
     5  limit, ms         for which it was killed            15  as 6
     6  activity          see Activity

The folder is the deployment's: marks outlive a log that is made anew, where a wrong count costs a trial at most.

Only the folding process writes the left half. A process that acquires a partition whose mark names another process
counts a death, even if that process lives: it may hold the GIL, and have lost the partition without knowing. A wrong
count, for a process that was only paused, costs a trial at most. Two processes that fold one partition at a time
overwrite each other's marks, but never clear the other's: then a death is missed, and counted the next time.
"""

import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from bettong.identifiers import PartitionId

_CELLS = 16
_SLOT_BYTES = 8 * _CELLS
_PID, _START, _OFFSET, _COMPUTATION, _INDEX, _LIMIT, _ACTIVITY = range(7)
_DEATHS_AT, _DEATHS, _LAST = 8, 9, 10
_SAME, _DECIDED, _DEATHS_ACTIVITY = 13, 14, 15


class Activity(IntEnum):
    """What a process was doing. Deaths while saving or restoring count in a row at any offset, since it varies."""

    FOLDING = 0
    SAVING = 1
    RESTORING = 2


@dataclass(frozen=True, slots=True)
class Deaths:
    """Deaths of workers at one record, or at a partition's states: how many in a row, and the last one's position.

    `computation`: its number within the stage; None if it was not marked, as `index`. `limit_ms`: the time limit for
    which the last one was killed; 0: it died by itself. `same`: how many of the last were at the same position.
    `decided`: how many there were when something was excluded from the record.
    """

    offset: int
    count: int
    computation: int | None
    index: int | None
    limit_ms: int
    same: int = 1
    decided: int = 0
    activity: Activity = Activity.FOLDING


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process on this machine: its id, and its start time in the kernel's ticks; 0 if not known."""

    pid: int
    start: int

    @classmethod
    def own(cls) -> "ProcessIdentity":
        """This process."""
        return cls(os.getpid(), _start(os.getpid()) or 0)


class Mark:
    """The slot of one partition. `begin` and `end` cost a quarter of a microsecond together."""

    __slots__ = ("_cells", "_path", "_pid", "_start")

    def __init__(self, cells: memoryview, path: Path, own: ProcessIdentity) -> None:
        self._cells = cells
        self._path = path
        self._pid, self._start = own.pid, own.start

    def begin(self, offset: int) -> None:
        """This process folds the record at `offset`."""
        cells = self._cells
        cells[_PID], cells[_START] = self._pid, self._start
        cells[_COMPUTATION] = cells[_INDEX] = cells[_LIMIT] = 0
        cells[_OFFSET] = offset + 1

    def begin_states(self, offset: int, activity: Activity) -> None:
        """This process saves or restores the states at `offset`."""
        self._cells[_ACTIVITY] = activity
        self.begin(offset)

    def end_states(self) -> None:
        """It is done, or has failed without dying."""
        self.end()
        if not self._cells[_OFFSET]:
            self._cells[_ACTIVITY] = Activity.FOLDING

    def at(self, computation: int, index: int | None) -> None:
        """This process is at this computation of the stage, and at the message with this index."""
        cells = self._cells
        if cells[_PID] != self._pid or cells[_START] != self._start:
            return
        cells[_COMPUTATION] = computation + 1
        cells[_INDEX] = 0 if index is None else index + 1

    def limit(self, limit_ms: int) -> None:
        """This process is about to be killed because a message took longer than the limit."""
        cells = self._cells
        if cells[_PID] == self._pid and cells[_START] == self._start:
            cells[_LIMIT] = limit_ms

    def end(self) -> None:
        """It has folded the record, or has failed without dying."""
        cells = self._cells
        if cells[_PID] == self._pid and cells[_START] == self._start:
            cells[_OFFSET] = 0

    def deaths(self) -> tuple[Deaths | None, bool]:
        """The counted deaths, with a new one if another process has left its mark; and whether there was a new one."""
        cells = self._cells
        with self._locked():
            at = cells[_OFFSET]
            is_new = at != 0 and (cells[_PID], cells[_START]) != (self._pid, self._start)
            if is_new:
                self._count(at)
            return self.known_deaths(), is_new

    def known_deaths(self) -> Deaths | None:
        """The deaths counted so far; None for none."""
        cells = self._cells
        if not cells[_DEATHS_AT]:
            return None
        return Deaths(
            cells[_DEATHS_AT] - 1,
            cells[_DEATHS],
            computation=cells[_LAST] - 1 if cells[_LAST] else None,
            index=cells[_LAST + 1] - 1 if cells[_LAST + 1] else None,
            limit_ms=cells[_LAST + 2],
            same=cells[_SAME],
            decided=cells[_DECIDED],
            activity=Activity(cells[_DEATHS_ACTIVITY]),
        )

    def decide(self) -> None:
        """Something was excluded from the record for the deaths so far."""
        self._cells[_DECIDED] = self._cells[_DEATHS]

    def forget(self, activity: Activity) -> None:
        """Clears deaths of this activity, which has succeeded now."""
        cells = self._cells
        if cells[_DEATHS_ACTIVITY] == activity:
            cells[_DEATHS_AT] = cells[_DEATHS] = 0

    def _count(self, at: int) -> None:
        cells = self._cells
        activity = cells[_ACTIVITY]
        in_row = cells[_DEATHS_AT] and cells[_DEATHS_ACTIVITY] == activity
        in_row = in_row and (activity != Activity.FOLDING or cells[_DEATHS_AT] == at)
        last, now = (cells[_LAST], cells[_LAST + 1]), (cells[_COMPUTATION], cells[_INDEX])
        same = in_row and last == now
        cells[_SAME] = cells[_SAME] + 1 if same else 1
        cells[_DEATHS] = cells[_DEATHS] + 1 if in_row else 1
        if not in_row:
            cells[_DECIDED] = 0
        cells[_DEATHS_AT], cells[_DEATHS_ACTIVITY] = at, activity
        for index, each in enumerate((_COMPUTATION, _INDEX, _LIMIT)):
            cells[_LAST + index] = cells[each]
        cells[_OFFSET] = cells[_ACTIVITY] = 0

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._path.open("rb") as file:  # closed, it is unlocked
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class Marks:
    """The marks of all partitions, in an existing folder of shared memory."""

    def __init__(self, folder: Path, partitions: int) -> None:
        self._folder = folder
        self._partitions = partitions
        self._cells: dict[str, memoryview] = {}
        self._own: ProcessIdentity | None = None

    def of(self, id_: PartitionId) -> Mark:
        """The mark of a partition. Raises OSError when the folder is full or not writable."""
        stage, partition = id_
        path = self._folder / f"{stage}.marks"
        if stage not in self._cells:
            self._cells[stage] = self._mapped(path)
        if self._own is None or self._own.pid != os.getpid():
            self._own = ProcessIdentity.own()
        cells = self._cells[stage][partition * _CELLS : (partition + 1) * _CELLS]
        return Mark(cells, path, self._own)

    def _mapped(self, path: Path) -> memoryview:
        size = self._partitions * _SLOT_BYTES
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # Allocated now: a write to a page that cannot be allocated would kill the process (SIGBUS).
            os.posix_fallocate(file, 0, size)
            return memoryview(mmap.mmap(file, size)).cast("q")
        finally:
            os.close(file)


def _start(pid: int) -> int | None:
    """The start time of a process, from proc(5); None if it has ended, or is a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *fields = text.rpartition(")")[2].split()
    return None if state in "ZX" else int(fields[18])
