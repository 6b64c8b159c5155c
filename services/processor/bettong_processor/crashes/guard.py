"""Folds records so that a record which kills workers does so three times at most.

A mark is set before each record and removed after it. If a worker dies, the partition's next worker finds the mark.
From the second death at an offset on (from the first, if a message exceeded the time limit: then the cause is known)
the record is tried in child processes before it is folded here. Messages and timers of which the children die are
excluded from the fold; a record of the log says so before anything is folded, so that each replay excludes the same. If
the children do not show it (they take too long), the message at which workers died several times in a row is excluded.
With on_error="stop" nothing is excluded: the partition stops at that message, and goes on with it once it is fixed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from bettong.application.on_error import DEAD_LETTER, STOP
from bettong.errors import FrameError, PoisonError, SupersededError
from bettong.failure_sites import FailureSites
from bettong.frames.frame import UNREADABLE, Frame, decode
from bettong.garbage import CollectionPaused
from bettong.identifiers import PartitionId
from bettong.logs import Logger
from bettong.worker.exclusions import Excluded, ExcludedTimer, Exclusion
from bettong.worker.halving import Unknown, halved
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import PartitionWorker
from bettong.worker.progress import FoldPosition
from bettong.worker.stopwatch import Stopwatch
from bettong_processor.crashes.marks import Activity, Deaths, Mark, Marks
from bettong_processor.crashes.trial import SuspectRecord, Trial, computation_of, computations
from bettong_processor.references.reading import read_references

# Deaths at one offset after which the record is tried first: a single death may have another cause.
_DEATHS_MIN = 2
# Messages of one frame that are identified one by one, and for how long: the slot's other partitions wait meanwhile.
_GUILTY_MAX = 64
_TRIALS_S_MAX = 120.0
# Deaths at one position in a row after which it is excluded without a trial's result: no longer a coincidence.
_SAME_MIN = 3
# Bytes of a timer's key and time in a line for people.
_TIMER_SHOWN = 300

_DIED = {
    Activity.FOLDING: "a worker died, or stood still, while it folded a record",
    Activity.SAVING: "a worker died, or stood still, while it saved states",
    Activity.RESTORING: "a worker died, or stood still, while it restored states",
}

Fold = Callable[[int, bytes], list[OutputRecord]]


class Exclusions(Protocol):
    """The store of exclusions: `bettong.edges.exclusion_log.ExclusionLog`."""

    def known(self, partition: PartitionId) -> Mapping[int, Exclusion]:
        """The exclusions of a partition by offset: a view, which `refresh` and `append` extend."""

    def refresh(self, since_s: float | None = None) -> None:
        """Reads exclusions that other processes have appended. Raises LogError."""

    def append(self, partition: PartitionId, exclusion: Exclusion) -> Exclusion:
        """Appends an exclusion; returns the one that is in force. Raises LogError."""


class FaultReports(Protocol):
    """Shows faults to operators; "" clears one. Must not raise."""

    def report_fault(self, partition: PartitionId, text: str) -> None:
        """Reports what holds a partition up, until it goes on."""

    def hold_fault(self, partition: PartitionId, text: str) -> None:
        """Reports a fault of a partition, which may go on, until the next call.

        "" costs nothing if this process has reported none.
        """

    def report_left_out(self, partition: PartitionId, text: str) -> None:
        """Reports what is excluded from now on because it killed workers."""


@dataclass(slots=True)
class AtWork:
    """What a process folds now, for the watchdog thread: a fold and its record, a new tuple for each; or None."""

    fold: tuple[GuardedFold, int, bytes] | None = None


@dataclass(frozen=True, slots=True)
class Guard:
    """One for each process. `limit_ms`: how long a message may take, 0 for no limit.

    `measures`: whether computations are timed.
    """

    marks: Marks
    exclusions: Exclusions
    reports: FaultReports
    log: Logger
    limit_ms: int = 0
    measures: bool = True
    at_work: AtWork = field(default_factory=AtWork)
    failure_sites: FailureSites = field(default_factory=FailureSites)

    def of(self, worker: PartitionWorker, holds: Callable[[], bool] = lambda: True) -> Fold:
        """The guarded fold of a worker that has just been restored, or goes on. Checks whether earlier workers died.

        `holds`: whether this process still holds the partition; if not, it must not exclude anything.
        """
        mark = self.marks.of(worker.id)
        deaths = self.read_deaths(worker, mark)
        if deaths is not None and deaths.activity is Activity.RESTORING:
            mark.forget(Activity.RESTORING)  # this worker has restored its states
            self.reports.report_fault(worker.id, "")  # another process may have reported it
            deaths = None
        if deaths is None or deaths.activity is not Activity.SAVING:
            self.reports.hold_fault(worker.id, "")
        worker.exclusions = self.exclusions.known(worker.id)
        return GuardedFold(self, worker, mark, deaths, holds).fold

    def read_deaths(self, worker: PartitionWorker, mark: Mark) -> Deaths | None:
        """The deaths that a partition's new holder finds; logs a new one."""
        deaths, is_new = mark.deaths()
        if deaths is not None and is_new:
            self.log.warning(
                _DIED[deaths.activity],
                **worker.id._asdict(),
                **_log_fields(worker, deaths),
            )
        return deaths

    def log_failures(self, worker: PartitionWorker) -> None:
        """Logs where in the user's code messages failed: each location once a process."""
        for each in self.failure_sites.take_new():
            self.log.warning(
                "messages fail in a user's function",
                **worker.id._asdict(),
                computation=each.computation,
                reason=each.reason,
                traceback=each.traceback,
            )


class GuardedFold:
    """The fold of one worker. Used by one thread."""

    __slots__ = ("_at_work", "_deaths", "_guard", "_holds", "_stopwatch", "_suspect", "mark", "worker")

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
        # A worker that is kept from one micro-batch to the next keeps its stopwatch.
        self._stopwatch = (
            (worker.progress.stopwatch or Stopwatch(time.perf_counter_ns)) if guard.measures else None
        )
        worker.progress.stopwatch = self._stopwatch
        worker.progress.failure_sites = guard.failure_sites
        self._suspect = deaths.offset if deaths is not None and deaths.activity is Activity.FOLDING else -1

    def fold(self, offset: int, value: bytes) -> list[OutputRecord]:
        """See PartitionWorker. Reads reference tables first: their time must not count as a message's."""
        read_references(self.worker, self._holds, self._guard.log)
        if offset == self._suspect:
            return self._fold_suspect(offset, value)
        self.mark.begin(offset)
        self._at_work.fold = (self, offset, value)
        if self._stopwatch is not None:
            progress = self.worker.progress
            progress.enter_timed = self._stopwatch.enter if self._stopwatch.begin() else None
        try:
            with CollectionPaused():
                return self.worker.fold(offset, value)
        finally:
            if self._stopwatch is not None:
                self._stopwatch.end()
            self._at_work.fold = None
            self.mark.end()
            if self._guard.failure_sites.new:
                self._guard.log_failures(self.worker)

    def _fold_suspect(self, offset: int, value: bytes) -> list[OutputRecord]:
        """Folds a record at which a worker died: reports that, and from the second death on tries it first."""
        self._suspect = -1
        worker, deaths = self.worker, self._deaths
        assert deaths is not None  # noqa: S101 - only deaths make a record suspect
        frame = frame_of(value)
        at = FoldPosition("", deaths.index)
        died = f"workers died {deaths.count} time(s) at {record_text(offset, frame, at)}"
        self._guard.reports.report_fault(worker.id, died)
        self._guard.log.warning(
            "folds a record at which workers died",
            **worker.id._asdict(),
            origin=frame.origin,
            sequence=frame.sequence,
            **_log_fields(worker, deaths),
        )
        is_tried = deaths.count > deaths.decided and (deaths.count >= _DEATHS_MIN or deaths.limit_ms)
        worker.progress.mark = marking(worker, self.mark)
        if is_tried and not self._known(offset).record:
            unknown = self._exclude_killers(SuspectRecord(offset, value, messages_of(value)), deaths)
            if unknown is not None:
                self._guard.reports.report_fault(worker.id, f"{died}; {unknown.reason}: it is folded again")
        try:
            return self.fold(offset, value)
        finally:
            worker.progress.mark = None

    def _known(self, offset: int) -> Exclusion:
        return self.worker.exclusions.get(offset, Exclusion(offset))

    def _exclude_killers(self, record: SuspectRecord, deaths: Deaths) -> Unknown | None:
        """Excludes what kills from the record; Unknown if no trial shows it and the deaths may be a coincidence."""
        guard, worker = self._guard, self.worker
        deadline_s = time.monotonic() + _TRIALS_S_MAX
        known = self._known(record.offset)
        found = halved(
            record.offset,
            record.messages,
            Trial(worker, record, guard.limit_ms, died_at=deaths.index).fold,
            guilty_max=_GUILTY_MAX,
            is_late=lambda: time.monotonic() > deadline_s,
            died_at=deaths.index,
            known=known,
        )
        if isinstance(found, Unknown):
            guard.log.warning(
                "a trial did not tell whether a message kills a worker",
                **worker.id._asdict(),
                offset=record.offset,
                reason=found.reason,
            )
            if deaths.same < _SAME_MIN:
                return found
            found = _exclude_without_trial(worker, known, deaths, found)
        if found is None:
            guard.log.warning(
                "no message of the record kills a worker",
                **worker.id._asdict(),
                offset=record.offset,
            )
            return None
        if found.record:
            self._stop_at(record, deaths, found.record)
        on_error = worker.program.on_error()
        new_rows = [each for each in found.rows if each not in known.rows]
        new_timers = [each for each in found.timers if each not in known.timers]
        killed_in = {each.computation for each in new_rows} | {each.computation for each in new_timers}
        if any(on_error.get(computation, DEAD_LETTER) == STOP for computation in killed_in):
            worker.exclusions = {record.offset: found}  # the fold stops there: nothing is folded or logged
            return None
        if not self._holds():
            raise SupersededError(f"{worker.id} is another task's by now, which decides about it")
        kept = guard.exclusions.append(worker.id, found)
        guard.reports.report_left_out(worker.id, left_out_text(kept, frame_of(record.value)))
        self.mark.decide()
        self._log_exclusion(record.offset, new_rows, new_timers)
        return None

    def _stop_at(self, record: SuspectRecord, deaths: Deaths, reason: str) -> None:
        """Raises PoisonError if the whole record is to be excluded, and its computation has on_error="stop".

        If the computation is not known, it may be any: then one with "stop" suffices.
        """
        worker, on_error = self.worker, self.worker.program.on_error()
        at = computation_of(worker, deaths.computation)
        computation = next(
            (name for name, each in on_error.items() if each == STOP and at in (None, name)), None
        )
        if computation is None:
            return
        where = record_text(record.offset, frame_of(record.value), FoldPosition("", deaths.index))
        raise PoisonError(
            f'{computation!r} (on_error="stop") cannot process a record: {reason}; stage {worker.id.stage!r},'
            f" partition {worker.id.partition}, {where}. Mend the function, or give it"
            ' on_error="dead-letter" or "skip", and start the processor again: it goes on with this very record',
            computation=computation,
            reason=reason,
            index=-1 if deaths.index is None else deaths.index,
        )

    def _log_exclusion(self, offset: int, rows: Iterable[Excluded], timers: Iterable[ExcludedTimer]) -> None:
        guard, worker = self._guard, self.worker
        for each in rows:
            guard.log.warning(
                "messages that kill workers are left out",
                **worker.id._asdict(),
                offset=offset,
                first=each.first,
                stop=each.stop,
                computation=each.computation,
                reason=each.reason,
            )
        for timer in timers:
            guard.log.warning(
                "a timer that kills workers is left out"
                if timer.timer
                else "all timers of it are left out: one kills",
                **worker.id._asdict(),
                offset=offset,
                owner=timer.owner,
                timer=_timer_text(timer.timer),
                computation=timer.computation,
                reason=timer.reason,
            )


def marking(worker: PartitionWorker, mark: Mark) -> Callable[[FoldPosition], None]:
    """A function that writes each position of a worker into its mark."""
    numbers = {name: number for number, name in enumerate(computations(worker))}
    return lambda at: mark.at(numbers.get(at.computation, -1), at.message)


def _exclude_without_trial(
    worker: PartitionWorker, known: Exclusion, deaths: Deaths, unknown: Unknown
) -> Exclusion:
    """Excludes, without a trial, the message at which workers died repeatedly; if not known, the whole record."""
    computation = computation_of(worker, deaths.computation)
    reason = f"{deaths.count} workers died there, and {unknown.reason}"
    if deaths.index is None or computation is None:
        return Exclusion(known.offset, record=reason)
    row = Excluded(deaths.index, deaths.index + 1, computation, reason)
    return Exclusion(known.offset, (*known.rows, row), timers=known.timers)


def frame_of(value: bytes) -> Frame:
    """The frame of a record, to identify it in messages; UNREADABLE if it cannot be decoded."""
    try:
        return decode(value)
    except FrameError:
        return UNREADABLE


def messages_of(value: bytes) -> int:
    """How many messages a record may hold: its count, which may be wrong, but each message has at least a byte."""
    return min(frame_of(value).count, len(value))


def record_text(offset: int, frame: Frame, at: FoldPosition) -> str:
    """Describes a record for people, and the message or fired timer at which its fold is, if known."""
    what = "" if at.message is None else f", index {at.message}"
    if at.owner:
        what = f", a timer of {at.owner!r}" + (
            f": {_timer_text(at.timer)}" if at.timer else f", one of {at.calls}"
        )
    return f"offset {offset}, origin {frame.origin}, sequence {frame.sequence}{what}"


def left_out_text(exclusion: Exclusion, frame: Frame) -> str:
    """Describes for people what is excluded of a record: the first exclusion, and how workers died of it."""
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


def _timer_text(timer: bytes) -> str:
    return timer[:_TIMER_SHOWN].decode(errors="replace")


def _log_fields(worker: PartitionWorker, deaths: Deaths) -> dict[str, object]:
    """Fields of a log line."""
    return {
        "offset": deaths.offset,
        "deaths": deaths.count,
        "computation": computation_of(worker, deaths.computation) or "unknown",
        "index": "unknown" if deaths.index is None else deaths.index,
    }
