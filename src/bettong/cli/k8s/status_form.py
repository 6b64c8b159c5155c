"""What `bettong k8s status --json` prints, form 1. Fields may be added within a form; none is taken away or renamed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel

if TYPE_CHECKING:
    from bettong.cluster.counts import Workers
    from bettong.cluster.pods import PodRow
    from bettong.cluster.rolling import RolloutProgress

_VERSION = 1


class PodForm(BaseModel):
    """A pod. `whole_cpus`: they are the pod's own where the node's CPU manager is static."""

    component: str
    pod: str
    state: str
    ready: bool
    restarts: int
    qos_class: str
    cpus: float
    whole_cpus: bool
    node: str
    since_unix_s: float


class WorkloadForm(BaseModel):
    """A Deployment or StatefulSet: how many pods are wanted, have the newest template, and are ready."""

    name: str
    wanted: int
    updated: int
    ready: int
    done: bool


class WorkersForm(BaseModel):
    """The workers. `slots`: of each; `partitions`: of a stage."""

    wanted: int
    live: int
    slots: int
    partitions: int


class ReleaseForm(BaseModel):
    """The object. `all_ready`: exit code 0, else 7. `lag`: what the driver says, null without --lag."""

    version: int
    release: str
    namespace: str
    all_ready: bool
    pods: list[PodForm]
    workloads: list[WorkloadForm]
    workers: WorkersForm
    lag: str | None
    warnings: list[str]


def release_form(
    release: str,
    namespace: str,
    pods: Iterable[PodRow],
    workloads: Sequence[RolloutProgress],
    workers: Workers,
    lag: str | None,
    warnings: Sequence[str],
) -> ReleaseForm:
    """The content of the tables, for scripts."""
    return ReleaseForm(
        version=_VERSION,
        release=release,
        namespace=namespace,
        all_ready=not warnings and all(each.done for each in workloads),
        pods=[_pod(each) for each in pods],
        workloads=[
            WorkloadForm(
                name=each.name, wanted=each.wanted, updated=each.updated, ready=each.ready, done=each.done
            )
            for each in workloads
        ],
        workers=WorkersForm(
            wanted=workers.wanted, live=workers.live, slots=workers.slots, partitions=workers.partitions
        ),
        lag=lag,
        warnings=list(warnings),
    )


def _pod(row: PodRow) -> PodForm:
    return PodForm(
        component=row.component,
        pod=row.name,
        state=row.state,
        ready=row.ready,
        restarts=row.restarts,
        qos_class=row.qos,
        cpus=float(row.cpus),
        whole_cpus=row.whole,
        node=row.node,
        since_unix_s=row.since_s,
    )
