"""Trial of an application on a cluster: helm installs the chart with its own Kafka and Redis in a namespace."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from bettong.cluster.api import Cluster
from bettong.cluster.helm import (
    STDIN,
    call_helm,
    file_words,
    image_values,
    small_values,
    uninstall,
    values_words,
)
from bettong.cluster.objects import Object
from bettong.cluster.own_release import remove_with_namespace

RELEASE = "trial"
LABEL = "bettong/trial"  # marks a namespace that a trial created, and will remove


@dataclass(frozen=True, slots=True)
class ClusterTrial:
    """The application to try, and where. `images`: FOLDER:TAG of the three images, by default the chart's."""

    application: Path
    namespace: str
    chart: Path
    context: str | None
    images: str | None
    values: tuple[Path, ...]

    def values_json(self) -> str:
        """The values in addition to values-dev.yaml. Disables the chart's test, which is for another application."""
        values: dict[str, object] = {"test": {"source": "", "message": "", "sink": ""}}
        if self.images is not None:
            values["image"] = image_values(self.images)
        return json.dumps(values)


def namespace_of(application: str) -> str:
    """A namespace for an application: `bettong-trial-` and its name, in at most 63 characters (RFC 1123)."""
    return ("bettong-trial-" + re.sub(r"[^a-z0-9]+", "-", application.lower()))[:63].strip("-")


def open_namespace(cluster: Cluster) -> bool:
    """Creates the namespace if needed; returns whether it belongs to trials: created now, or by an earlier one."""
    meta = {"name": cluster.namespace, "labels": {LABEL: "true"}}
    if cluster.make_namespace({"apiVersion": "v1", "kind": "Namespace", "metadata": meta}):
        return True
    found = cluster.read_namespace()
    return _is_own(found)


def install(trial: ClusterTrial) -> None:
    """Installs or upgrades the release. Does not wait for its pods."""
    words = [
        *("upgrade", "--install", RELEASE, str(trial.chart), "--namespace", trial.namespace),
        *values_words(small_values(trial.chart)),
        *values_words(STDIN),
        *file_words("application.source", trial.application),
    ]
    for file in trial.values:
        words += values_words(file)
    call_helm(words, context=trial.context, given=trial.values_json())


def remove(trial: ClusterTrial, cluster: Cluster, *, own: bool) -> None:
    """Removes the release, and the namespace if it belongs to trials, without waiting until its pods have ended.

    Raises ClusterError, which names the namespace if it may remain.
    """
    if own:
        remove_with_namespace(cluster, RELEASE, gone_s_max=0)
    else:
        uninstall(RELEASE, trial.namespace, context=trial.context)


def _is_own(namespace: Object) -> bool:
    return bool((namespace["metadata"].get("labels") or {}).get(LABEL) == "true")
