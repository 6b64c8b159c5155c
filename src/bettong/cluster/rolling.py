"""Restarts of components: in which order, and how far one is. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bettong.cluster.objects import RESTARTED, Object, component_of, name_of
from bettong.errors import ClusterError
from bettong.services import SERVICES

# Consumers restart before producers, so that a new format always meets a reader that knows it. The bundled Kafka and
# Redis are not among them: what they hold may lie in their pods alone.
ORDER = tuple(name for each in reversed([*SERVICES.values()]) for name in each.components)


@dataclass(frozen=True, slots=True)
class RolloutProgress:
    """How far the pods of a workload are in getting its newest template."""

    name: str
    wanted: int
    updated: int
    ready: int
    seen: bool
    left: int

    @property
    def done(self) -> bool:
        """Whether all pods are of the newest template and ready, and no others are left."""
        return self.seen and self.updated == self.wanted and self.ready == self.wanted and not self.left

    def line(self) -> str:
        """In words."""
        if self.done:
            return f"{self.name}: all {self.wanted} pods are new and ready"
        if not self.seen:
            return f"{self.name}: not yet noticed"
        return f"{self.name}: {self.updated} of {self.wanted} pods are new, {self.ready} ready"


def progress(workload: Object) -> RolloutProgress:
    """Of a Deployment or a StatefulSet, as `kubectl rollout status` counts."""
    spec, status = workload["spec"], workload["status"]
    wanted, pods = int(spec.get("replicas", 1)), int(status.get("replicas", 0))
    updated = int(status.get("updatedReplicas", 0))
    # A StatefulSet whose revision is settled counts no updated pods but the current ones.
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
    """Lists leave the kind of their items out: a StatefulSet says which Service it is of."""
    return "serviceName" not in workload["spec"]


def resource_of(workload: Object) -> str:
    """`deployments` or `statefulsets`."""
    return "deployments" if workload_is_deployment(workload) else "statefulsets"


def ordered(workloads: Iterable[Object], component: str | None) -> list[Object]:
    """Those to restart, in order: all of ours, or one component. Raises ClusterError, which lists what there is."""
    found = {component_of(each): each for each in workloads if component_of(each) in ORDER}
    if component is None:
        return [found[name] for name in ORDER if name in found]
    if component not in found:
        names = ", ".join(name for name in ORDER if name in found)
        raise ClusterError(f"no component {component!r} to restart; there are {names}")
    return [found[component]]


def restart(at: str) -> Object:
    """The change that makes all pods of a workload new. `at`: a time of RFC 3339."""
    return {"spec": {"template": {"metadata": {"annotations": {RESTARTED: at}}}}}
