"""A stand-in for a cluster that a run of the lab deploys to: its API, and the program helm, which only notes its calls.

What a real API server and a real helm do is proved in tests/kubernetes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMESPACE = "bettong-lab"
MADE = "2026-01-01T00:00:00Z"
_HELM = """#!/bin/sh
echo "$@" >> {folder}/calls
[ "$1" = uninstall ] || cat > {folder}/values.json
[ ! -e {folder}/fail-$1 ] || {{ cat {folder}/fail-$1 >&2; exit 1; }}
"""


class PlayedHelm:
    """A program on a PATH of its own, `path`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "bin"
        self.path.mkdir(parents=True)
        program = self.path / "helm"
        program.write_text(_HELM.format(folder=folder))
        program.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        """The words of each."""
        file = self._folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def values(self) -> dict[str, Any]:
        """What it was given at its standard input."""
        found: dict[str, Any] = json.loads((self._folder / "values.json").read_text())
        return found

    def fails(self, word: str, text: str) -> None:
        """From now on with this word, saying so."""
        (self._folder / f"fail-{word}").write_text(text)


@dataclass
class LabCluster:
    """A worker's StatefulSet, `ready` or not, with one pod, or `uninstalled`.

    `usage`: of its container; None: no metrics server.
    """

    namespaces: dict[str, dict[str, Any]] = field(default_factory=dict)
    ready: bool = True
    uninstalled: bool = False
    restarts: int = 0
    state: dict[str, Any] = field(default_factory=lambda: {"running": {}})
    usage: dict[str, str] | None = None
    broken: str | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any] | str]:
        """Status, and an object or a text."""
        resource = path.partition("?")[0]
        self.calls.append((method, resource))
        if resource.startswith("/api/v1/namespaces") and resource.count("/") <= 4:
            return self._namespace(method, resource, body)
        if resource.endswith("/log"):
            return 200, f"{MADE} it begins\n{MADE} no money left\n"
        labels = {"app.kubernetes.io/instance": "lab", "app.kubernetes.io/component": "worker"}
        found: dict[str, Any] = {
            "version": {"gitVersion": "v1.37.1"},
            "n1": {
                "status": {
                    "capacity": {"cpu": "16", "memory": "64Gi"},
                    "nodeInfo": {"kubeletVersion": "v1.36.0"},
                }
            },
            "statefulsets": []
            if self.uninstalled
            else [self._workload({**labels, "helm.sh/chart": "bettong-0.1.0"})],
            "deployments": [],
            "events": [],
            "pods": [self._pod(labels)],
        }
        if "metrics.k8s.io" in resource:
            if self.usage is None:
                return 404, {"message": "the server could not find the requested resource"}
            found["pods"] = [{"metadata": {"labels": labels}, "containers": [{"usage": self.usage}]}]
        answer = found[resource.rpartition("/")[2]]
        return 200, answer if isinstance(answer, dict) else {"metadata": {}, "items": answer}

    def _namespace(self, method: str, resource: str, body: bytes) -> tuple[int, dict[str, Any]]:
        if method == "POST":
            made = json.loads(body)
            if made["metadata"]["name"] in self.namespaces:
                return 409, {"message": "it is there"}
            self.namespaces[made["metadata"]["name"]] = made
            return 201, made
        name = resource.rpartition("/")[2]
        if name not in self.namespaces:
            return 404, {"message": f'namespaces "{name}" not found'}
        return 200, self.namespaces.pop(name) if method == "DELETE" else self.namespaces[name]

    def _workload(self, labels: dict[str, str]) -> dict[str, Any]:
        return {
            "metadata": {"name": "lab-bettong-worker", "labels": labels, "generation": 1},
            "spec": {"replicas": 1, "serviceName": "w", "template": {}},
            "status": {
                "observedGeneration": 1,
                "replicas": 1,
                "updatedReplicas": 1,
                "readyReplicas": int(self.ready),
            },
        }

    def _pod(self, labels: dict[str, str]) -> dict[str, Any]:
        container = {
            "name": "worker",
            "image": "my/processor:3",
            "restartCount": self.restarts,
            "state": self.state,
        }
        return {
            "metadata": {"name": "lab-bettong-worker-0", "labels": labels, "creationTimestamp": MADE},
            "spec": {"containers": [{"name": "worker", "image": "my/processor:3"}], "nodeName": "n1"},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": str(self.ready)}],
                "containerStatuses": [container],
            },
        }
