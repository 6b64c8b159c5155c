"""A process that has imported what Spark's Python daemon needs, and takes the place of the first one that Java starts.

    processor ──starts──▶ prepared: imports, then accepts one connection
        └────starts──▶ Java ──starts──▶ daemon ──its stdin, stdout, stderr and environment──▶ prepared
                                           ◀──────────────────── its process id ─────────────────┘
                                         waits until that process ends, as Java waits for this one

They meet at an abstract Unix socket, which no crash leaves behind. Any user of the machine could ask for it: both ends
look at whom they have met. Without a prepared process, and for each later daemon, a daemon is one by itself.
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

# Where a prepared process waits: in the environment of the daemons that Java starts.
ADDRESS = "BETTONG_DAEMON_ADDRESS"
# Of a prepared process; the number of its listener follows. Java gives the module of Spark's worker.
FLAG = "--prepared"
_STANDARD = (0, 1, 2)
_END_S_MAX = 5.0
# As Java would start it: `spark-submit` and Spark's PythonRunner set these, and they count when Python starts.
_ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "YES", "OMP_NUM_THREADS": "1"}
_PID = struct.Struct("=i")
_CREDENTIALS = struct.Struct("=iII")


class Prepared:
    """A context manager: entering starts the process and says in the environment where it waits; leaving ends it."""

    def __enter__(self) -> Self:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("")  # the kernel draws a name
            listener.listen()
            os.environ[ADDRESS] = listener.getsockname().hex()
            self._process = subprocess.Popen(
                [sys.executable, "-m", __package__, FLAG, str(listener.fileno())],
                stdin=subprocess.PIPE,  # closed with this process, however that ends
                pass_fds=[listener.fileno()],
                env=os.environ | _ENVIRONMENT,
                process_group=0,  # a Ctrl-C is the processor's: it ends this one
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
    """Waits for a daemon and takes its place. False when there will be none: the processor is gone, or done.

    `tether`: a file that ends with the processor.
    """
    with listener:
        ready, _, _ = select.select([listener.fileno(), tether], [], [])
        if tether in ready:
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
    """Whether a prepared process has taken this one's place; then returns when that one has ended."""
    with socket.socket(socket.AF_UNIX) as line:
        try:
            os.close(os.pidfd_open(os.getpid()))  # some sandboxes refuse it
            line.connect(bytes.fromhex(address))
            if not _is_own(line):
                return False
            socket.send_fds(line, [b"\n"], _STANDARD)
            line.sendall(json.dumps(dict(os.environ)).encode() + b"\n")
            # It may still be importing. If it dies, this ends.
            answer = line.recv(_PID.size, socket.MSG_WAITALL)
        except OSError:
            return False  # it has taken another's place, or is gone
    if len(answer) != _PID.size:
        return False
    with suppress(ProcessLookupError):
        watched = os.pidfd_open(*_PID.unpack(answer))
        select.select([watched], [], [])
    return True


def _is_own(line: socket.socket) -> bool:
    """Whether a process of this user is at the other end: unix(7), SO_PEERCRED."""
    asked = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(asked)
    return bool(user == os.geteuid())
