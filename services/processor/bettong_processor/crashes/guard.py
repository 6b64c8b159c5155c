"""Folds records so that one which kills the worker does so three times at most.

Before each record its mark is set, after it taken away. The next worker of the partition finds a mark that was left:
from the second death on at an offset (the first, where a message took too long: then the cause is known) the record is
tried in children before it is folded here. What they die of is left out of the fold: a record of the log says so
before anything is folded, so that each replay leaves out the same. With on_error="stop" no such record
is written: the partition stops at that message, and a mended function finds it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from bettong.application.on_error import DEAD_LETTER, STOP
from bettong.errors import FrameError, SupersededError
from bettong.frames.frame import UNREADABLE, Frame, decode
from bettong.garbage import CollectionPaused
from bettong.identifiers import PartitionId
from bettong.logs import Logger
from bettong.worker.exclusions import Exclusion
from bettong.worker.halving import halved
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import PartitionWorker
from bettong.worker.progress import FoldPosition
from bettong_processor.crashes.marks import Deaths, Mark, Marks
from bettong_processor.crashes.trial import SuspectRecord, Trial, computations

# Deaths at one offset after which the record is tried first: one may have been any process's fate.
_DEATHS_MIN = 2
# Messages of one frame that are found one by one, and for how long: the slot's other partitions wait meanwhile.
_GUILTY_MAX = 64
_TRIALS_S_MAX = 120.0
# Bytes of a timer's key and time in a line for people.
_TIMER_SHOWN = 300

Fold = Callable[[int, bytes], list[OutputRecord]]


class Exclusions(Protocol):
    """Where exclusions are kept: `bettong.edges.exclusion_log.ExclusionLog`."""

    def known(self, partition: PartitionId) -> Mapping[int, Exclusion]:
        """Of a partition, by offset, as it grows."""

    def refresh(self, since_s: float | None = None) -> None:
        """Reads what others have added. Raises LogError."""

    def append(self, partition: PartitionId, exclusion: Exclusion) -> Exclusion:
        """Keeps one, and returns what counts. Raises LogError."""


# Called with a partition, and what holds it up or was left out; must not raise.
ReportFault = Callable[[PartitionId, str], None]


@dataclass(slots=True)
class AtWork:
    """What a process folds now, for a thread that looks on: None, or a fold and its record, new for each."""

    fold: tuple[GuardedFold, int, bytes] | None = None


@dataclass(frozen=True, slots=True)
class Guard:
    """Of one process. `limit_ms`: how long a message may take, 0 for ever."""

    marks: Marks
    exclusions: Exclusions
    report_fault: ReportFault
    report_left_out: ReportFault
    log: Logger
    limit_ms: int = 0
    at_work: AtWork = field(default_factory=AtWork)

    def of(self, worker: PartitionWorker, holds: Callable[[], bool] = lambda: True) -> Fold:
        """Folds the records of a worker that has just been restored, or goes on: looks whether others have died.

        `holds`: whether this process is still the one that folds the partition. One that is not must not decide.
        """
        mark = self.marks.of(worker.id)
        deaths, is_new = mark.deaths()
        if deaths is not None and is_new:
            self.log.warning(
                "a worker died, or stood still, while it folded a record",
                **worker.id._asdict(),
                **_named(worker, deaths),
            )
        worker.exclusions = self.exclusions.known(worker.id)
        return GuardedFold(self, worker, mark, deaths, holds).fold


class GuardedFold:
    """Of one worker, for the thread that folds it."""

    __slots__ = ("_at_work", "_deaths", "_guard", "_holds", "_suspect", "mark", "worker")

    def __init__(
        self,
        guard: Guard,
        worker: PartitionWorker,
        mark: Mark,
        deaths: Deaths | None,
        holds: Callable[[], bool],
    ) -> None:
        self.worker = worker
        self.mark = mark
        self._guard = guard
        self._at_work = guard.at_work
        self._deaths = deaths
        self._holds = holds
        self._suspect = -1 if deaths is None else deaths.offset

    def fold(self, offset: int, value: bytes) -> list[OutputRecord]:
        """See PartitionWorker."""
        if offset == self._suspect:
            return self._fold_suspect(offset, value)
        self.mark.begin(offset)
        self._at_work.fold = (self, offset, value)
        try:
            with CollectionPaused():
                return self.worker.fold(offset, value)
        finally:
            self._at_work.fold = None
            self.mark.end()

    def _fold_suspect(self, offset: int, value: bytes) -> list[OutputRecord]:
        """A worker has died at this record: it is reported, and tried first where that was not the first time."""
        self._suspect = -1
        worker, deaths = self.worker, self._deaths
        assert deaths is not None  # noqa: S101 - without one nothing is suspect
        frame = frame_of(value)
        at = FoldPosition("", deaths.index)
        died = f"workers died {deaths.count} time(s) at {record_text(offset, frame, at)}"
        self._guard.report_fault(worker.id, died)
        self._guard.log.warning(
            "folds a record at which workers died",
            **worker.id._asdict(),
            origin=frame.origin,
            sequence=frame.sequence,
            **_named(worker, deaths),
        )
        numbers = {name: number for number, name in enumerate(computations(worker))}
        worker.progress.mark = lambda at: self.mark.at(numbers.get(at.computation, -1), at.message)
        if offset not in worker.exclusions and (deaths.count >= _DEATHS_MIN or deaths.limit_ms):
            self._try(SuspectRecord(offset, value, messages_of(value)))
        try:
            return self.fold(offset, value)
        finally:
            worker.progress.mark = None

    def _try(self, record: SuspectRecord) -> None:
        guard, worker = self._guard, self.worker
        deadline_s = time.monotonic() + _TRIALS_S_MAX
        found = halved(
            record.offset,
            record.messages,
            Trial(worker, record, guard.limit_ms).fold,
            guilty_max=_GUILTY_MAX,
            is_late=lambda: time.monotonic() > deadline_s,
        )
        if found is None:
            guard.log.warning(
                "no message of the record kills a worker",
                **worker.id._asdict(),
                offset=record.offset,
            )
            return
        on_error = worker.program.on_error()
        killed_in = {each.computation for each in found.rows} | {each.computation for each in found.timers}
        if any(on_error.get(computation, DEAD_LETTER) == STOP for computation in killed_in):
            worker.exclusions = {record.offset: found}  # it stops there: nothing is folded, nothing kept
            return
        if not self._holds():
            raise SupersededError(f"{worker.id} is another task's by now, which decides about it")
        kept = guard.exclusions.append(worker.id, found)
        guard.report_left_out(worker.id, left_out_text(kept, frame_of(record.value)))
        for each in kept.rows:
            guard.log.warning(
                "messages that kill workers are left out",
                **worker.id._asdict(),
                offset=record.offset,
                first=each.first,
                stop=each.stop,
                computation=each.computation,
                reason=each.reason,
            )
        for timer in kept.timers:
            guard.log.warning(
                "a timer that kills workers is left out"
                if timer.timer
                else "all timers of it are left out: one kills",
                **worker.id._asdict(),
                offset=record.offset,
                owner=timer.owner,
                timer=_shown(timer.timer),
                computation=timer.computation,
                reason=timer.reason,
            )


def frame_of(value: bytes) -> Frame:
    """The frame of a record, to name it; one of nobody's where it is none."""
    try:
        return decode(value)
    except FrameError:
        return UNREADABLE


def messages_of(value: bytes) -> int:
    """How many messages a record may hold: what it says, which may be anything, but none is without a byte."""
    return min(frame_of(value).count, len(value))


def record_text(offset: int, frame: Frame, at: FoldPosition) -> str:
    """A record for people, and what of it is at work where that is known: a message, or a timer that fired."""
    what = "" if at.message is None else f", index {at.message}"
    if at.owner:
        what = f", a timer of {at.owner!r}" + (
            f": {_shown(at.timer)}" if at.timer else f", one of {at.calls}"
        )
    return f"offset {offset}, origin {frame.origin}, sequence {frame.sequence}{what}"


def left_out_text(exclusion: Exclusion, frame: Frame) -> str:
    """What of a record is left out, for people: the first of it, and how workers died."""
    offset, more = exclusion.offset, len(exclusion.rows) + len(exclusion.timers) - 1
    if exclusion.rows:
        row = exclusion.rows[0]
        text, reason = record_text(offset, frame, FoldPosition("", row.first)), row.reason
        text += f" to {row.stop - 1}" if row.stop - row.first > 1 else ""
    elif exclusion.timers:
        timer = exclusion.timers[0]
        at = FoldPosition("", owner=timer.owner, timer=timer.timer or b"all that are due")
        text, reason = record_text(offset, frame, at), timer.reason
    else:
        text, reason = record_text(offset, frame, FoldPosition("")), exclusion.record
    return f"{text}: {reason}" + (f"; and {more} more of its frame" if more > 0 else "")


def _shown(timer: bytes) -> str:
    return timer[:_TIMER_SHOWN].decode(errors="replace")


def _named(worker: PartitionWorker, deaths: Deaths) -> dict[str, object]:
    """For the log."""
    names = computations(worker)
    known = deaths.computation is not None and deaths.computation < len(names)
    return {
        "offset": deaths.offset,
        "deaths": deaths.count,
        "computation": names[deaths.computation] if known and deaths.computation is not None else "unknown",
        "index": "unknown" if deaths.index is None else deaths.index,
    }
