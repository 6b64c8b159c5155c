"""Which record each partition is at, in a file of shared memory that outlives the process, and the deaths found there.

    <stage>.marks     a slot of 128 bytes a partition, sixteen signed 64-bit integers

     0  process id        of who folds or folded last         8  deaths: the offset + 1, 0 for none
     1  its start         ids are given again                 9  how many in a row
     2  offset + 1        of the record at work, 0 for none  10-12  of the last one, as 3 to 5
     3  computation + 1   at work, where it was marked       13  how many in a row at the same place
     4  index + 1         of its message in the frame        14  how many when something was left out for them
     5  limit, ms         that the process was ended for     15  as 6
     6  activity          see Activity

No name of a stage has a dot: the file is never taken for a partition's snapshots, which lie beside it.

Only the folding process writes the left half. A process that acquires a partition whose mark names another process
counts a death, whether that one lives or not: it may keep Python's lock, and have lost the partition without knowing.
A wrong count, of one that was paused, costs a trial at most. Two who fold one partition at a time overwrite each
other's marks, and never take away what the other has written: then a death is missed, and counted the next time.
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
    """What a process was doing. Deaths at states are in a row whatever their offset: it changes with each attempt."""

    FOLDING = 0
    SAVING = 1
    RESTORING = 2


@dataclass(frozen=True, slots=True)
class Deaths:
    """Of workers at one record, or at the states of a partition: how many in a row, and where the last one was.

    `computation`: its number among those of the stage; None where it was not marked, as `index`. `limit_ms`: the last
    one was ended for it; 0: it died by itself. `same`: how many of the last were at that place. `decided`: how many
    there were when something was left out of the record.
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
    """Of a process of this machine: its id, and when it began, in the kernel's ticks; 0 where that is not known."""

    pid: int
    start: int

    @classmethod
    def own(cls) -> "ProcessIdentity":
        """Of this process."""
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
        """It has, or has given up in good order."""
        self.end()
        if not self._cells[_OFFSET]:
            self._cells[_ACTIVITY] = Activity.FOLDING

    def at(self, computation: int, index: int | None) -> None:
        """It is at this computation of the stage, and at the message of this index."""
        cells = self._cells
        if cells[_PID] != self._pid or cells[_START] != self._start:
            return
        cells[_COMPUTATION] = computation + 1
        cells[_INDEX] = 0 if index is None else index + 1

    def limit(self, limit_ms: int) -> None:
        """It is about to be ended, for it has taken longer."""
        cells = self._cells
        if cells[_PID] == self._pid and cells[_START] == self._start:
            cells[_LIMIT] = limit_ms

    def end(self) -> None:
        """It has folded the record, or given up in good order."""
        cells = self._cells
        if cells[_PID] == self._pid and cells[_START] == self._start:
            cells[_OFFSET] = 0

    def deaths(self) -> tuple[Deaths | None, bool]:
        """The deaths that are known, another process's that left its mark included; whether one was new."""
        cells = self._cells
        with self._locked():
            at = cells[_OFFSET]
            is_new = at != 0 and (cells[_PID], cells[_START]) != (self._pid, self._start)
            if is_new:
                self._count(at)
            return self.known_deaths(), is_new

    def known_deaths(self) -> Deaths | None:
        """The deaths that were counted so far."""
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
        """Something is left out of the record for the deaths so far."""
        self._cells[_DECIDED] = self._cells[_DEATHS]

    def forget(self, activity: Activity) -> None:
        """What deaths of this kind were at has been done by now."""
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
    """Of all partitions, in a folder of shared memory that is there."""

    def __init__(self, folder: Path, partitions: int) -> None:
        self._folder = folder
        self._partitions = partitions
        self._cells: dict[str, memoryview] = {}
        self._own: ProcessIdentity | None = None

    def of(self, id_: PartitionId) -> Mark:
        """The mark of a partition. Raises OSError when the folder is full, or not to be written."""
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
            # Memory that is not there would end the process when it is written: it is taken now.
            os.posix_fallocate(file, 0, size)
            return memoryview(mmap.mmap(file, size)).cast("q")
        finally:
            os.close(file)


def _start(pid: int) -> int | None:
    """When a process began, by proc(5); None for one that is gone, or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *fields = text.rpartition(")")[2].split()
    return None if state in "ZX" else int(fields[18])
