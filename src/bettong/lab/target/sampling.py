"""Samples each second the CPU and memory of a suite's processes, and the machine's network."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from bettong.chaos.victims import all_processes
from bettong.lab.series import CORES, MACHINE, MEMORY, NETWORK, PSS, SeriesPoint
from bettong.local.record import ServiceRecord
from bettong.threads import BlockThread

_SAMPLE_S = 1.0
# For PSS, the kernel walks through all pages of a process: 40 ms of CPU for a suite of 1.2 GB.
_PSS_S = 10.0
# The last sample may follow the one before at once: CPU time counts in whole ticks, so its rate would be chance.
_RATE_S_MIN = 0.5
_CLOSE_S_MAX = 20.0
_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class KindSample:
    """The memory of all processes of a kind now, and the CPU time that they spent since the previous sample.

    `memory_mb`: RSS. `pss_mb`: a page that processes share counts in part for each of them; None: not sampled now, or
    not reported by the system.
    """

    memory_mb: float
    cpu_s: float
    pss_mb: float | None = None


@dataclass(frozen=True, slots=True)
class SpentCpu:
    """CPU time that a kind of process spent between two samples, in seconds since the run began."""

    kind: str
    since_s: float
    until_s: float
    cpu_s: float


@dataclass(slots=True)
class Usage:
    """What a run used while it was measured, by kind of process, or by component on a cluster.

    `memory_mb`: the maximum of each kind. `memory_of_all_mb`: the maximum of their sum; pages that processes share
    count in each of them. `pss_mb`, `pss_of_all_mb`: the same of PSS, which counts each page once; empty and 0 if the
    system does not report it. `network_mb`: what the machine sent, including loopback. `points`: all samples.
    """

    memory_mb: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    memory_of_all_mb: float = 0.0
    pss_mb: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    pss_of_all_mb: float = 0.0
    network_mb: float = 0.0
    spent: list[SpentCpu] = field(default_factory=list)
    points: list[SeriesPoint] = field(default_factory=list)

    def add_sample(
        self, kinds: Mapping[str, KindSample], at_s: float, passed_s: float, *, with_cores: bool = True
    ) -> None:
        """Adds a sample, `passed_s` after the previous one; 0 for the first. `with_cores`: as a point, too."""
        self.memory_of_all_mb = max(self.memory_of_all_mb, sum(each.memory_mb for each in kinds.values()))
        for kind, each in kinds.items():
            self.memory_mb[kind] = max(self.memory_mb[kind], each.memory_mb)
            self.points.append(SeriesPoint(at_s, f"{kind}: {MEMORY}", each.memory_mb))
            if passed_s:
                self.spent.append(SpentCpu(kind, at_s - passed_s, at_s, each.cpu_s))
            if passed_s and with_cores:
                self.points.append(SeriesPoint(at_s, f"{kind}: {CORES}", each.cpu_s / passed_s))
        self._add_pss({kind: each.pss_mb for kind, each in kinds.items()}, at_s)

    def _add_pss(self, asked_mb: Mapping[str, float | None], at_s: float) -> None:
        """Adds all kinds or none: if one is unknown, the sum would be too small."""
        kinds_mb = {kind: each_mb for kind, each_mb in asked_mb.items() if each_mb is not None}
        if len(kinds_mb) < len(asked_mb):
            return
        self.pss_of_all_mb = max(self.pss_of_all_mb, sum(kinds_mb.values()))
        for kind, each_mb in kinds_mb.items():
            self.pss_mb[kind] = max(self.pss_mb[kind], each_mb)
            self.points.append(SeriesPoint(at_s, f"{kind}: {PSS}", each_mb))

    def cpu_s(self, since_s: float = -math.inf, until_s: float = math.inf) -> dict[str, float]:
        """CPU time of each kind between two times; a sample that is partly between them counts in part."""
        found: dict[str, float] = defaultdict(float)
        for each in self.spent:
            within_s = min(each.until_s, until_s) - max(each.since_s, since_s)
            if within_s > 0:
                found[each.kind] += each.cpu_s * within_s / (each.until_s - each.since_s)
        return found


class Sampling(BlockThread):
    """A context manager; inside, a thread adds a sample to `usage` each `every_s`. Read it afterwards.

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
        """Adds to `usage`. The first sample, after no time, is the base of the others."""
        raise NotImplementedError


class UsageSampling(Sampling):
    """Samples all processes of a suite, by kind; PSS first, last, and each _PSS_S between."""

    def __init__(self, services: Callable[[], Mapping[str, ServiceRecord]], begin_s: float) -> None:
        super().__init__("lab-usage", begin_s, every_s=_SAMPLE_S)
        self._services = services
        self._spent_s: dict[psutil.Process, float] = {}
        self._pss_due_s = -math.inf
        self._sent = psutil.net_io_counters().bytes_sent

    def _sample(self, passed_s: float) -> None:
        services = self._services()
        at_s = time.time() - self._begin_s
        sent_mb = (psutil.net_io_counters().bytes_sent - self._sent) / _MEBIBYTE
        before_mb, self.usage.network_mb = self.usage.network_mb, sent_mb
        with_rates = passed_s >= _RATE_S_MIN
        if with_rates:
            rate_mb = (sent_mb - before_mb) / passed_s
            self.usage.points.append(SeriesPoint(at_s, f"{MACHINE}: {NETWORK}", rate_mb))
        with_pss = self._stopping.is_set() or at_s >= self._pss_due_s
        if with_pss:
            self._pss_due_s = at_s + _PSS_S
        kinds = {
            kind: self._sampled(each, passed_s, with_pss=with_pss)
            for kind, each in all_processes(services).items()
        }
        found = {kind: each for kind, each in kinds.items() if each.memory_mb}
        self.usage.add_sample(found, at_s, passed_s, with_cores=with_rates)

    def _sampled(self, processes: Iterable[psutil.Process], passed_s: float, *, with_pss: bool) -> KindSample:
        cpu_s, memory_mb = 0.0, 0.0
        pss_mb: float | None = 0.0 if with_pss else None
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                spent_s = sum(process.cpu_times()[:2])
                known_s = self._spent_s.get(process, 0.0 if passed_s else spent_s)
                cpu_s += max(0.0, spent_s - known_s)
                self._spent_s[process] = spent_s
                memory_mb += process.memory_info().rss / _MEBIBYTE
                if pss_mb is not None:
                    own_mb = own_pss_mb(process)
                    pss_mb = None if own_mb is None else pss_mb + own_mb
        return KindSample(memory_mb, cpu_s, pss_mb)


def own_pss_mb(process: psutil.Process) -> float | None:
    """The memory of a process, with its part of each shared page.

    None if the system does not report it (macOS), or not to us (processes of other users).
    """
    try:
        pss = getattr(process.memory_full_info(), "pss", None)
    except psutil.AccessDenied:
        return None
    return None if pss is None else pss / _MEBIBYTE
