"""Services forked from a Python that has loaded them: the second of CPU that loading takes is spent once, not for each.

What is forked is a process like any other: our child in a session of its own, with its own environment, output, signals
and exit code. That its modules were loaded before it was asked for, and that strings hash as in its siblings, is all
that differs. Suites, which tests run as users do, start each of their services anew.
"""

import atexit
import ctypes
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO

from bettong.garbage import CollectionPaused
from bettong.local.processes import Child, Command, Process
from bettong.local.tether import PR_SET_PDEATHSIG
from tests.waiting import eventually

_ROOT = Path(__file__).resolve().parent.parent.parent
_LOADED = (
    *("bettong_sender.main", "bettong_receiver.main", "bettong_processor.main", "bettong.cli.main"),
    *("tests.samples.sender", "tests.samples.result_frames"),
)
_ONE_AT_A_TIME = threading.Lock()
_PR_SET_CHILD_SUBREAPER = 36
_REQUEST_BYTES_MAX = 128 * 1024
_ANSWER_S_MAX = 120.0  # two seconds alone, when it has yet to load; the machine of a test run is busy
_ADOPTION_S_MAX = 10.0


def started(command: Command) -> Process:
    """Starts a command: by a fork where it is a service's and has all its modules where the fork server has them."""
    program, *arguments = command.arguments
    path = command.environment.get("PYTHONPATH", "").split(os.pathsep)
    is_service = program == sys.executable and (arguments[0] == "-c" or arguments[:2] == ["-m", "bettong"])
    if is_service and sys.platform == "linux" and {*path} <= {"", str(_ROOT), *sys.path}:
        return _ForkedProcess(command)
    return Process(command)


class _ForkedProcess(Process):
    def _start(self, log: IO[bytes]) -> Child:
        with _ONE_AT_A_TIME:
            return _server().fork(self.command, log)


@dataclass(frozen=True, slots=True)
class _Forked:
    pid: int

    def wait(self) -> int:
        """See Child."""
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)


class _ForkServer:
    """The Python that has loaded the services; it ends when we do."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", __name__], stdin=theirs.fileno(), cwd=_ROOT, start_new_session=True
            )

    def fork(self, command: Command, log: IO[bytes]) -> _Forked:
        """Starts the command as a child of ours."""
        request = {
            "arguments": command.arguments[1:],
            "environment": {**os.environ, **command.environment},
            "directory": str(command.directory or Path.cwd()),
            "parent": os.getpid(),
        }
        answer, theirs = socket.socketpair()
        answer.settimeout(_ANSWER_S_MAX)
        with answer, _adopting():
            with theirs:
                files = [log.fileno(), theirs.fileno()]
                socket.send_fds(self._line, [json.dumps(request).encode()], files)
            return _Forked(int(answer.recv(_REQUEST_BYTES_MAX)))  # nothing: it died before it became ours

    def close(self) -> None:
        """Ends it; what it has forked goes on."""
        self._line.close()
        self._popen.wait()


@cache
def _server() -> _ForkServer:
    server = _ForkServer()
    atexit.register(server.close)
    return server


@contextmanager
def _adopting() -> Iterator[None]:
    """A grandchild whose parent ends is our child then: prctl(2), PR_SET_CHILD_SUBREAPER."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        _prctl(_PR_SET_CHILD_SUBREAPER, 0)


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _asked(loading: Mapping[str, str]) -> list[str]:
    """Forks a process for each request. Returns only in them: what each runs. `loading`: the variables that it set."""
    line = socket.socket(fileno=os.dup(sys.stdin.fileno()))
    while True:
        request, files, _, _ = socket.recv_fds(line, _REQUEST_BYTES_MAX, 2)
        if not request:
            sys.exit()
        between = os.fork()
        if between == 0:
            if os.fork() != 0:
                os._exit(0)
            line.close()
            asked, (log, answer) = json.loads(request), files
            _become(asked["parent"], {**loading, **asked["environment"]}, log)
            os.chdir(asked["directory"])
            os.write(answer, str(os.getpid()).encode())
            os.close(answer)
            return [*asked["arguments"]]
        for each in files:
            os.close(each)
        os.waitpid(between, 0)


def _become(parent: int, environment: dict[str, str], log: int) -> None:
    eventually(lambda: os.getppid() == parent, seconds=_ADOPTION_S_MAX, what="it is adopted")
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(null)
    os.close(log)
    os.environ.clear()
    os.environ.update(environment)


def _run(option: str, what: str, *arguments: str) -> None:
    """As `python OPTION WHAT ARGUMENTS...` does."""
    sys.argv = [what if option == "-m" else option, *arguments]
    if option == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(what, {"__name__": "__main__"})  # noqa: S102 - a program of ours


def main() -> None:
    """Loads the modules, then forks whenever it is asked to."""
    before = dict(os.environ)
    with CollectionPaused():
        for module in _LOADED:
            import_module(module)
    gc.freeze()
    _run(*_asked({name: value for name, value in os.environ.items() if name not in before}))


if __name__ == "__main__":
    main()
