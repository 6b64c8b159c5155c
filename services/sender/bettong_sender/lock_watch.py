"""Ends a sender in which a user's function keeps the GIL: no other thread of it would ever run.

A backtracking regular expression is such a function. A decoder that waits, or that computes in Python, releases the GIL
and is not affected. The kernel ends the process by a timer of CPU time (setitimer(2), ITIMER_PROF), which a thread
resets as long as it gets to run. So a process that was stopped, or that gets no CPU, is not ended. The frame that it
was reading is marked: see `bettong_sender.deaths`. A function that keeps the GIL without using CPU, such as one that
waits in C without releasing it, is not detected.
"""

import signal

from bettong.threads import BlockThread

# Between two resets. CPU time of all threads counts: to end the process by mistake, as many cores as the limit has
# intervals would have to be busy in its C code without the GIL: 20 with the smallest limit, 120 with the default.
_TURN_S_MAX = 0.25
_TURNS = 20
_CLOSE_S_MAX = 1.0


class LockWatch(BlockThread):
    """A context manager. SIGPROF ends the process when one thread keeps the GIL for `limit_s` of CPU time."""

    def __init__(self, limit_s: float) -> None:
        super().__init__("lock watch", close_s_max=_CLOSE_S_MAX)
        self._limit_s = limit_s

    def _run(self) -> None:
        turn_s = min(_TURN_S_MAX, self._limit_s / _TURNS)
        try:
            while not self._stopping.is_set():
                signal.setitimer(signal.ITIMER_PROF, self._limit_s)
                self._stopping.wait(turn_s)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
