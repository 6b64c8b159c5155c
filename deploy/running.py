"""What a setup runs: commands that it ends, lines of what goes on, one setup of a tree at a time.

Standard library of Python 3.11 only: this runs before anything is installed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from deploy.setup_plan import SetupError

STOP_S_MAX = 10.0  # what is half-made is made again, so there is little to tidy up
LOCK_WAIT_S_MAX = 1800.0  # another setup in this tree has at most this long


def stop(child: subprocess.Popen[bytes]) -> None:
    """End a command that is still running, and the processes that it has started: politely, then not."""
    if child.poll() is not None:
        return
    os.killpg(child.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(STOP_S_MAX)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


@contextlib.contextmanager
def timed(title: str) -> Iterator[None]:
    """A line on the screen when it begins, and one with the seconds that it took; others may come between."""
    begin = time.monotonic()
    print(f"setup: {title} ...", flush=True)
    try:
        yield
    except BaseException:
        print(f"setup: {title} stopped after {time.monotonic() - begin:.1f} s", flush=True)
        raise
    print(f"setup: {title}: {time.monotonic() - begin:.1f} s", flush=True)


@contextlib.contextmanager
def alone(root: Path) -> Iterator[None]:
    """Holds the tree's lock: of two setups in one tree the later waits. The system frees it if we die."""
    folder = os.open(root, os.O_RDONLY)
    deadline = time.monotonic() + LOCK_WAIT_S_MAX
    said = False
    try:
        while True:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise SetupError(
                        "another setup holds this tree; wait for it or end it, then try again"
                    ) from None
                if not said:
                    print("setup: another setup is at work in this tree; waiting for it", flush=True)
                said = True
                time.sleep(0.2)
        yield
    finally:
        os.close(folder)
