"""What the processes of a suite use, once a second: a share of a core each, and memory; and the machine's network."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from bettong.chaos.spec import TARGETS
from bettong.chaos.victims import families, processes
from bettong.local.record import ServiceRecord
from bettong.threads import BlockThread

# What follows the colon in the name of a series.
CORES, MEMORY, LATENCY, LAG = "cores", "memory MB", "latency ms", "lag records"
NETWORK, GC_PAUSE, FAULT = "network MB/s", "GC pause ms", "fault"
MACHINE = "machine"
_SAMPLE_S = 1.0
_CLOSE_S_MAX = 20.0
_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """A value of a metric at a time, in seconds since the run began."""

    at_s: float
    metric: str
    value: float


@dataclass(slots=True)
class Usage:
    """What was used while a run was measured, by kind of process, or by component on a cluster.

    `cpu_s`: of all of a kind together. `memory_mb`: the most that a kind held. `network_mb`: what the machine sent, to
    itself too. `points`: all samples.
    """

    cpu_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    memory_mb: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    network_mb: float = 0.0
    points: list[SeriesPoint] = field(default_factory=list)

    def note(self, kind: str, at_s: float, *, memory_mb: float, cpu_s: float, passed_s: float) -> None:
        """A sample of a kind: what it holds, and what it has spent since the one before; the first passes no time."""
        self.memory_mb[kind] = max(self.memory_mb[kind], memory_mb)
        self.points.append(SeriesPoint(at_s, f"{kind}: {MEMORY}", memory_mb))
        if passed_s:
            self.cpu_s[kind] += cpu_s
            self.points.append(SeriesPoint(at_s, f"{kind}: {CORES}", cpu_s / passed_s))


class Sampling(BlockThread):
    """A context manager; inside, a thread samples `usage` each `every_s`. Read it afterwards.

    `begin_s`, Unix time, is when the run began.
    """

    def __init__(self, name: str, begin_s: float, *, every_s: float) -> None:
        super().__init__(name, close_s_max=_CLOSE_S_MAX)
        self._begin_s = begin_s
        self._every_s = every_s
        self.usage = Usage()

    def _run(self) -> None:
        before_s = time.monotonic()
        self._sample(0.0)
        while not self._stopping.wait(self._every_s):
            now_s = time.monotonic()
            self._sample(now_s - before_s)
            before_s = now_s
        self._sample(time.monotonic() - before_s)

    def _sample(self, passed_s: float) -> None:
        """Adds to `usage`. The first one, after no time, is what others are counted from."""
        raise NotImplementedError


class UsageSampling(Sampling):
    """All processes of a kind together."""

    def __init__(self, services: Callable[[], Mapping[str, ServiceRecord]], begin_s: float) -> None:
        super().__init__("lab-usage", begin_s, every_s=_SAMPLE_S)
        self._services = services
        self._spent_s: dict[psutil.Process, float] = {}
        self._sent = psutil.net_io_counters().bytes_sent

    def _sample(self, passed_s: float) -> None:
        services, within = self._services(), families()
        at_s = time.time() - self._begin_s
        sent_mb = (psutil.net_io_counters().bytes_sent - self._sent) / _MEBIBYTE
        before_mb, self.usage.network_mb = self.usage.network_mb, sent_mb
        if passed_s:
            rate_mb = (sent_mb - before_mb) / passed_s
            self.usage.points.append(SeriesPoint(at_s, f"{MACHINE}: {NETWORK}", rate_mb))
        for target in TARGETS:
            cpu_s, memory_mb = 0.0, 0.0
            for process in processes(target, services, within):
                with suppress(psutil.NoSuchProcess):
                    spent_s = sum(process.cpu_times()[:2])
                    known_s = self._spent_s.get(process, 0.0 if passed_s else spent_s)
                    cpu_s += max(0.0, spent_s - known_s)
                    self._spent_s[process] = spent_s
                    memory_mb += process.memory_info().rss / _MEBIBYTE
            if memory_mb:
                self.usage.note(target, at_s, memory_mb=memory_mb, cpu_s=cpu_s, passed_s=passed_s)
