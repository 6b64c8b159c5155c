"""A release of the chart in a namespace that is made for it, and goes with it, whatever happens."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bettong.cluster import acting
from bettong.cluster.api import Cluster
from bettong.cluster.helm import call_helm, small_values
from bettong.cluster.objects import COMPONENT, name_of, releases
from bettong.cluster.pods import rows
from bettong.errors import BettongError, ClusterError

LABEL = "bettong/run"  # on the namespace, so that one that was left behind is known for what it is
_GONE_S_MAX = 300.0  # pods end within the grace of the chart, 60 s, and volumes behind them


@dataclass(frozen=True, slots=True)
class OwnRelease:
    """What is wanted. `values`: a file on top of the chart's own; by default its small ones. `over`: on top of both.

    `application`: the Python file that the chart puts in; None where the image holds it.
    """

    name: str
    namespace: str
    chart: Path
    context: str | None
    values: Path | None
    over: Mapping[str, object]
    application: Path | None


@contextmanager
def installed(cluster: Cluster, wanted: OwnRelease) -> Iterator[None]:
    """Makes the namespace, and installs the release without waiting for its pods; when it is left, both are removed.

    Raises ClusterError where the namespace is there already, which is left as it is, and where something is left
    behind. `cluster`: of the namespace.
    """
    _make_namespace(cluster)
    try:
        _install(wanted)
        yield
    except BettongError as error:
        try:
            _remove(cluster, wanted)
        except ClusterError as left:
            raise type(error)(f"{error}; and {left}") from error
        raise
    except BaseException:
        _remove(cluster, wanted)
        raise
    else:
        _remove(cluster, wanted)


def await_ready(
    cluster: Cluster, release: str, *, seconds_max: float, on_progress: Callable[[str], None]
) -> None:
    """Blocks until all pods are ready. Raises ClusterError that names those which are not, and why."""
    deadline = time.monotonic() + seconds_max
    for name in [name_of(each) for each in acting.deployed(cluster, release).workloads]:
        left_s = max(0.0, deadline - time.monotonic())
        if not acting.awaited(
            cluster, release, name, seconds_max=left_s, on_progress=lambda how: on_progress(how.line())
        ):
            why = "; ".join(troubles(cluster, release)) or "no pod says why"
            raise ClusterError(f"{name} is not ready after {seconds_max:g} s: {why}")


def troubles(cluster: Cluster, release: str) -> list[str]:
    """What is wrong with its pods, a line each; where none says it, which are not ready."""
    found = acting.deployed(cluster, release)
    late = [f"{each.name}: {each.state}, not ready" for each in rows(found.pods) if not each.ready]
    return found.warnings() or late


def _make_namespace(cluster: Cluster) -> None:
    name = cluster.namespace
    meta = {"name": name, "labels": {LABEL: "true"}}
    if cluster.make_namespace({"apiVersion": "v1", "kind": "Namespace", "metadata": meta}):
        return
    labels = cluster.read_namespace()["metadata"].get("labels") or {}
    there = ", ".join(releases(cluster.list("statefulsets", labels=COMPONENT)))
    what = f", with the release {there} of Bettong" if there else ""
    advice = "name one that is not there"
    if LABEL in labels:
        advice = f"an earlier run made it: where that is over, kubectl delete namespace {name}, or {advice}"
    raise ClusterError(
        f"namespace {name} is there already{what}; a run makes its own, and removes it: {advice}"
    )


def _install(wanted: OwnRelease) -> None:
    given = wanted.values or small_values(wanted.chart)
    words = ["install", wanted.name, str(wanted.chart), "--namespace", wanted.namespace]
    words += ["--values", str(given), "--values", "-"]
    if wanted.application is not None:
        words += ["--set-file", f"application.source={wanted.application}"]
    call_helm(words, context=wanted.context, given=json.dumps(wanted.over))


def _remove(cluster: Cluster, wanted: OwnRelease) -> None:
    """Removes release and namespace, and waits until both are gone. Raises ClusterError that names what is left."""
    words = ["uninstall", wanted.name, "--namespace", wanted.namespace, "--ignore-not-found"]
    try:
        try:
            call_helm(words, context=wanted.context)
        finally:
            cluster.drop_namespace()
        deadline = time.monotonic() + _GONE_S_MAX
        while cluster.has_namespace():
            if time.monotonic() > deadline:
                raise ClusterError(f"it is not gone after {_GONE_S_MAX:g} s")
            time.sleep(acting.POLL_S)
    except ClusterError as error:
        raise ClusterError(
            f"namespace {wanted.namespace} may still be there ({error}): kubectl delete namespace {wanted.namespace}"
        ) from error
