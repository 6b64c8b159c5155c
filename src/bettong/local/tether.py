"""Runs a command that dies with its parent: `python -I -S tether.py PARENT_PID COMMAND...` (Linux).

A program between parent and child, because the child itself must request the kernel's parent-death signal, and Python
code between fork and exec is not safe in a process with threads (gRPC has many). It execs the command, so it does not
remain as a process. It imports only the standard library: it runs without site-packages, and so starts in 15 ms.

The kernel sends the signal when the *thread* that started the child ends: prctl(2), PR_SET_PDEATHSIG.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Requests the parent-death signal and execs the command; raises OSError when that cannot be run."""
    parent, command = int(arguments[0]), arguments[1:]
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:  # the parent died before the signal was requested
        os.kill(os.getpid(), signal.SIGKILL)
    os.execvp(command[0], command)  # noqa: S606 - a list, never a shell's


if __name__ == "__main__":
    main(sys.argv[1:])
