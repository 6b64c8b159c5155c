"""A namespace of a control plane, with helm and the command `bettong k8s` in it."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bettong.cli.ending import end_well
from bettong.cli.main import app
from tests.kubernetes.chart import DEV, RELEASE
from tests.kubernetes.control_plane import ControlPlane

WORKER = f"statefulset/{RELEASE}-bettong-worker"


class Space:
    """A namespace that admits restricted pods alone, and helm in it."""

    def __init__(self, cluster: ControlPlane, name: str, folder: Path) -> None:
        self.cluster, self.name, self.folder = cluster, name, folder
        self._values = folder / "values.json"
        cluster.kubectl("create", "namespace", name)
        cluster.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")

    def helm(
        self, major: int, *words: str, values: Mapping[str, Any] | None = None, wait: bool = True
    ) -> str:
        self._values.write_text(json.dumps(values or {}))
        given = ["-f", str(DEV), "-f", str(self._values)] if words[0] in {"install", "upgrade"} else []
        waits = (
            ["--wait", "--timeout", "400s"]
            if wait and words[0] in {"install", "upgrade", "rollback", "uninstall"}
            else []
        )
        return self.cluster.helm(major, *words, "--namespace", self.name, *given, *waits)

    def kubectl(self, *words: str, given: str = "") -> str:
        return self.cluster.kubectl(*words, "--namespace", self.name, given=given)

    def get(self, *words: str) -> Any:
        return self.cluster.get(*words, "--namespace", self.name)

    def scale(self, count: int) -> None:
        self.kubectl("scale", WORKER, f"--replicas={count}")

    def wanted(self) -> int:
        return int(self.get(WORKER)["spec"]["replicas"])

    def pods(self) -> list[Any]:
        return list(self.get("pods")["items"])

    def running(self, component: str) -> list[Any]:
        return [
            pod
            for pod in self.pods()
            if pod["metadata"]["labels"]["app.kubernetes.io/component"] == component
            and pod["status"].get("phase") == "Running"
        ]


class Desk:
    """`bettong k8s` as a user of the cluster calls it, who is the administrator unless a token is given."""

    def __init__(self, space: Space, capsys: pytest.CaptureFixture[str]) -> None:
        self._space, self._capsys = space, capsys
        self._config = space.cluster.config_of("admin")

    def become(self, token: str) -> None:
        """Whoever has this token."""
        config = json.loads(self._space.cluster.config_of("admin").read_text())
        config["users"][0]["user"] = {"token": token}
        self._config = self._space.folder / "user.kubeconfig"
        self._config.write_text(json.dumps(config))

    def call(self, *words: str) -> tuple[int, str, str]:
        """Exit code, output and errors of one command, in the space."""
        self._capsys.readouterr()
        before = os.environ.get("KUBECONFIG")
        os.environ["KUBECONFIG"] = str(self._config)
        try:
            code = end_well(app, ["k8s", *words, "-n", self._space.name], name="bettong")
        finally:
            if before is None:
                del os.environ["KUBECONFIG"]
            else:
                os.environ["KUBECONFIG"] = before
        out, err = self._capsys.readouterr()
        return code, out, err
