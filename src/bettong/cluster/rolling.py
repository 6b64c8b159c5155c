"""Rolling restarts of components: their order, and the progress of one. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bettong.cluster.objects import RESTARTED, Object, component_of, name_of
from bettong.errors import ClusterError
from bettong.services import SERVICES

# Consumers restart before producers, so that readers always know the format that writers use. The bundled Kafka and
# Redis are left out: their data may exist only in their pods.
ORDER = tuple(name for each in reversed([*SERVICES.values()]) for name in each.components)


@dataclass(frozen=True, slots=True)
class RolloutProgress:
    """The progress of a workload's pods to its newest template."""

    name: str
    wanted: int
    updated: int
    ready: int
    seen: bool
    left: int

    @property
    def done(self) -> bool:
        """Whether all pods have the newest template and are ready, and no others are left."""
        return self.seen and self.updated == self.wanted and self.ready == self.wanted and not self.left

    def line(self) -> str:
        """Describes the progress in one line."""
        if self.done:
            return f"{self.name}: all {self.wanted} pods are new and ready"
        if not self.seen:
            return f"{self.name}: not yet noticed"
        return f"{self.name}: {self.updated} of {self.wanted} pods are new, {self.ready} ready"


def progress(workload: Object) -> RolloutProgress:
    """The progress of a Deployment or StatefulSet, counted as by `kubectl rollout status`."""
    spec, status = workload["spec"], workload["status"]
    wanted, pods = int(spec.get("replicas", 1)), int(status.get("replicas", 0))
    updated = int(status.get("updatedReplicas", 0))
    # A StatefulSet that has finished its update reports its pods as current ones, not as updated ones.
    if status.get("currentRevision") is not None and status["currentRevision"] == status.get(
        "updateRevision"
    ):
        updated = pods
    ready = int(status.get("availableReplicas" if workload_is_deployment(workload) else "readyReplicas", 0))
    return RolloutProgress(
        name=name_of(workload),
        wanted=wanted,
        updated=min(updated, wanted),
        ready=min(ready, wanted),
        seen=int(status.get("observedGeneration", 0)) >= int(workload["metadata"].get("generation", 0)),
        left=max(0, pods - wanted),
    )


def workload_is_deployment(workload: Object) -> bool:
    """Whether it is a Deployment. Lists omit the kind of their items, but only a StatefulSet has a `serviceName`."""
    return "serviceName" not in workload["spec"]


def resource_of(workload: Object) -> str:
    """`deployments` or `statefulsets`."""
    return "deployments" if workload_is_deployment(workload) else "statefulsets"


def ordered(workloads: Iterable[Object], component: str | None) -> list[Object]:
    """The workloads to restart, in order: all of ours, or one component. Raises ClusterError, which lists them."""
    found = {component_of(each): each for each in workloads if component_of(each) in ORDER}
    if component is None:
        return [found[name] for name in ORDER if name in found]
    if component not in found:
        names = ", ".join(name for name in ORDER if name in found)
        raise ClusterError(f"no component {component!r} to restart; there are {names}")
    return [found[component]]


def restart(at: str) -> Object:
    """The patch that restarts all pods of a workload. `at`: an RFC 3339 time."""
    return {"spec": {"template": {"metadata": {"annotations": {RESTARTED: at}}}}}
