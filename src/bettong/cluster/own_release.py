"""A release of the chart in a namespace of its own; both are removed at the end, also after an error."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bettong.cluster import acting
from bettong.cluster.api import Cluster
from bettong.cluster.helm import (
    STDIN,
    call_helm,
    file_words,
    helm_program,
    small_values,
    uninstall,
    values_words,
)
from bettong.cluster.objects import COMPONENT, name_of, releases
from bettong.cluster.pods import PodRow, rows
from bettong.errors import BettongError, ClusterError

_LABEL = "bettong/run"  # marks the namespace, so that a leftover one can be recognised
_GONE_S_MAX = 300.0  # pods end within the chart's grace period, 60 s, and volumes after them
_LAST_LINES = 10  # lines of a container's log in an error


@dataclass(frozen=True, slots=True)
class OwnRelease:
    """What to install. `values`: a file that overrides the chart's small values. `over`: overrides both.

    `source`: the application's file, which the chart mounts; None if the images contain it.
    """

    name: str
    chart: Path
    values: Path | None
    over: Mapping[str, object]
    source: Path | None


@contextmanager
def installed(cluster: Cluster, wanted: OwnRelease) -> Iterator[None]:
    """Creates the namespace of `cluster` and installs the release, without waiting for pods; removes both at the end.

    Raises ClusterError if the namespace exists already, which is then left alone, or if the removal fails. An error
    raised inside is raised again with the last log lines of unhealthy pods.
    """
    helm_program()
    _make_namespace(cluster)
    try:
        try:
            _install(cluster, wanted)
            yield
        except BettongError as error:
            raise type(error)("; ".join([str(error), *_last_words(cluster, wanted.name)])) from error
    except BaseException as error:
        try:
            remove_with_namespace(cluster, wanted.name)
        except ClusterError as left:
            raise ClusterError(f"{str(error) or 'interrupted'}; and {left}") from error
        raise
    remove_with_namespace(cluster, wanted.name)


def remove_with_namespace(cluster: Cluster, release: str, *, gone_s_max: float = _GONE_S_MAX) -> None:
    """Removes release and namespace, the latter also when helm fails, and waits until both are gone.

    `gone_s_max`: for how long; 0: not at all. Raises ClusterError if the namespace may remain.
    """
    name = cluster.namespace
    try:
        try:
            uninstall(release, name, context=cluster.context)
        finally:
            if cluster.has_namespace():
                cluster.drop_namespace()
        deadline = time.monotonic() + gone_s_max
        while gone_s_max and cluster.has_namespace():
            if time.monotonic() > deadline:
                raise ClusterError(f"it is not gone after {gone_s_max:g} s")
            time.sleep(acting.POLL_S)
    except (ClusterError, KeyboardInterrupt) as error:
        why = str(error) or "interrupted"
        raise ClusterError(
            f"namespace {name} may still be there ({why}): kubectl delete namespace {name}"
        ) from error


def await_ready(
    cluster: Cluster, release: str, *, seconds_max: float, on_progress: Callable[[str], None]
) -> None:
    """Waits until all pods are ready. Raises ClusterError that names those which are not, and why."""
    deadline = time.monotonic() + seconds_max
    for name in [name_of(each) for each in acting.deployed(cluster, release).workloads]:
        left_s = max(0.0, deadline - time.monotonic())
        if not acting.awaited(
            cluster, release, name, seconds_max=left_s, on_progress=lambda how: on_progress(how.line())
        ):
            raise ClusterError(f"{name} is not ready after {seconds_max:g} s: {troubles(cluster, release)}")


def troubles(cluster: Cluster, release: str) -> str:
    """The problems of a release's pods; without any, the pods that are not ready."""
    found = acting.deployed(cluster, release)
    late = [f"{each.name}: {each.state}, not ready" for each in rows(found.pods) if not each.ready]
    return "; ".join(found.warnings() or late) or "no pod reports a cause"


def _last_words(cluster: Cluster, release: str) -> Iterator[str]:
    """The last log lines of containers that restarted or are not ready, if they can be read."""
    with suppress(ClusterError):
        pods = acting.deployed(cluster, release).pods
        unwell = {each.name: each for each in rows(pods) if each.restarts or not each.ready}
        for pod, container in acting.containers(pods, None):
            if pod in unwell and (lines := _tail(cluster, unwell[pod], container)):
                yield f"{pod} said: {' | '.join(lines)}"


def _tail(cluster: Cluster, pod: PodRow, container: str) -> list[str]:
    with suppress(ClusterError):
        said = cluster.log_lines(pod.name, container, since_s=None, follow=False, previous=pod.restarts > 0)
        return [line.partition(" ")[2] for line in deque(said, _LAST_LINES)]
    return []


def _make_namespace(cluster: Cluster) -> None:
    name = cluster.namespace
    meta = {"name": name, "labels": {_LABEL: "true"}}
    if cluster.make_namespace({"apiVersion": "v1", "kind": "Namespace", "metadata": meta}):
        return
    labels = cluster.read_namespace()["metadata"].get("labels") or {}
    there = ", ".join(releases(cluster.list("statefulsets", labels=COMPONENT)))
    what = f", with the release {there} of Bettong" if there else ""
    advice = "name one that is not there"
    if _LABEL in labels:
        advice = f"another run made it: where that is over, kubectl delete namespace {name}, or {advice}"
    raise ClusterError(
        f"namespace {name} is there already{what}; a run makes its own, and removes it: {advice}"
    )


def _install(cluster: Cluster, wanted: OwnRelease) -> None:
    words = ["install", wanted.name, str(wanted.chart), "--namespace", cluster.namespace]
    for file in (small_values(wanted.chart), wanted.values, STDIN):
        words += values_words(file) if file is not None else []
    if wanted.source is not None:
        words += file_words("application.source", wanted.source)
    call_helm(words, context=cluster.context, given=json.dumps(wanted.over))
