"""Follows the logs of all pods of a release: one thread per container, and one reader."""

from __future__ import annotations

import contextlib
import heapq
import queue
import threading
import time
from collections.abc import Iterator

from bettong.cluster.acting import containers
from bettong.cluster.api import Cluster
from bettong.cluster.log_lines import Line, lines_of
from bettong.cluster.objects import RELEASE
from bettong.errors import ClusterError, ClusterForbiddenError

_NEW_PODS_S = 2.0  # between two checks for new pods
_SETTLE_S = 0.3  # how long a line waits for earlier lines of other pods
_LINES_MAX = 10_000  # lines read and not yet printed; others wait in the pods' logs


class Follower:
    """Follows all containers of a release, including later ones, until the process ends."""

    def __init__(self, cluster: Cluster, release: str, component: str | None, since_s: int | None) -> None:
        self._cluster, self._release, self._component = cluster, release, component
        self._since_s = since_s
        self._lines: queue.Queue[Line] = queue.Queue(_LINES_MAX)
        self._followed: dict[tuple[str, str], threading.Thread] = {}
        self._read_ns: dict[tuple[str, str], int] = {}
        self._fault: ClusterError | None = None

    def lines(self) -> Iterator[Line]:
        """Lines ordered by time, if they arrive within 0.3 s. Ends only with an error."""
        waiting: list[tuple[Line, float]] = []
        checked_s = 0.0
        while True:
            if time.monotonic() - checked_s > _NEW_PODS_S:
                self._follow_new()
                checked_s = time.monotonic()
            if self._fault is not None:
                raise self._fault
            with contextlib.suppress(queue.Empty):
                heapq.heappush(waiting, (self._lines.get(timeout=0.1), time.monotonic()))
            while waiting and (time.monotonic() - waiting[0][1] > _SETTLE_S or len(waiting) > _LINES_MAX):
                yield heapq.heappop(waiting)[0]

    def _follow_new(self) -> None:
        pods = self._cluster.list("pods", labels=f"{RELEASE}={self._release}")
        for container in containers(pods, self._component):
            if container in self._followed and self._followed[container].is_alive():
                continue
            thread = threading.Thread(
                target=self._follow, args=container, daemon=True, name=f"log of {container[0]}"
            )
            self._followed[container] = thread
            thread.start()

    def _follow(self, pod: str, container: str) -> None:
        """Reads until the container ends. A container that was followed before resumes after its last line."""
        last_ns = self._read_ns.get((pod, container), 0)
        since_s = self._since_s if not last_ns else max(1, int(time.time() - last_ns / 1e9) + 1)
        try:
            raw = self._cluster.log_lines(pod, container, since_s=since_s, follow=True, previous=False)
            for line in lines_of(pod, raw):
                if line.at_ns > last_ns:
                    self._lines.put(line)
                    self._read_ns[pod, container] = line.at_ns
        except ClusterForbiddenError as error:
            self._fault = error
        except ClusterError:
            pass  # the next check for new pods follows the container again
