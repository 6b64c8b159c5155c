"""A process that serves: launched, awaited until it answers, stopped, and launched again."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from bettong.errors import LocalError
from bettong.local.processes import Command, Process

# Between two polls whether a starting server answers: a twentieth of what was waited, within these. A poll costs 2 ms.
_POLL_S_MIN, _POLL_S_MAX = 0.05, 0.5


class Server:
    """A command, and how to know that it does its work.

    `answers` is asked again and again, must return within about a second and must not raise. A context manager:
    entering starts it and waits, leaving stops it.
    """

    def __init__(self, command: Command, *, answers: Callable[[], bool], start_s_max: float) -> None:
        self.command = command
        self.process: Process | None = None
        self._answers = answers
        self.start_s_max = start_s_max

    def launch(self) -> None:
        """Starts the process, if it is not running, without waiting for it to answer."""
        if self.process is None or self.process.ending is not None:
            self.prepare()
            self.process = Process(self.command)

    def prepare(self) -> None:
        """What must be done before each launch; nothing, unless a server has something to do."""

    def progress(self) -> int:
        """Another number than before when it has got past what it died of; 0, unless a server can tell."""
        return 0

    def runs(self) -> bool:
        """Whether the process is alive."""
        return self.process is not None and self.process.ending is None

    def answers(self) -> bool:
        """Whether it runs and does its work now."""
        return self.runs() and self._answers()

    def wait(self) -> None:
        """Blocks until it answers. Raises LocalError when it dies or `start_s_max` is over."""
        began_s = time.monotonic()
        while not self.answers():
            self.check()
            waited_s = time.monotonic() - began_s
            if waited_s > self.start_s_max:
                raise self.mute()
            time.sleep(poll_s(waited_s))

    def mute(self) -> LocalError:
        """The error for a server that did not answer in time."""
        return LocalError(
            f"{self.command.name} does not answer after {self.start_s_max:g} s: {self.obituary()}"
        )

    def check(self) -> None:
        """Raises LocalError when it does not run."""
        if self.process is None:
            raise LocalError(f"{self.command.name} is not started")
        if self.process.ending is not None:
            raise LocalError(f"{self.command.name} died: {self.obituary()}")

    def obituary(self) -> str:
        """One line about how it does or how it ended."""
        return self.process.obituary() if self.process is not None else "not started"

    def start(self) -> None:
        """Launches and waits; after a LocalError nothing of it runs."""
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
        """Ends it gently, bounded by the command's `stop_s_max`. Does nothing when it is not running."""
        if self.process is not None:
            self.process.stop()

    def kill(self) -> None:
        """Ends it at once, as a crash would. Does nothing when it is not running."""
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
    """The pause before a server that has been waited for so long is asked again."""
    return min(max(waited_s / 20, _POLL_S_MIN), _POLL_S_MAX)
