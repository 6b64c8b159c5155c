"""Operations on a release, by way of `api`: inspect, scale, restart, read logs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from bettong.cluster import counts, rolling
from bettong.cluster.api import Cluster
from bettong.cluster.log_lines import Line, lines_of, merged
from bettong.cluster.objects import COMPONENT, RELEASE, Object, chosen, component_of, name_of, of_release
from bettong.cluster.pods import warnings
from bettong.errors import ClusterError

POLL_S = 0.5  # between two polls of a cluster's state
_LAG_S_MAX = 60.0  # the first time, the command in the driver's pod has to load the application
_HEALTH = ("bettong", "health", "--memory", "/tmp/k8s-status.json", "--stalled-s", "1e9")  # noqa: S108 - in the pod


@dataclass(frozen=True, slots=True)
class Deployed:
    """The current state of a release."""

    release: str
    workloads: list[Object]
    pods: list[Object]
    events: list[Object]

    def of(self, component: str) -> Object | None:
        """The workload of a component; None without one."""
        return next((each for each in self.workloads if component_of(each) == component), None)

    def warnings(self) -> list[str]:
        """The problems of the release, one line each."""
        return warnings(self.pods, self.events, [name_of(each) for each in self.workloads])


def found(cluster: Cluster, release: str | None) -> tuple[str, list[Object]]:
    """The name of the chosen release, and its StatefulSets."""
    sets = cluster.list("statefulsets", labels=COMPONENT)
    name = chosen(release, sets, cluster.namespace)
    return name, of_release(sets, name)


def deployed(cluster: Cluster, release: str | None, *, deployments: bool = True) -> Deployed:
    """The current state of the chosen release."""
    name, sets = found(cluster, release)
    others = cluster.list("deployments", labels=f"{RELEASE}={name}") if deployments else []
    return Deployed(
        name,
        of_release([*sets, *others], name),
        cluster.list("pods", labels=f"{RELEASE}={name}"),
        cluster.list("events", fields="type=Warning"),
    )


def workers_of(cluster: Cluster, sets: list[Object]) -> tuple[Object, counts.Workers]:
    """The StatefulSet of the workers, and their counts. Raises ClusterError when it is gone."""
    each = next((one for one in sets if component_of(one) == "worker"), None)
    if each is None:
        raise ClusterError("its StatefulSet of workers is gone: was the release uninstalled?")
    settings = cluster.get("configmaps", counts.settings_map(each)).get("data") or {}
    return each, counts.workers(each, settings)


def lag(cluster: Cluster, pods: list[Object]) -> str:
    """The driver's report of processed and waiting records, from a command run in its pod."""
    for pod in pods:
        if component_of(pod) == "driver" and pod["status"].get("phase") == "Running":
            return cluster.run(name_of(pod), "driver", _HEALTH, seconds_max=_LAG_S_MAX).strip()
    return "no driver is running: its lag is unknown"


def scalable(cluster: Cluster, release: str | None, count: int | None) -> counts.Workers:
    """The workers, after checking that their count may be set to `count`; None: that it may be set at all.

    Raises ClusterError when it may not.
    """
    _, sets = found(cluster, release)
    each, now = workers_of(cluster, sets)
    counts.refuse(each, now, now.wanted if count is None else count, cluster.list("horizontalpodautoscalers"))
    return now


def scale(cluster: Cluster, release: str | None, count: int) -> counts.Workers:
    """Sets the count of workers, and returns their previous state. Raises ClusterError when it may not be set."""
    before = scalable(cluster, release, count)
    cluster.patch("statefulsets", before.name, {"spec": {"replicas": count}}, subresource="scale")
    return before


def awaited(
    cluster: Cluster,
    release: str,
    name: str,
    *,
    seconds_max: float,
    on_progress: Callable[[rolling.RolloutProgress], None],
    deployments: bool = True,
) -> bool:
    """Waits until all pods of a workload are updated and ready; False after `seconds_max`. Calls `on_progress`.

    Raises ClusterError when the workload is gone.
    """
    deadline = time.monotonic() + seconds_max
    while True:
        sets = cluster.list("statefulsets", labels=f"{RELEASE}={release}")
        others = cluster.list("deployments", labels=f"{RELEASE}={release}") if deployments else []
        each = next((one for one in [*sets, *others] if name_of(one) == name), None)
        if each is None:
            raise ClusterError(f"{name} is gone: was release {release} uninstalled?")
        how = rolling.progress(each)
        on_progress(how)
        if how.done or time.monotonic() > deadline:
            return how.done
        time.sleep(POLL_S)


def restart(cluster: Cluster, workload: Object) -> None:
    """Restarts all pods of a workload, by its update strategy."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    cluster.patch(rolling.resource_of(workload), name_of(workload), rolling.restart(at))


def containers(
    pods: list[Object], component: str | None, *, restarted: bool = False
) -> list[tuple[str, str]]:
    """(pod, container) of all started containers, or all restarted ones, of one component or all."""
    return [
        (name_of(pod), each["name"])
        for pod in pods
        if component in (None, component_of(pod))
        for each in pod["status"].get("containerStatuses", [])
        if each.get("restartCount")
        or (not restarted and {"running", "terminated"} & (each.get("state") or {}).keys())
    ]


def logs(
    cluster: Cluster, found: list[tuple[str, str]], *, since_s: int | None, previous: bool
) -> Iterator[Line]:
    """All logs up to now, merged by time."""
    return merged(
        [
            lines_of(pod, cluster.log_lines(pod, container, since_s=since_s, follow=False, previous=previous))
            for pod, container in found
        ]
    )
