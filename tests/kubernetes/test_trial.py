"""`bettong k8s try` on a real control plane, whose pods are played: what it makes, and that it takes it away."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bettong.cli.exit_codes import INTERRUPTED
from bettong.local.processes import Command, Process
from tests.kubernetes.chart import HELM
from tests.kubernetes.control_plane import ControlPlane
from tests.waiting import eventually

pytestmark = pytest.mark.cluster

APPLICATION = """
from dataclasses import dataclass

import bettong


@dataclass
class Word:
    text: str


app = bettong.Application("Trial_one")
app.source("words", schema=Word, key="text").sink("same")
"""


def try_out(cluster: ControlPlane, folder: Path, *words: str) -> Process:
    """The command, as a process that a Ctrl-C reaches."""
    application = folder / "mine, too" / "app.py"
    application.parent.mkdir(exist_ok=True)
    application.write_text(APPLICATION)
    environment = {
        "KUBECONFIG": str(cluster.config_of("admin")),
        "PATH": f"{HELM.parent}:{os.environ['PATH']}",
        "COLUMNS": "200",
    }
    call = (sys.executable, "-m", "bettong", "k8s", "try", str(application), *words)
    return Process(Command("try", call, folder / "try.log", environment=environment))


def test_a_lab_runs_until_it_is_interrupted_and_leaves_nothing(cluster: ControlPlane, tmp_path: Path) -> None:
    run = try_out(cluster, tmp_path, "--images", "my/bettong:3")
    try:
        eventually(
            lambda: run.ending or "Ctrl-C removes it" in run.command.log.read_text(),
            seconds=120,
            what="it runs",
        )
        assert run.ending is None, run.describe_end()
        assert "kubectl port-forward -n bettong-trial-trial-one service/trial-bettong-sender 7100" in (
            run.command.log.read_text()
        )
        pods = cluster.get("pods", "--namespace", "bettong-trial-trial-one")["items"]
        images = {each["image"] for pod in pods for each in pod["spec"]["containers"]}
        assert "my/bettong/processor:3" in images
        assert all(pod["status"]["phase"] == "Running" for pod in pods)
        source = cluster.get(
            "configmap", "trial-bettong-application", "--namespace", "bettong-trial-trial-one"
        )
        assert source["data"]["application.py"] == APPLICATION
    finally:
        if run.ending is None:
            os.kill(run.pid, signal.SIGINT)
    ending = run.wait(60)
    assert ending is not None, run.describe_end()
    assert ending.status == INTERRUPTED, run.describe_end()
    eventually(
        lambda: "bettong-trial-trial-one" not in cluster.kubectl("get", "namespaces"),
        seconds=60,
        what="it is gone",
    )


def test_a_lab_that_is_kept_stays_and_is_brought_up_to_date(
    cluster: ControlPlane, tmp_path: Path, unique_name: Callable[..., str]
) -> None:
    name = unique_name("kept")
    cluster.kubectl("create", "namespace", name)
    for images in ("my/bettong:3", "my/bettong:4"):
        run = try_out(cluster, tmp_path, "--images", images, "--namespace", name, "--keep")
        ending = run.wait(120)
        assert ending is not None, run.describe_end()
        assert ending.status == 0, run.describe_end()
    # The namespace was there before: it is not the trial's to remove.
    assert f"helm uninstall trial -n {name}\n" in (tmp_path / "try.log").read_text()
    template = cluster.get("statefulset", "trial-bettong-worker", "--namespace", name)["spec"]["template"]
    assert template["spec"]["containers"][0]["image"] == "my/bettong/processor:4"
    cluster.kubectl("delete", "namespace", name, "--wait=false")
