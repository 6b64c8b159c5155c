"""When Python looks for garbage that counting references does not free, and how long it looks."""

import gc
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

# Messages and results are many small objects that live for a frame. At Python's own thresholds (700, 10, 10) collecting
# took two thirds of a worker's time in the word count, and of a sender's that reads a topic. What a process may hold on
# to for longer is bounded: so many objects in cycles.
_THRESHOLDS = (100_000, 50, 1000)
_PAUSE_MS_LEAST = 0.1


def collect_rarely() -> None:
    """Leaves what lives now out of every later search, and searches new objects rarely. Call it when all is loaded."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


def log_pauses(folder: Path | None, name: str) -> None:
    """From now on each search of 0.1 ms or more is a line of `FOLDER/NAME-PID.log`; without a folder nothing is."""
    if folder is not None:
        gc.callbacks.append(PauseLog(folder, name).note)


class PauseLog:
    """Writes each search for garbage that takes long enough to matter to `FOLDER/NAME-PID.log`, as Java's logs do.

    A child that was forked has a file of its own. `clock_ns` measures how long a search takes.
    """

    def __init__(self, folder: Path, name: str, clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._folder = folder
        self._name = name
        self._clock_ns = clock_ns
        self._begun_ns = 0

    def note(self, phase: str, info: Mapping[str, int]) -> None:
        """Python calls it before and after each search."""
        if phase == "start":
            self._begun_ns = self._clock_ns()
            return
        lasting_ms = (self._clock_ns() - self._begun_ns) / 1e6
        if lasting_ms < _PAUSE_MS_LEAST:
            return
        found = f"generation {info['generation']}, {info['collected']} objects freed"
        with (self._folder / f"{self._name}-{os.getpid()}.log").open("a") as file:
            file.write(f"[{time.time_ns() // 1_000_000}ms] Pause {found} {lasting_ms:.3f}ms\n")


class CollectionPaused:
    """Python's collector waits within `with`, and is afterwards as it was.

    For the fold of a frame: it would look at the frame's results again and again, and what it could free is little, for
    messages and results are gone when their frame is through.
    """

    __slots__ = ("_collects",)

    def __enter__(self) -> None:
        self._collects = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._collects:
            gc.enable()
