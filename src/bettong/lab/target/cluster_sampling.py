"""What the pods of a release use, by component, and how far the driver is: again and again, while a run is measured."""

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
    """What the driver serves to Prometheus at `address`, host:port. None: nothing is known just now."""

    def __init__(self, address: str) -> None:
        self._url = f"http://{address}/metrics"

    def folded(self) -> int | None:
        """Messages, of all partitions."""
        found = _sum(self._lines(), MESSAGES, Scope.PARTITION)
        return None if found is None else int(found)

    def position(self) -> LogPosition | None:
        """How far it is now."""
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
    """Of all series of the metric; None where the page has none."""
    name = next(each.name for each in SERIES if each.metric is metric and each.scope is scope)
    values = [float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{"))]
    return sum(values) if values else None


class ClusterSampling(Sampling):
    """All pods of a component together.

    `usage`: as the cluster's metrics server says it, which is an average over some seconds that are over. `unmeasured`:
    why it said nothing, the last time that it did. `positions`: how far the driver was, by Unix time.
    """

    def __init__(
        self, cluster: Cluster, release: str, page: DriverPage, begin_s: float, *, every_s: float
    ) -> None:
        """`cluster`: says where; its connection is not used, for it is not for several threads."""
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
        self.usage.note(kinds, time.time() - self._begin_s, passed_s)
