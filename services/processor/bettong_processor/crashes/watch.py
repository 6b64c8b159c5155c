"""The watchdog thread: reports a record that stalls, and kills the process when a message exceeds the time limit.

A fold that never releases the GIL would stop this thread, too: then the kernel kills the process, by a CPU timer
(setitimer(2), ITIMER_PROF) that this thread keeps resetting. A trial, whose limit the parent process enforces, then
finds the message.
"""

import os
import signal
import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from bettong.worker.progress import FoldPosition
from bettong_processor.crashes.guard import (
    AtWork,
    FaultReports,
    GuardedFold,
    frame_of,
    messages_of,
    record_text,
)
from bettong_processor.crashes.trial import allowed_s, computations

# A record that is folded for this long is reported, and again with this pause.
STANDS_S = 5.0
_AGAIN_S = 2.0
_POLL_S_MAX = 0.5
_POLL_S_MIN = 0.01
# CPU time within which this thread must run again, beyond what the fold that it saw last may take. Longer than a
# legitimate C call, which may be the next fold's.
TURN_S = 10.0


@dataclass(slots=True)
class _Seen:
    """The fold that the last poll saw: its position, for how long it was there, and for how long it ran in all."""

    fold: tuple[GuardedFold, int, bytes] | None = None
    at: FoldPosition = field(default=FoldPosition(""))
    stands_s: float = 0.0
    folded_s: float = 0.0
    messages: int = 0
    reported_s: float = 0.0


@dataclass(slots=True)
class Watch:
    """Watches one process, which folds one record at a time. `limit_ms`: for one message, 0 for no limit."""

    at_work: AtWork
    reports: FaultReports
    limit_ms: int
    _ended: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Starts the thread; it need not be stopped before the process ends."""
        threading.Thread(target=self._run, name="watch", daemon=True).start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self.limit_ms:
            signal.setitimer(signal.ITIMER_PROF, 0.0)

    def _run(self) -> None:
        self._reset_timer(0.0)
        poll_s = max(_POLL_S_MIN, min(_POLL_S_MAX, self.limit_ms / 4000)) if self.limit_ms else _POLL_S_MAX
        seen = _Seen()
        while not self._ended.wait(poll_s):
            seen = self._poll(seen, poll_s)

    def _poll(self, seen: _Seen, poll_s: float) -> _Seen:
        """One poll. Time is counted in polls, since before a late poll the whole process may have been suspended."""
        fold = self.at_work.fold
        if fold is None or fold is not seen.fold:
            if seen.reported_s and seen.fold is not None:
                self._report(seen.fold[0], "")
            messages = messages_of(fold[2]) if fold is not None and self.limit_ms else 0
            self._reset_timer(allowed_s(self.limit_ms, messages, 0))
            return _Seen(fold, messages=messages)
        guarded, offset, value = fold
        at = guarded.worker.progress.at()
        seen.folded_s += poll_s
        seen.stands_s = seen.stands_s + poll_s if at == seen.at else 0.0
        seen.at = at
        if seen.folded_s - seen.reported_s >= (_AGAIN_S if seen.reported_s else STANDS_S):
            seen.reported_s = seen.folded_s
            self._report(
                guarded, f"{record_text(offset, frame_of(value), at)}: folded for {seen.folded_s:.0f} s"
            )
        allowed = allowed_s(self.limit_ms, seen.messages, at.calls)
        self._reset_timer(allowed)
        if self.limit_ms and seen.stands_s > allowed and self.at_work.fold is fold:
            _kill_process(guarded, at, self.limit_ms)
        return seen

    def _reset_timer(self, allowed: float) -> None:
        if self.limit_ms:
            signal.setitimer(signal.ITIMER_PROF, 2 * allowed + TURN_S)

    def _report(self, guarded: GuardedFold, text: str) -> None:
        self.reports.report_fault(guarded.worker.id, text)


def _kill_process(guarded: GuardedFold, at: FoldPosition, limit_ms: int) -> None:
    """Marks the limit and kills the process, since a thread that folds cannot be ended."""
    names = computations(guarded.worker)
    if at.computation in names:
        guarded.mark.at(names.index(at.computation), at.message)
    guarded.mark.limit(limit_ms)
    os.kill(os.getpid(), signal.SIGKILL)
