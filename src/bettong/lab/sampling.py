"""What the processes of a suite use, once a second: a share of a core each, and memory."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import psutil

from bettong.chaos.spec import TARGETS
from bettong.chaos.victims import processes
from bettong.local.record import ServiceRecord
from bettong.threads import BlockThread

# What follows the colon in the name of a series.
CORES, MEMORY, LATENCY, LAG = "cores", "memory MB", "latency ms", "lag records"
_SAMPLE_S = 1.0
_CLOSE_S_MAX = 20.0
_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """A value of a metric at a time, in seconds since the samples began."""

    at_s: float
    metric: str
    value: float


class UsageSampling(BlockThread):
    """A context manager; inside, a thread samples all processes of a kind together. Read what it has afterwards.

    `cpu_s`: of each kind, since entering. `memory_mb`: the most that a kind held. `points`: all samples.
    """

    def __init__(self, services: Callable[[], Mapping[str, ServiceRecord]]) -> None:
        super().__init__("lab-usage", close_s_max=_CLOSE_S_MAX)
        self._services = services
        self._begun_s = time.monotonic()
        self._spent_s: dict[psutil.Process, float] = {}
        self.cpu_s: dict[str, float] = defaultdict(float)
        self.memory_mb: dict[str, float] = defaultdict(float)
        self.points: list[SeriesPoint] = []

    def _run(self) -> None:
        before_s = time.monotonic()
        self._sample(0.0)
        while not self._stopping.wait(_SAMPLE_S):
            now_s = time.monotonic()
            self._sample(now_s - before_s)
            before_s = now_s
        self._sample(time.monotonic() - before_s)

    def _sample(self, passed_s: float) -> None:
        """The first one, after no time, is what others are counted from."""
        services = self._services()
        at_s = time.monotonic() - self._begun_s
        for target in TARGETS:
            cpu_s, memory_mb = 0.0, 0.0
            for process in processes(target, services):
                with suppress(psutil.NoSuchProcess):
                    spent_s = sum(process.cpu_times()[:2])
                    known_s = self._spent_s.get(process, 0.0 if passed_s else spent_s)
                    cpu_s += max(0.0, spent_s - known_s)
                    self._spent_s[process] = spent_s
                    memory_mb += process.memory_info().rss / _MEBIBYTE
            if not memory_mb:
                continue
            self.memory_mb[target] = max(self.memory_mb[target], memory_mb)
            self.points.append(SeriesPoint(at_s, f"{target}: {MEMORY}", memory_mb))
            if passed_s:
                self.cpu_s[target] += cpu_s
                self.points.append(SeriesPoint(at_s, f"{target}: {CORES}", cpu_s / passed_s))
