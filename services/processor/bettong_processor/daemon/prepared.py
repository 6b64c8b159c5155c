"""A process that has imported all that Spark's Python daemon needs, and replaces the first daemon that Java starts.

    processor ──starts──▶ prepared: imports, then accepts one connection
        └────starts──▶ Java ──starts──▶ daemon ──its stdin, stdout, stderr and environment──▶ prepared
                                           ◀──────────────────── its process id ─────────────────┘
                                         waits until that process ends, as Java waits for this one

They connect by an abstract Unix socket, which does not outlive a crash. Any user of the machine could connect, so both
ends check the user of their peer. Without a prepared process, and from the second daemon on, a daemon serves itself.
"""

import json
import os
import select
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from types import TracebackType
from typing import Self

# The variable with a prepared process's address, in the environment of the daemons that Java starts.
ADDRESS = "BETTONG_DAEMON_ADDRESS"
# The argument of a prepared process, before its listener's file descriptor. Java passes the module of Spark's worker.
FLAG = "--prepared"
_STANDARD = (0, 1, 2)
_END_S_MAX = 5.0
# As `spark-submit` and Spark's PythonRunner set them: Python reads these only when it starts.
_ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "YES", "OMP_NUM_THREADS": "1"}
_PID = struct.Struct("=i")
_CREDENTIALS = struct.Struct("=iII")


class Prepared:
    """A context manager: entering starts the process and puts its address into the environment; leaving ends it."""

    def __enter__(self) -> Self:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("")  # the kernel chooses a name
            listener.listen()
            os.environ[ADDRESS] = listener.getsockname().hex()
            self._process = subprocess.Popen(
                [sys.executable, "-m", __package__, FLAG, str(listener.fileno())],
                stdin=subprocess.PIPE,  # closes when this process ends, however it ends
                pass_fds=[listener.fileno()],
                env=os.environ | _ENVIRONMENT,
                process_group=0,  # a Ctrl-C reaches only the processor, which ends this process
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del os.environ[ADDRESS]
        try:
            self._process.communicate(timeout=_END_S_MAX)  # closes its input, and waits
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def take_over(listener: socket.socket, tether: int) -> bool:
    """Waits for a daemon and takes its place. False if the processor ends before one connects.

    `tether`: a file descriptor that becomes readable when the processor ends.
    """
    with listener:
        if tether in _await_readable(listener.fileno(), tether):
            return False
        line, _ = listener.accept()
    with line:
        if not _is_own(line):
            return False
        first, files, _, _ = socket.recv_fds(line, 1, len(_STANDARD))
        with line.makefile("rb") as reader:
            environment = json.loads(reader.readline())
        if not first or len(files) != len(_STANDARD):
            return False
        for ours, given in zip(_STANDARD, files, strict=True):
            os.dup2(given, ours)
            os.close(given)
        os.environ.clear()
        os.environ.update(environment)
        line.sendall(_PID.pack(os.getpid()))
    return True


def handed_over(address: str) -> bool:
    """Hands over to a prepared process, and waits until that one has ended. False if none took over."""
    with socket.socket(socket.AF_UNIX) as line:
        try:
            os.close(os.pidfd_open(os.getpid()))  # fails here in a sandbox that refuses it
            line.connect(bytes.fromhex(address))
            if not _is_own(line):
                return False
            socket.send_fds(line, [b"\n"], _STANDARD)
            line.sendall(json.dumps(dict(os.environ)).encode() + b"\n")
            # It may still be importing. If it dies, this returns.
            answer = line.recv(_PID.size, socket.MSG_WAITALL)
        except OSError:
            return False  # the prepared process has replaced another daemon, or has ended
    if len(answer) != _PID.size:
        return False
    with suppress(ProcessLookupError):
        watched = os.pidfd_open(*_PID.unpack(answer))
        _await_readable(watched)
    return True


def _await_readable(*descriptors: int) -> set[int]:
    """Waits until some of them are readable, or at their end; returns these."""
    poll = select.poll()  # unlike `select.select` it takes descriptors above 1,023
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll()}


def _is_own(line: socket.socket) -> bool:
    """Whether the peer is a process of the same user: unix(7), SO_PEERCRED."""
    asked = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(asked)
    return bool(user == os.geteuid())
