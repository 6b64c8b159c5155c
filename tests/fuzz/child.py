"""Feeds parsers, one after the other, in a process that may die of it: `python -m tests.fuzz.child NAME,NAME ...`.

Prints how many inputs each has read. The input under way lies in a file, so a crash leaves it behind; so do an
exception, a parser that takes longer than `INPUT_S_MAX`, and one that wants more memory than `MEMORY_BYTES_MAX` on top
of what its imports took.
"""

from __future__ import annotations

import faulthandler
import mmap
import os
import resource
import signal
import struct
import sys
from pathlib import Path
from random import Random
from typing import Self

from tests.fuzz.harness import INPUT_BYTES_MAX, Harness
from tests.fuzz.mutating import mutated
from tests.fuzz.registry import HARNESSES

# Of CPU, so that it does not matter what else the machine does. A frame of 64 KiB takes milliseconds.
INPUT_S_MAX = 20.0
# Seconds of the clock for each of CPU: who gets less of a core waits for something, also where others come first.
CLOCK_TIMES_MAX = 60
MEMORY_BYTES_MAX = 1024 * 1024 * 1024
_COUNT = struct.Struct("<QQ")  # inputs so far, length of the one under way


def feed(harness: Harness, in_flight: Path, *, seed: int, seconds: float) -> int:
    """Reads inputs made of the corpus, for so many seconds of CPU. Returns how many; raises what a parser must not."""
    inputs = [*harness.corpus(), *harness.seeds()]
    random = Random(seed)
    end = cpu_s() + seconds
    with Recorder(in_flight) as recorder:
        while cpu_s() < end:
            data = mutated(random, inputs, harness.words)
            recorder.note(data)
            limit_input()
            harness.read(data)
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(timer, 0)
    return recorder.count


class Recorder:
    """Keeps the input under way in a file, without a call of the system for each."""

    def __init__(self, in_flight: Path) -> None:
        self.count = 0
        self._file = in_flight.open("w+b")
        self._file.truncate(_COUNT.size + INPUT_BYTES_MAX)
        self._memory = mmap.mmap(self._file.fileno(), 0)

    def note(self, data: bytes) -> None:
        """Before it is read."""
        self.count += 1
        self._memory[: _COUNT.size + len(data)] = _COUNT.pack(self.count, len(data)) + data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.close()
        self._file.close()


def left_behind(in_flight: Path) -> tuple[int, bytes]:
    """How many inputs the last parser has read, and which was the last one."""
    content = in_flight.read_bytes() if in_flight.is_file() else b""
    if len(content) < _COUNT.size:
        return 0, b""
    count, length = _COUNT.unpack_from(content)
    return count, content[_COUNT.size : _COUNT.size + length]


def cpu_s() -> float:
    """What this process took so far, and those that it waited for: `helm` reads the chart's values."""
    return sum(os.times()[:4])


def limit_input() -> None:
    """From now on, a parser that takes longer than `INPUT_S_MAX`, or waits, dies, also where no Python runs."""
    signal.setitimer(signal.ITIMER_PROF, INPUT_S_MAX)
    signal.setitimer(signal.ITIMER_REAL, INPUT_S_MAX * CLOCK_TIMES_MAX)


def limit_memory() -> None:
    """From now on, so much more than there is."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * mmap.PAGESIZE + MEMORY_BYTES_MAX
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(arguments: list[str]) -> int:
    """NAMES FILE SEED SECONDS (for each), or NAME alone: reads one input from standard input."""
    faulthandler.enable()
    harnesses = [HARNESSES[name] for name in arguments[0].split(",")]
    if len(arguments) == 1:
        harnesses[0].read(sys.stdin.buffer.read())
        return 0
    with Recorder(Path(arguments[1])) as recorder:
        for harness in harnesses:
            for data in [*harness.corpus(), *harness.seeds()]:  # imports and caches, before memory is counted
                recorder.note(data)
                harness.read(data)
    limit_memory()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # kills, also where no Python runs
    for harness in harnesses:
        count = feed(harness, Path(arguments[1]), seed=int(arguments[2]), seconds=float(arguments[3]))
        print(count, flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
