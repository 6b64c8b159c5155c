"""What the processes of a suite hold in memory, looked at again and again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

import psutil

from bettong.chaos.spec import Target
from bettong.chaos.victims import processes
from bettong.local.record import ServiceRecord

_LOOK_S = 0.5
_MEBIBYTE = 1024 * 1024

# What one process may hold at most (RSS, MiB), by what bounds it: the sender's buffer is 256 MiB, Spark's heap 1 GiB,
# the broker's 512 MiB; a Java process comes to its heap and a third on top.
BOUNDS_MB: dict[Target, float] = {
    Target.SENDER: 768,
    Target.PROCESSOR: 512,
    Target.JVM: 1536,
    Target.EXECUTOR: 1536,
    Target.WORKER: 768,
    Target.RECEIVER: 768,
    Target.KAFKA: 1024,
    Target.REDIS: 512,
}


class MemoryWatch:
    """A context manager; inside, a thread looks twice a second."""

    def __init__(self, services: Callable[[], Mapping[str, ServiceRecord]]) -> None:
        self._services = services
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)
        self.peaks_mb: dict[Target, float] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_LOOK_S):
            for target in Target:
                for process in processes(target, self._services()):
                    self._note(target, process)

    def _note(self, target: Target, process: psutil.Process) -> None:
        try:
            held_mb = process.memory_info().rss / _MEBIBYTE
        except psutil.NoSuchProcess:
            return
        self.peaks_mb[target] = max(held_mb, self.peaks_mb.get(target, 0.0))
