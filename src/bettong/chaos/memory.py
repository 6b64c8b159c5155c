"""Polls the memory of the processes of a suite."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import psutil

from bettong.chaos.growth import Sample
from bettong.chaos.spec import TARGETS, OtherProcess
from bettong.chaos.victims import families, processes
from bettong.local.record import ServiceRecord
from bettong.services import SERVICES
from bettong.threads import BlockThread

_POLL_S = 0.5
# Each sample is the peak of so many polls.
_POLLS_PER_SAMPLE = 10
# The time of a poll, on a machine that is busy with faults.
_CLOSE_S_MAX = 20.0
_MEBIBYTE = 1024 * 1024

# The most memory of one process (RSS, MiB). Spark's heap is 1 GiB, the broker's 512 MiB; a Java process takes its heap
# and a third on top.
BOUNDS_MB: dict[str, float] = {
    **{each.name: each.memory_mb_max for each in SERVICES.values()},
    OtherProcess.JVM: 1536,
    OtherProcess.EXECUTOR: 1536,
    OtherProcess.WORKER: 768,
    OtherProcess.KAFKA: 1024,
    OtherProcess.REDIS: 512,
}


class MemoryWatch(BlockThread):
    """A context manager; inside, a thread polls twice a second.

    `peaks_mb`: the most memory of one process of a kind; `samples`: that of the largest one, by Unix time.
    """

    def __init__(self, services: Callable[[], Mapping[str, ServiceRecord]]) -> None:
        super().__init__("memory", close_s_max=_CLOSE_S_MAX)
        self._services = services
        self.peaks_mb: dict[str, float] = {}
        self.samples: dict[str, list[Sample]] = {}

    def _run(self) -> None:
        polls, recent = 0, dict[str, float]()
        while not self._stopping.wait(_POLL_S):
            services, within = self._services(), families()
            for target in TARGETS:
                held = [_held_mb(process) for process in processes(target, services, within)]
                if held:
                    recent[target] = max(*held, recent.get(target, 0.0))
                    self.peaks_mb[target] = max(recent[target], self.peaks_mb.get(target, 0.0))
            polls += 1
            if polls % _POLLS_PER_SAMPLE == 0:
                for target, held_mb in recent.items():
                    self.samples.setdefault(target, []).append(Sample(time.time(), held_mb))
                recent.clear()


def _held_mb(process: psutil.Process) -> float:
    try:
        return float(process.memory_info().rss) / _MEBIBYTE
    except psutil.NoSuchProcess:
        return 0.0
