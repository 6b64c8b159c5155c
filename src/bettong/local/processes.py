"""Child processes that never outlive this process, with their output in a log file."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

import psutil

from bettong.errors import LocalError
from bettong.local import tether
from bettong.local.log_files import LOG_BYTES_MAX, rotate

TAIL_LINES = 5
_TAIL_BYTES_MAX = 64 * 1024  # enough for the last lines of a log with long stack traces
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_POLL_S = 0.02  # between two polls of a process that is asked to end


@dataclass(frozen=True, slots=True)
class Command:
    """A command to run. `name` appears in messages; `environment` adds to that of this process."""

    name: str
    arguments: tuple[str, ...]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: Path | None = None
    stop_s_max: float = 10.0  # from SIGTERM to SIGKILL


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended: its exit code, or minus the number of the signal that killed it."""

    status: int

    def __str__(self) -> str:
        if self.status >= 0:
            return f"exit code {self.status}"
        with contextlib.suppress(ValueError):
            return f"signal {signal.Signals(-self.status).name}"
        return f"signal {-self.status}"


class Child(Protocol):
    """A process that has been started, such as a `subprocess.Popen`."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def wait(self) -> int:
        """Waits until it ends. Returns the exit code, or minus the number of the signal that killed it."""


class Process:
    """A running child in its own session, so that a Ctrl-C in the terminal reaches only this process.

    Start it from a thread that lives as long as the child should: on Linux the kernel kills the child when that
    thread ends, however it ends. Elsewhere only `stop` and `kill` end it. Not to be shared between threads.
    """

    def __init__(self, command: Command) -> None:
        """Starts the command. Raises LocalError when it cannot start, OSError when its log cannot be opened."""
        self.command = command
        command.log.parent.mkdir(parents=True, exist_ok=True)
        self._log_start = command.log.stat().st_size if command.log.exists() else 0
        self._ending: Ending | None = None
        with command.log.open("ab") as log:
            self._child = self._start(log)
        self.pid = self._child.pid
        try:
            self.started_s = psutil.Process(self.pid).create_time()  # moves when the machine's clock is set
        except (psutil.Error, OSError):  # it has ended already, or no more files can be opened
            self.started_s = time.time()
        self.start_mark = start_mark(self.pid)

    @property
    def ending(self) -> Ending | None:
        """How it ended; None while it runs. When its end is detected, the rest of its session is killed."""
        if self._ending is None:
            # WNOWAIT keeps the zombie, so its id cannot be reused while its process group is killed.
            died = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if died is not None:
                self._signal_group(signal.SIGKILL)
                self._ending = Ending(self._child.wait())
        return self._ending

    def wait(self, seconds_max: float, stopping: threading.Event | None = None) -> Ending | None:
        """Blocks until it ends by itself; None when it still runs after `seconds_max`, or once `stopping` is set."""
        stopping = stopping or threading.Event()
        deadline = time.monotonic() + seconds_max
        while (ending := self.ending) is None and time.monotonic() < deadline:
            if stopping.wait(_POLL_S):
                break
        return ending

    def terminate(self) -> None:
        """Asks it to end (SIGTERM) and returns at once."""
        if self.ending is None:
            os.kill(self.pid, signal.SIGTERM)

    def stop(self) -> Ending:
        """SIGTERM, then SIGKILL to the whole session after `command.stop_s_max`. Blocks at most that long."""
        self.terminate()
        return self.wait(self.command.stop_s_max) or self.kill()

    def kill(self) -> Ending:
        """SIGKILL to the whole session; returns when the process has ended."""
        if self.ending is None:
            self._signal_group(signal.SIGKILL)
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        ending = self.ending
        if ending is None:
            raise LocalError(f"{self.command.name} (process {self.pid}) survived SIGKILL: end it by hand")
        return ending

    def tail(self, lines: int = TAIL_LINES) -> list[str]:
        """The last lines that it wrote since its start; if its log cannot be read, one line with the reason."""
        try:
            with self.command.log.open("rb") as log:
                end = log.seek(0, os.SEEK_END)
                log.seek(max(self._log_start, end - _TAIL_BYTES_MAX))
                text = log.read(_TAIL_BYTES_MAX).decode(errors="replace")
        except OSError as error:
            return [f"its log cannot be read: {error}"]
        return [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]

    def rotate_log(self, bytes_max: int = LOG_BYTES_MAX) -> None:
        """Bounds the size of its log; see `rotate`. Call it periodically."""
        if rotate(self.command.log, bytes_max=bytes_max):
            self._log_start = 0

    def describe_end(self) -> str:
        """One line about its end: its exit code or signal, its last lines, and the path of its log."""
        last = " | ".join(self.tail()) or "nothing"
        return f"{self.ending or 'still running'}; its last lines: {last}; its log: {self.command.log}"

    def _start(self, log: IO[bytes]) -> Child:
        try:
            return subprocess.Popen(
                [*_tethered(), *self.command.arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.command.environment},
                cwd=self.command.directory,
                start_new_session=True,
            )
        except OSError as error:
            raise LocalError(f"{self.command.name} cannot be started: {error}") from error

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
            os.killpg(self.pid, number)


def start_mark(pid: int) -> str:
    """The boot, and the clock ticks from it to the process's start: no other process with its id has the same.

    Unlike a time it stays the same when the clock is set. Empty on systems without /proc, and when it has ended.
    """
    try:
        # The name, in parentheses, may hold anything; the start is field 22 (proc(5)), the 20th behind it.
        ticks = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19]
        return f"{_BOOT.read_text().strip()} {int(ticks)}"
    except (OSError, IndexError):
        return ""


def _tethered() -> list[str]:
    if not sys.platform.startswith("linux"):
        return []
    return [sys.executable, "-I", "-S", tether.__file__, str(os.getpid())]
