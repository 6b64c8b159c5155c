"""`bettong lab run` on a real control plane: it installs, forwards ports, measures, and leaves nothing behind.

The pods are played, and run nothing: what is forwarded to them goes to a suite of this machine. So what is proved is
all but that the pods' own processes answer, which test_load has, without the lab.
"""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bettong.cli.exit_codes import INTERRUPTED
from bettong.lab import spec
from bettong.lab.results import BenchmarkResults
from bettong.local.options import SuiteOptions
from bettong.local.processes import Command, Process
from bettong.local.suite import Suite
from tests.e2e.test_lab import STEADY, run_file
from tests.kubernetes.building import KUBERNETES
from tests.kubernetes.chart import HELM
from tests.kubernetes.control_plane import ControlPlane
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.cluster]

NAMESPACE = "bettong-lab"


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """One whose pods answer as a suite of the run's application does."""
    run_file(tmp_path, f"{STEADY}[kubernetes]\nimages = 'my/bettong:3'\nnamespace = '{NAMESPACE}'\n")
    options = SuiteOptions(
        application=str(tmp_path / "sums.py"), partitions=2, settings={"metrics_listen": "127.0.0.1:0"}
    )
    with Suite(options) as suite:
        record = suite.record
        served = {7100: record.sender, 7200: record.receiver, 7300: record.metrics["processor"]}
        forwards = {port: port_of(address) for port, address in served.items()}
        with ControlPlane(tmp_path / "cluster", forwards=forwards) as found:
            yield found


def lab_run(plane: ControlPlane, folder: Path, log: str) -> Process:
    environment = {
        "KUBECONFIG": str(plane.config_of("admin")),
        "PATH": f"{HELM.parent}:{os.environ['PATH']}",
        "COLUMNS": "200",
    }
    words = ("lab", "run", str(folder / "run.toml"), "--out", str(folder / "out"))
    call = (sys.executable, "-m", "bettong", *words)
    return Process(Command("lab", call, folder / log, environment=environment))


def namespaces(plane: ControlPlane) -> set[str]:
    return {each["metadata"]["name"] for each in plane.get("namespaces")["items"]}


@pytest.mark.timeout(900)
def test_a_run_on_a_cluster_leaves_a_folder_and_nothing_else_and_so_does_one_that_is_interrupted(
    plane: ControlPlane, tmp_path: Path
) -> None:
    before = namespaces(plane)
    run = lab_run(plane, tmp_path, "whole.log")
    ending = run.wait(400)
    assert ending is not None, run.describe_end()
    assert ending.status == 0, run.describe_end()
    assert namespaces(plane) == before
    (made,) = (tmp_path / "out").iterdir()
    found = BenchmarkResults.model_validate_json((made / "results.json").read_bytes())
    assert found.machine["target"] == f"Kubernetes v{KUBERNETES}, context here"
    assert "16 CPUs 64Gi" in found.machine["nodes"]
    assert "my/bettong/processor:3" in found.machine["images"]
    assert found.machine["CPU and memory"].startswith("not measured: ")  # no metrics server is there
    assert found.latencies_ms["sums at 2,000/s, p50"][0] > 0
    series = pq.read_table(made / "series.parquet").to_pylist()
    assert {"sums: latency ms", "processor: lag records"} <= {row["metric"] for row in series}
    assert spec.read(made / "run.toml") == spec.read(tmp_path / "run.toml")

    run = lab_run(plane, tmp_path, "interrupted.log")
    try:
        eventually(
            lambda: NAMESPACE in namespaces(plane) and plane.get("pods", "-n", NAMESPACE)["items"],
            seconds=120,
            what="it is installed",
        )
    finally:
        os.kill(run.pid, signal.SIGINT)
    ending = run.wait(120)
    assert ending is not None, run.describe_end()
    assert ending.status == INTERRUPTED, run.describe_end()
    assert namespaces(plane) == before
    assert len(list((tmp_path / "out").iterdir())) == 1
