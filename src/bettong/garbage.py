"""Configures Python's cyclic garbage collector, and logs its pauses."""

import gc
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

# Messages and results are many small objects that live for a frame. With Python's default thresholds (700, 10, 10)
# collection took two thirds of the time of a worker in the word count, and of a sender that reads a topic. The
# thresholds bound how many objects in cycles a process may keep for longer.
_THRESHOLDS = (100_000, 50, 1000)
_PAUSE_MS_LEAST = 0.1


def collect_rarely() -> None:
    """Excludes all current objects from later collections, and collects rarely. Call it after all imports."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


def log_pauses(folder: Path | None, name: str) -> None:
    """From now on logs each collection of 0.1 ms or more to `FOLDER/NAME-PID.log`; without a folder logs nothing."""
    if folder is not None:
        gc.callbacks.append(PauseLog(folder, name).note)


class PauseLog:
    """Writes each collection that takes long enough to matter to `FOLDER/NAME-PID.log`, in the format of Java's logs.

    A forked child has its own file. `clock_ns` measures the duration of a collection.
    """

    def __init__(self, folder: Path, name: str, clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._folder = folder
        self._name = name
        self._clock_ns = clock_ns
        self._begun_ns = 0

    def note(self, phase: str, info: Mapping[str, int]) -> None:
        """Python calls it before and after each collection."""
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
    """A context manager that pauses Python's collector, and afterwards restores its former state.

    For the fold of a frame: the collector would traverse the frame's results again and again, and free little, for
    messages and results are freed when their frame is done.
    """

    __slots__ = ("_collects",)

    def __enter__(self) -> None:
        self._collects = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._collects:
            gc.enable()
