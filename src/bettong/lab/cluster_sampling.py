"""What the pods of a release use, by component, and the lag: again and again, while a run is measured."""

from __future__ import annotations

import time
import urllib.request
from collections import defaultdict
from http.client import HTTPException

from bettong.chaos.growth import Sample
from bettong.cluster.api import Cluster
from bettong.cluster.objects import RELEASE
from bettong.errors import ClusterError
from bettong.lab.sampling import Sampling
from bettong.metric_series import Metric, Scope
from bettong.metrics import LAG, MESSAGES, SERIES

_SAMPLE_S = 5.0
_ANSWER_S_MAX = 10.0
_MEBIBYTE = 1 << 20


class DriverPage:
    """What the driver serves to Prometheus at `address`, host:port. None: nothing is known just now."""

    def __init__(self, address: str) -> None:
        self._url = f"http://{address}/metrics"

    def folded(self) -> int | None:
        """Messages, of all partitions."""
        found = self._sum(MESSAGES, Scope.PARTITION)
        return None if found is None else int(found)

    def lag(self) -> float | None:
        """Records in the log that are not folded."""
        return self._sum(LAG, Scope.PROCESSOR)

    def _sum(self, metric: Metric, scope: Scope) -> float | None:
        name = next(each.name for each in SERIES if each.metric is metric and each.scope is scope)
        try:
            with urllib.request.urlopen(self._url, timeout=_ANSWER_S_MAX) as page:  # noqa: S310 - ours
                lines = page.read().decode().splitlines()
        except (OSError, HTTPException):
            return None
        values = [
            float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{"))
        ]
        return sum(values) if values else None


class ClusterSampling(Sampling):
    """All pods of a component together.

    `usage`: as the cluster's metrics server says it, which is an average over some seconds that are over. `unmeasured`:
    why it said nothing, the last time that it did. `lag`: records not yet folded, by Unix time.
    """

    def __init__(self, cluster: Cluster, release: str, page: DriverPage, begin_s: float) -> None:
        """`cluster`: says where; its connection is not used, for it is not for several threads."""
        super().__init__("lab-cluster", begin_s, every_s=_SAMPLE_S)
        self._cluster = Cluster(context=cluster.context, namespace=cluster.namespace)
        self._labels = f"{RELEASE}={release}"
        self._page = page
        self.lag: list[Sample] = []
        self.unmeasured = ""

    def _run(self) -> None:
        with self._cluster:
            super()._run()

    def _sample(self, passed_s: float) -> None:
        if (lag := self._page.lag()) is not None:
            self.lag.append(Sample(time.time(), lag))
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
        at_s = time.time() - self._begin_s
        for name, used in cores.items():
            self.usage.note(name, at_s, memory_mb=memory_mb[name], cpu_s=used * passed_s, passed_s=passed_s)
