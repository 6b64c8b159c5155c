"""Ends a sender in which one function of a user keeps the interpreter's lock: nothing else of it would ever run.

A regular expression that backtracks is such a function. A decoder that waits, or that computes in Python, lets others
have their turns and is no concern of this. The kernel ends the process, by a timer of CPU time (setitimer(2),
ITIMER_PROF) that a thread winds up again and again, as long as it has turns. So a process that was stopped, or that
gets no CPU, is not ended. What it was reading is marked: see `bettong_sender.deaths`. A function that keeps the lock
and takes no CPU, such as one that waits in C without releasing it, is not found by this.
"""

import signal

from bettong.threads import BlockThread

# Between two turns of the thread. As many cores as it goes into the limit would have to be busy in C code of this
# process, without the lock, to end it by mistake: 20 with the smallest limit, 120 with the default.
_TURN_S_MAX = 0.25
_TURNS = 20
_CLOSE_S_MAX = 1.0


class LockWatch(BlockThread):
    """A context manager. The process dies of SIGPROF when no other thread has had a turn for `limit_s` of CPU time."""

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
