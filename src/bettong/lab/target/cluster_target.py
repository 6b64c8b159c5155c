"""A run on a Kubernetes cluster: a release with its own Kafka and Redis, in its own namespace."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bettong.chaos.nemeses import Injected
from bettong.cluster.api import Cluster
from bettong.cluster.helm import chart_of, image_values
from bettong.cluster.objects import RELEASE, Object
from bettong.cluster.own_release import OwnRelease, await_ready, installed, troubles
from bettong.cluster.pods import rows
from bettong.errors import ClusterError, SettingsError
from bettong.lab.spec import KubernetesTable, RunSpec
from bettong.lab.target.cluster_sampling import ClusterSampling, DriverPage
from bettong.lab.target.folding import await_count
from bettong.lab.target.forwarding import Forwarding
from bettong.lab.target.target import Collected
from bettong.services import RECEIVER, SENDER, ServiceEntry

_RELEASE = "lab"
_DRIVER, _METRICS_PORT = "driver", 7300
_FOLDED_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class ClusterTarget:
    """See `RunTarget`; made by `cluster_target`. `restarts`: of each pod, before the run began."""

    cluster: Cluster
    sender: str
    receiver: str
    page: DriverPage
    restarts: Mapping[str, int]
    topics: None = None

    def await_folded(self, messages: int) -> None:
        """See `RunTarget`."""
        await_count(lambda: self.page.folded() or 0, messages, poll_s=_FOLDED_POLL_S)

    @contextmanager
    def collecting(self, begin_s: float, *, positions_every_s: float) -> Iterator[Collected]:
        """See `RunTarget`."""
        found = Collected()
        with ClusterSampling(
            self.cluster, _RELEASE, self.page, begin_s, every_s=positions_every_s
        ) as sampling:
            yield found
        found.usage, found.positions = sampling.usage, sampling.positions
        measured = "from metrics.k8s.io" if found.usage.points else _not_measured(sampling.unmeasured)
        found.facts = _facts(self.cluster) | {"CPU and memory": measured}

    def inject_faults(self, begin_s: float) -> list[Injected]:  # noqa: ARG002 - a run has no faults here
        """See `RunTarget`."""
        return []

    def wait(self, seconds: float) -> None:
        """See `RunTarget`. Also raises ClusterError if pods were replaced or restarted: the measurement is void."""
        time.sleep(seconds)
        if _restarts(self.cluster) != self.restarts:
            raise ClusterError(
                f"pods were added, removed or restarted during the measurement: {troubles(self.cluster, _RELEASE)}"
            )

    def check(self) -> None:
        """See `RunTarget`. Nothing fails for good here, Kubernetes starts it again: `wait` finds that at the end."""


@contextmanager
def cluster_target(
    spec: RunSpec, where: KubernetesTable, *, say: Callable[[str], None]
) -> Iterator[ClusterTarget]:
    """Installs a release and waits until all of it is ready; removes it and its namespace when the context exits.

    Raises ClusterError, also if something is left behind; SettingsError for files that do not exist.
    """
    wanted = _release(spec, where)
    with ExitStack() as opened:
        cluster = opened.enter_context(Cluster(context=where.context, namespace=where.namespace))
        say(f"installing into namespace {cluster.namespace}")
        opened.enter_context(installed(cluster, wanted))
        opened.callback(say, f"removing namespace {cluster.namespace}")
        await_ready(cluster, wanted.name, seconds_max=where.ready_s_max, on_progress=say)
        sender, receiver = (_forwarded(opened, cluster, each) for each in (SENDER, RECEIVER))
        driver = opened.enter_context(Forwarding(cluster, _RELEASE, _DRIVER, _METRICS_PORT))
        yield ClusterTarget(cluster, sender, receiver, DriverPage(driver.address), _restarts(cluster))


def _forwarded(opened: ExitStack, cluster: Cluster, service: ServiceEntry) -> str:
    assert service.grpc_port is not None  # noqa: S101 - those that serve clients have one
    return opened.enter_context(Forwarding(cluster, _RELEASE, service.name, service.grpc_port)).address


def _release(spec: RunSpec, where: KubernetesTable) -> OwnRelease:
    source = None if where.application is not None else Path(spec.application)
    for name, file in (("application", source), ("kubernetes.values", where.values)):
        if file is not None and not file.is_file():
            raise SettingsError(f"{spec.name}: {name}: {file} is no file")
    own = {
        "schedule": spec.schedule.value,
        "partitions": spec.partitions,
        "compiled": spec.compiled,
    }
    over: dict[str, object] = {
        "settings": {name: _typed(value) for name, value in spec.settings.items()} | own,
        # In stores outside the release, a run would leave data for the next one.
        "kafka": {"bundled": {"enabled": True}},
        "redis": {"bundled": {"enabled": True}},
        "metrics": {"enabled": True},
        "application": {"source": "", "path": where.application} if where.application is not None else {},
        "test": {"source": "", "message": "", "sink": ""},  # the chart's own is of another application
    }
    if where.images is not None:
        over["image"] = image_values(where.images)
    chart = chart_of(where.chart, named_by="kubernetes.chart, a folder")
    return OwnRelease(_RELEASE, chart, where.values, over, source)


def _typed(value: str) -> object:
    """A setting in the type that the chart expects: a number, a boolean, or text."""
    try:
        return json.loads(value)
    except ValueError:
        return value


def _pods(cluster: Cluster) -> list[Object]:
    return cluster.list("pods", labels=f"{RELEASE}={_RELEASE}")


def _restarts(cluster: Cluster) -> dict[str, int]:
    """The restarts of each pod that is ready."""
    return {each.name: each.restarts for each in rows(_pods(cluster)) if each.ready}


def _facts(cluster: Cluster) -> dict[str, str]:
    """Facts of the cluster on which a run was measured."""
    pods = _pods(cluster)
    images = {each["image"] for pod in pods for each in pod["spec"]["containers"]}
    where = f", context {cluster.context}" if cluster.context is not None else ""
    return {
        "target": f"Kubernetes {cluster.version()}{where}",
        "nodes": _nodes(cluster, {pod["spec"].get("nodeName", "") for pod in pods} - {""}),
        "images": ", ".join(sorted(images)),
    }


def _not_measured(why: str) -> str:
    return f"not measured: {why}" if why else "not measured"


def _nodes(cluster: Cluster, names: set[str]) -> str:
    """The nodes of the pods, equal ones together; only their number without permission to read nodes."""
    try:
        nodes = [cluster.read_node(name) for name in sorted(names)]
    except ClusterError:
        return str(len(names))
    kinds = Counter(_kind(each) for each in nodes)
    return "; ".join(f"{count} of {kind}" for kind, count in kinds.items())


def _kind(node: Object) -> str:
    status = node["status"]
    info, size = status.get("nodeInfo") or {}, status["capacity"]
    words = [f"{size['cpu']} CPUs", size["memory"]]
    words += [info[key] for key in ("architecture", "osImage", "kernelVersion") if info.get(key)]
    words += [f"kubelet {info['kubeletVersion']}"] if info.get("kubeletVersion") else []
    return " ".join(words)
