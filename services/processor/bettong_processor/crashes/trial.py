"""Folds a part of a frame in a child that may die: a fork of the worker, with its state before the record.

The child folds and then exits without running exit handlers. It must not use the log or the store, whose clients'
threads a fork does not have. It writes its position into memory that it shares with its parent.
"""

import ctypes
import faulthandler
import mmap
import os
import resource
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from bettong.backoff import Backoff
from bettong.garbage import CollectionPaused
from bettong.user_errors import ANY_ERROR
from bettong.worker.exclusions import ExcludedTimer, Exclusion
from bettong.worker.halving import Death, Unknown
from bettong.worker.partition import PartitionWorker
from bettong.worker.progress import OWN_WORK, FoldPosition
from bettong_processor.crashes.memory import left_bytes, resident_bytes

# A child that runs for this long is killed; then it is unknown whether it would have died.
TRIAL_S_MAX = 60.0
# Between two polls of the child: short at first, for most parts are folded in milliseconds.
_POLL_S_MIN = 0.0005
_POLL_S_MAX = 0.005
_PASSED_S_MAX = 0.2
_OWN_WORK_S_MAX = 60.0
# Of the memory that is available when a child starts. A child that uses more is killed before the kernel's OOM killer
# acts, which in a container may kill all its processes (memory.oom.group).
_MEMORY_SHARE_MAX = 0.95
_PR_SET_PDEATHSIG = 1
# In the shared memory: 64-bit integers, then the key and time of the timer that fires.
_DONE, _COMPUTATION, _INDEX, _OWNER, _TIMER_BYTES, _CALLS, _NUMBER = range(7)
_TIMER_AT = 256
# Of a timer's text, with its key. A longer one is not noted; then all timers of its computation are excluded.
_TIMER_BYTES_MAX = 1 << 16


@dataclass(frozen=True, slots=True)
class SuspectRecord:
    """A record of a stage's log, and how many messages it holds."""

    offset: int
    value: bytes
    messages: int


def allowed_s(limit_ms: int, messages: int, calls: int) -> float:
    """How long a fold may stay at one position: the limit for each of its calls (see `FoldPosition`).

    If their number is not known, it is that of the frame's messages. The worker's own work may take a minute, for it
    depends on the number of keys.
    """
    if calls == OWN_WORK:
        return max(limit_ms / 1000, _OWN_WORK_S_MAX)
    return limit_ms / 1000 * max(1, calls or messages)


def computations(worker: PartitionWorker) -> tuple[str, ...]:
    """The names that a mark's number refers to: a stage's computations, then the targets of its outputs."""
    stage = worker.program.stage
    return (*(each.node.name for each in stage.operators), *(each.target.name for each in stage.outputs))


def computation_of(worker: PartitionWorker, number: int | None) -> str | None:
    """The name for a mark's number; None for none, or for a mark that another version of the application has set."""
    names = computations(worker)
    return names[number] if number is not None and number < len(names) else None


@dataclass(frozen=True, slots=True)
class Trial:
    """Folds parts of one record. `limit_ms`: for one message, 0 for no limit. Not thread-safe."""

    worker: PartitionWorker
    record: SuspectRecord
    limit_ms: int
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    memory_left: Callable[[], int] = left_bytes
    # The message at which workers died, if known.
    died_at: int | None = None
    # How many times TRIAL_S_MAX a child may run.
    parts: int = 1

    def fold(self, indexes: Sequence[int], timers: Sequence[ExcludedTimer] = ()) -> Death | Unknown | None:
        """Folds the messages at these indexes, without these timers, in a child; how it died, None if it did not.

        Blocks until the child ends.
        """

        def folded() -> None:
            offset = self.record.offset
            self.worker.exclusions = {offset: Exclusion(offset, timers=tuple(timers))}
            self.worker.fold_part(offset, self.record.value, indexes)

        death = self.run(folded)
        if isinstance(death, Death) and self._is_doubtful(death, indexes):
            return Unknown(f"a trial stood still at message {death.index}, which a worker had passed")
        return death

    def _is_doubtful(self, death: Death, indexes: Sequence[int]) -> bool:
        """Whether a child stalled where a worker had gone on: a library may not work in a fork."""
        index = death.index
        if death.reason != late(self.limit_ms) or index is None or self.died_at in (None, index):
            return False
        return index < (self.died_at or 0) or index == indexes[0]

    def run(self, task: Callable[[], object]) -> Death | Unknown | None:
        """Runs a task in a child, with a copy of this worker; how it died, None if it did not. Blocks until it ends."""
        names = computations(self.worker)
        with (
            mmap.mmap(-1, _TIMER_AT + _TIMER_BYTES_MAX) as shared,
            memoryview(shared) as whole,
            whole[:_TIMER_AT] as head,
            head.cast("q") as cells,
        ):
            if not self.record.messages:
                cells[_CALLS] = OWN_WORK  # until something fires
            memory_max = int(_MEMORY_SHARE_MAX * self.memory_left()) + resident_bytes(os.getpid())
            child = os.fork()
            if child == 0:
                self._run_child(shared, cells, task)
            reason = self._await_child(child, cells, memory_max)
            if cells[_DONE]:
                return None
            if not reason:
                return Unknown(f"a trial was not at its end after {self.parts * TRIAL_S_MAX:.0f} s")
            return Death(
                reason,
                names[max(0, cells[_COMPUTATION] - 1)],
                cells[_INDEX] - 1 if cells[_INDEX] else None,
                names[cells[_OWNER] - 1] if cells[_OWNER] else "",
                shared[_TIMER_AT : _TIMER_AT + cells[_TIMER_BYTES]],
            )

    def _run_child(self, shared: mmap.mmap, cells: memoryview, task: Callable[[], object]) -> NoReturn:
        """Runs in the child. An exception does not count as a death: the worker will meet and handle the same one."""
        numbers = {name: number for number, name in enumerate(computations(self.worker), 1)}

        def mark(position: FoldPosition) -> None:
            cells[_INDEX] = 0 if position.message is None else position.message + 1
            cells[_COMPUTATION] = numbers.get(position.computation, 0)
            cells[_CALLS], cells[_NUMBER] = position.calls, position.number
            cells[_OWNER] = numbers[position.owner] if position.owner else 0
            timer = position.timer if len(position.timer) <= _TIMER_BYTES_MAX else b""
            cells[_TIMER_BYTES] = len(timer)
            shared[_TIMER_AT : _TIMER_AT + len(timer)] = timer

        try:
            _prepare_child()
            self.worker.progress.mark = mark
            with CollectionPaused():
                task()
        except ANY_ERROR:
            pass
        finally:
            cells[_DONE] = 1
            os._exit(0)

    def _await_child(self, child: int, cells: memoryview, memory_max: int) -> str:
        """Why the child died before it was done, for people; "" if it was killed for running too long."""
        lived_s = stood_s = 0.0
        polled_s = self.clock()
        at, pauses = (0, 0, 0), Backoff(_POLL_S_MIN, _POLL_S_MAX)
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return _death_reason(status)
            now_s = self.clock()
            # Before a late poll both processes may have been suspended.
            passed_s, polled_s = min(now_s - polled_s, _PASSED_S_MAX), now_s
            now = (cells[_COMPUTATION], cells[_INDEX], cells[_NUMBER])
            lived_s += passed_s
            stood_s = stood_s + passed_s if now == at else 0.0
            at = now
            allowed = allowed_s(self.limit_ms, self.record.messages, cells[_CALLS])
            is_late = bool(self.limit_ms) and stood_s > allowed
            is_large = resident_bytes(child) > memory_max
            if is_late or is_large or lived_s > max(self.parts * TRIAL_S_MAX, allowed):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return (
                    late(self.limit_ms) if is_late else "killed the worker: out of memory" if is_large else ""
                )
            self.pause(pauses.next_s())


def late(limit_ms: int) -> str:
    """The reason for excluding a message that took too long."""
    return f"took longer than {limit_ms} ms (BETTONG_MESSAGE_MS_MAX)"


def _death_reason(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = next((each.name for each in signal.Signals if each == number), "of the application's own")
        return f"killed the worker: signal {number} ({name})"
    return f"killed the worker: exit code {os.waitstatus_to_exitcode(status)}"


def _prepare_child() -> None:
    """Makes the child the OOM killer's first choice, ends it with its parent, and disables core dumps."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.disable()
