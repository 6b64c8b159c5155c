"""A server that stands still: the kernel accepts connections for it, and nothing is answered."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from bettong.local.server import Server


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    """Until left, none of its threads does anything, nor knows of the time that passes."""
    assert server.process is not None
    pid = server.process.pid
    os.killpg(pid, signal.SIGSTOP)
    try:
        # The signal is sent when killpg returns; a thread on another core answers for a moment more.
        seen = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        assert seen is not None
        assert seen.si_code == os.CLD_STOPPED, "it has ended"
        yield
    finally:
        os.killpg(pid, signal.SIGCONT)
