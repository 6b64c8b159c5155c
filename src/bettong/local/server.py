"""A server process: launched, awaited until it answers, stopped, and launched again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from bettong.errors import LocalError
from bettong.local.processes import Command, Process

# The pause between two polls of a starting server is a twentieth of the time waited, within these bounds. A poll costs
# 2 ms.
_POLL_S_MIN, _POLL_S_MAX = 0.05, 0.5


class Server:
    """A command, and a check whether its process is ready.

    `answers` is polled; it must return within about a second and must not raise. A context manager: entering starts
    the process and waits until it answers, leaving stops it.
    """

    def __init__(self, command: Command, *, answers: Callable[[], bool], start_s_max: float) -> None:
        self.command = command
        self.process: Process | None = None
        self._answers = answers
        self.start_s_max = start_s_max
        # Its owner may replace it by an event of its own: once it is set, nothing waits for the server any more.
        self.stopping = threading.Event()

    def launch(self) -> None:
        """Starts the process if it is not running; does not wait until it answers."""
        if self.process is None or self.process.ending is not None:
            self.prepare()
            self.process = Process(self.command)

    def prepare(self) -> None:
        """Runs before each launch. Does nothing unless a server overrides it."""

    def progress(self) -> int:
        """A number that changes once the process has got past the cause of its last death; 0 if it cannot know."""
        return 0

    def runs(self) -> bool:
        """Whether the process is alive."""
        return self.process is not None and self.process.ending is None

    def answers(self) -> bool:
        """Whether it runs and is ready."""
        return self.runs() and self._answers()

    def wait(self) -> None:
        """Blocks until it answers.

        Raises LocalError when it dies, does not answer within `start_s_max`, or is no longer wanted (`stopping`).
        """
        began_s = time.monotonic()
        while not self.answers():
            self.check()
            waited_s = time.monotonic() - began_s
            if waited_s > self.start_s_max:
                raise self.no_answer_error()
            if self.stopping.wait(poll_s(waited_s)):
                raise self.not_wanted_error()

    def not_wanted_error(self) -> LocalError:
        """The error for a server that its owner ends before it answers."""
        return LocalError(f"{self.command.name} was ended while it started")

    def no_answer_error(self) -> LocalError:
        """The error for a server that did not answer in time."""
        return LocalError(
            f"{self.command.name} does not answer after {self.start_s_max:g} s: {self.describe_end()}"
        )

    def check(self) -> None:
        """Raises LocalError when it does not run."""
        if self.process is None:
            raise LocalError(f"{self.command.name} is not started")
        if self.process.ending is not None:
            raise LocalError(f"{self.command.name} died: {self.describe_end()}")

    def describe_end(self) -> str:
        """One line about its state, or about how it ended."""
        return self.process.describe_end() if self.process is not None else "not started"

    def start(self) -> None:
        """Launches and waits; after an error the process is killed."""
        try:
            self.launch()
            self.wait()
        except BaseException:
            self.kill()
            raise

    def terminate(self) -> None:
        """Asks it to end and returns at once. Does nothing when it is not running."""
        if self.process is not None:
            self.process.terminate()

    def stop(self) -> None:
        """SIGTERM, then SIGKILL after the command's `stop_s_max`. Does nothing when it is not running."""
        if self.process is not None:
            self.process.stop()

    def kill(self) -> None:
        """SIGKILL. Does nothing when it is not running."""
        if self.process is not None:
            self.process.kill()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def poll_s(waited_s: float) -> float:
    """The pause before the next poll of a server that was awaited for `waited_s`."""
    return min(max(waited_s / 20, _POLL_S_MIN), _POLL_S_MAX)
