"""Samples what the pods of a release use, by component, and the driver's progress, while a run is measured."""

from __future__ import annotations

import time
import urllib.request
from collections import defaultdict
from collections.abc import Sequence
from http.client import HTTPException

from bettong.chaos.log_position import LogPosition
from bettong.cluster.api import Cluster
from bettong.cluster.objects import RELEASE
from bettong.errors import ClusterError
from bettong.lab.target.sampling import KindSample, Sampling
from bettong.metric_series import Metric, Scope
from bettong.metrics import LAG, MESSAGES, OFFSET, SERIES

_ANSWER_S_MAX = 10.0
_MEBIBYTE = 1 << 20


class DriverPage:
    """The driver's Prometheus metrics at `address`, host:port. Methods return None while these are not available."""

    def __init__(self, address: str) -> None:
        self._url = f"http://{address}/metrics"

    def folded(self) -> int | None:
        """How many messages all partitions have processed."""
        found = _sum(self._lines(), MESSAGES, Scope.PARTITION)
        return None if found is None else int(found)

    def position(self) -> LogPosition | None:
        """The driver's progress now."""
        lines, at_s = self._lines(), time.time()
        lag = _sum(lines, LAG, Scope.PROCESSOR)
        offset = _sum(lines, OFFSET, Scope.PARTITION)
        folded = _sum(lines, MESSAGES, Scope.PARTITION)
        if lag is None or offset is None or folded is None:
            return None
        return LogPosition(at_s, lag, offset + lag, folded)

    def _lines(self) -> list[str]:
        try:
            with urllib.request.urlopen(self._url, timeout=_ANSWER_S_MAX) as page:  # noqa: S310 - ours
                text: str = page.read().decode()
        except (OSError, HTTPException):
            return []
        return text.splitlines()


def _sum(lines: Sequence[str], metric: Metric, scope: Scope) -> float | None:
    """The sum of all series of a metric; None if there are none."""
    name = next(each.name for each in SERIES if each.metric is metric and each.scope is scope)
    values = [float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{"))]
    return sum(values) if values else None


class ClusterSampling(Sampling):
    """Samples all pods, summed by component.

    `usage`: as the cluster's metrics server reports it: averages over some seconds in the past. `unmeasured`: why it
    last reported nothing. `positions`: the driver's progress, by Unix time.
    """

    def __init__(
        self, cluster: Cluster, release: str, page: DriverPage, begin_s: float, *, every_s: float
    ) -> None:
        """`cluster`: its context and namespace are used, but not its connection, which is not thread-safe."""
        super().__init__("lab-cluster", begin_s, every_s=every_s)
        self._cluster = Cluster(context=cluster.context, namespace=cluster.namespace)
        self._labels = f"{RELEASE}={release}"
        self._page = page
        self.positions: list[LogPosition] = []
        self.unmeasured = ""

    def _run(self) -> None:
        with self._cluster:
            super()._run()

    def _sample(self, passed_s: float) -> None:
        if (position := self._page.position()) is not None:
            self.positions.append(position)
        try:
            found = self._cluster.usages(self._labels)
        except ClusterError as error:
            self.unmeasured = str(error)
            return
        cores: dict[str, float] = defaultdict(float)
        memory_mb: dict[str, float] = defaultdict(float)
        for each in found:
            cores[each.component] += each.cores
            memory_mb[each.component] += each.memory_bytes / _MEBIBYTE
        kinds = {name: KindSample(memory_mb[name], used * passed_s) for name, used in cores.items()}
        self.usage.add_sample(kinds, time.time() - self._begin_s, passed_s)
