"""Kubernetes objects, and the labels and annotations that identify a release of the chart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bettong.errors import ClusterError
from bettong.services import SERVICES

Object = Mapping[str, Any]  # as the API server gives it: kubernetes.io/docs/reference/kubernetes-api

RELEASE = "app.kubernetes.io/instance"
COMPONENT = "app.kubernetes.io/component"
CHART = "helm.sh/chart"
# On workloads whose count the values of the chart fix: the next upgrade would undo scaling.
FIXED = "bettong/replicas"
# As `kubectl rollout restart` writes it: https://kubernetes.io/docs/reference/labels-annotations-taints/
RESTARTED = "kubectl.kubernetes.io/restartedAt"
# In the order of the data flow; others follow by name.
COMPONENTS = (*(name for each in SERVICES.values() for name in each.components), "kafka", "redis")


def name_of(each: Object) -> str:
    """The name of an object."""
    return str(each["metadata"]["name"])


def label(each: Object, key: str) -> str:
    """The value of a label; empty if it is missing."""
    return str((each["metadata"].get("labels") or {}).get(key, ""))


def component_of(each: Object) -> str:
    """The component of an object; empty if it has none."""
    return label(each, COMPONENT)


def order_of(component: str) -> tuple[int, str]:
    """Sort key of a component."""
    known = component in COMPONENTS
    return COMPONENTS.index(component) if known else len(COMPONENTS), component


def releases(workloads: Iterable[Object]) -> list[str]:
    """The names of this chart's releases among the workloads."""
    return sorted(
        {label(each, RELEASE) for each in workloads if label(each, CHART).startswith("bettong-")} - {""}
    )


def chosen(wanted: str | None, workloads: Iterable[Object], namespace: str) -> str:
    """The release to use: the named one, or the only one.

    Raises ClusterError, which lists the existing ones.
    """
    there = releases(workloads)
    listed = (
        f"there are {', '.join(there)}" if there else "there is none: helm install NAME deploy/helm/bettong"
    )
    if wanted is None and len(there) == 1:
        return there[0]
    if wanted is None:
        raise ClusterError(f"which release in namespace {namespace}? {listed}")
    if wanted not in there:
        raise ClusterError(f"no release {wanted!r} of Bettong in namespace {namespace}; {listed}")
    return wanted


def of_release(workloads: Iterable[Object], release: str) -> list[Object]:
    """The workloads of one release, ordered by component."""
    found = [each for each in workloads if label(each, RELEASE) == release]
    return sorted(found, key=lambda each: order_of(component_of(each)))
