"""A release that is removed: by somebody else meanwhile, and at the end of a trial also where helm fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bettong.cluster import acting
from bettong.cluster.api import Cluster
from bettong.cluster.rolling import RolloutProgress
from bettong.cluster.trial import ClusterTrial, open_namespace, remove
from bettong.errors import ClusterError
from tests.console.api_server import served_api
from tests.samples.lab_cluster import LabCluster, PlayedHelm

SPACE = "bettong-trial-sums"
TRIAL = ClusterTrial(Path("/my/app.py"), SPACE, Path("chart"), None, None, ())


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LabCluster]:
    found = LabCluster()
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    with served_api(found, tmp_path / "kubeconfig"):
        yield found


@pytest.fixture
def cluster(api: LabCluster) -> Iterator[Cluster]:
    with Cluster(namespace=SPACE) as found:
        yield found


@pytest.fixture
def helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlayedHelm:
    found = PlayedHelm(tmp_path / "helm")
    monkeypatch.setenv("PATH", f"{found.path}:/usr/bin:/bin")
    return found


def test_a_workload_that_is_gone_while_it_is_waited_for_is_said(api: LabCluster, cluster: Cluster) -> None:
    api.ready = False

    def uninstall(_: RolloutProgress) -> None:
        api.uninstalled = True

    with pytest.raises(ClusterError, match="lab-bettong-worker is gone: was release lab uninstalled"):
        acting.awaited(cluster, "lab", "lab-bettong-worker", seconds_max=60, on_progress=uninstall)


def test_a_release_whose_workers_are_gone_is_said(cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match="its StatefulSet of workers is gone: was the release uninstalled"):
        acting.workers_of(cluster, [])


def test_a_trial_whose_helm_fails_removes_its_namespace_all_the_same_and_says_so(
    api: LabCluster, cluster: Cluster, helm: PlayedHelm
) -> None:
    assert open_namespace(cluster)
    helm.fails("uninstall", "it hangs")
    with pytest.raises(
        ClusterError,
        match=rf"namespace {SPACE} may .* \(helm uninstall: it hangs\): kubectl delete namespace {SPACE}$",
    ):
        remove(TRIAL, cluster, own=True)
    assert not api.namespaces


def test_a_namespace_that_a_trial_has_not_made_stays(
    api: LabCluster, cluster: Cluster, helm: PlayedHelm
) -> None:
    api.namespaces[SPACE] = {"metadata": {"name": SPACE}}
    assert not open_namespace(cluster)
    remove(TRIAL, cluster, own=False)
    assert list(api.namespaces) == [SPACE]
    assert helm.calls[-1].startswith(f"uninstall trial --namespace {SPACE}")
