"""A run of the lab on a cluster: what goes wrong is said, and what the run made is removed, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from bettong.cluster.api import Cluster
from bettong.errors import ClusterError, LabError, LateError, SettingsError
from bettong.lab import spec as run_file
from bettong.lab.run import once
from bettong.lab.spec import KubernetesTable, RunSpec
from bettong.lab.target.cluster_sampling import ClusterSampling, DriverPage
from bettong.lab.target.cluster_target import ClusterTarget, cluster_target
from tests.console.api_server import served_api
from tests.samples.lab_cluster import NAMESPACE, LabCluster, PlayedHelm
from tests.waiting import eventually

NOT_MEASURED = "not measured: the server could not find the requested resource"


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LabCluster]:
    found = LabCluster()
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    with served_api(found, tmp_path / "kubeconfig"):
        yield found


@pytest.fixture
def helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlayedHelm:
    found = PlayedHelm(tmp_path / "helm")
    monkeypatch.setenv("PATH", f"{found.path}:/usr/bin:/bin")
    return found


def spec_of(folder: Path, **rest: Any) -> RunSpec:
    application = folder / "app.py"
    application.write_text("")
    return RunSpec.model_validate(
        {"name": "sums", "application": str(application), "load": "load.py", "messages": 10, **rest}
    )


@contextmanager
def deployed(folder: Path, where: KubernetesTable | None = None, **rest: Any) -> Iterator[ClusterTarget]:
    with cluster_target(spec_of(folder, **rest), where or KubernetesTable(), say=lambda _: None) as target:
        yield target


def is_removed(api: LabCluster, helm: PlayedHelm) -> bool:
    return not api.namespaces and helm.calls[-1].startswith(f"uninstall lab --namespace {NAMESPACE}")


def test_a_release_is_installed_as_the_run_file_says_and_removed_at_the_end(
    api: LabCluster, helm: PlayedHelm, tmp_path: Path
) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("worker: {replicas: 2}")
    where = KubernetesTable(images="registry:5000/my:3", values=values)
    with deployed(tmp_path, where, partitions=4, settings={"sender_credits": "64", "log_level": "debug"}):
        assert list(api.namespaces) == [NAMESPACE]
        (call,) = helm.calls
        assert f"values-dev.yaml --values {values} --values - " in call
        assert f"--set-file application.source={tmp_path}/app.py --kube-context here" in call
        found = helm.values
        settings = {"sender_credits": 64, "log_level": "debug", "schedule": "resident", "partitions": 4}
        assert found["settings"] == {**settings, "compiled": True}
        assert found["image"] == {"repository": "registry:5000/my", "tag": "3"}
        assert found["kafka"] == found["redis"] == {"bundled": {"enabled": True}}
    assert is_removed(api, helm)


def test_where_the_images_hold_the_application_the_chart_puts_none_in(
    api: LabCluster, helm: PlayedHelm, tmp_path: Path
) -> None:
    with deployed(tmp_path, KubernetesTable(application="/app/app.py")):
        assert "--set-file" not in helm.calls[0]
        assert helm.values["application"] == {"path": "/app/app.py", "source": ""}
    assert not api.namespaces


def test_a_context_that_is_not_there_is_said_and_nothing_is_called(
    api: LabCluster, helm: PlayedHelm, tmp_path: Path
) -> None:
    with (
        pytest.raises(ClusterError, match=r"context elsewhere: .*kubeconfig has here"),
        deployed(tmp_path, KubernetesTable(context="elsewhere")),
    ):
        pytest.fail("it runs")
    assert api.calls == []
    assert helm.calls == []


def test_without_helm_no_namespace_is_made(
    api: LabCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match="helm is not on the PATH"), deployed(tmp_path):
        pytest.fail("it runs")
    assert api.calls == []


@pytest.mark.parametrize(
    ("labels", "advice"),
    [({}, "name one that is not there"), ({"bettong/run": "true"}, f"kubectl delete namespace {NAMESPACE}")],
    ids=["of somebody", "of a run"],
)
def test_a_namespace_that_is_there_is_left_as_it_is(
    labels: dict[str, str], advice: str, api: LabCluster, helm: PlayedHelm, tmp_path: Path
) -> None:
    api.namespaces[NAMESPACE] = {"metadata": {"name": NAMESPACE, "labels": labels}}
    with (
        pytest.raises(ClusterError, match=rf"is there already, with the release lab of Bettong.*{advice}"),
        deployed(tmp_path),
    ):
        pytest.fail("it runs")
    assert list(api.namespaces) == [NAMESPACE]
    assert helm.calls == []


def test_a_release_that_does_not_get_ready_is_removed_and_its_pods_last_words_are_said(
    api: LabCluster, helm: PlayedHelm, tmp_path: Path
) -> None:
    api.ready, api.restarts = False, 2
    api.state = {"waiting": {"reason": "CrashLoopBackOff"}}
    api.state["terminated"] = {"exitCode": 3, "message": "it broke"}
    with (
        pytest.raises(ClusterError, match=r"lab-bettong-worker is not ready after 0\.1 s") as raised,
        deployed(tmp_path, KubernetesTable(ready_s_max=0.1)),
    ):
        pytest.fail("it runs")
    assert "keeps crashing, 2 restarts, exit code 3; last output: it broke" in str(raised.value)
    assert "lab-bettong-worker-0 said: it begins | no money left" in str(raised.value)
    assert is_removed(api, helm)


def test_what_helm_refuses_is_said_and_the_namespace_removed(
    api: LabCluster, helm: PlayedHelm, tmp_path: Path
) -> None:
    helm.fails("install", "settings.sender_credits: too many")
    with (
        pytest.raises(ClusterError, match=r"helm install: settings\.sender_credits: too many"),
        deployed(tmp_path),
    ):
        pytest.fail("it runs")
    assert is_removed(api, helm)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, LateError, ZeroDivisionError])
def test_whatever_ends_a_run_all_that_it_made_is_removed(
    kind: type[BaseException], api: LabCluster, helm: PlayedHelm, tmp_path: Path
) -> None:
    api.namespaces["other"] = {"metadata": {"name": "other"}}
    with pytest.raises(kind, match="in the middle"), deployed(tmp_path):
        raise kind("in the middle")
    assert list(api.namespaces) == ["other"]
    assert helm.calls[-1].startswith("uninstall")


@pytest.mark.parametrize("kind", [KeyboardInterrupt, LateError])
def test_what_cannot_be_removed_is_named_beside_what_ended_the_run(
    kind: type[BaseException], api: LabCluster, helm: PlayedHelm, tmp_path: Path
) -> None:
    api.broken = "DELETE"
    with (
        pytest.raises(ClusterError, match=rf"^in the middle; and namespace {NAMESPACE} may still be there"),
        deployed(tmp_path),
    ):
        raise kind("in the middle")
    assert helm.calls[-1].startswith("uninstall")


def test_where_helm_cannot_uninstall_the_namespace_is_removed_all_the_same_and_it_is_said(
    api: LabCluster, helm: PlayedHelm, tmp_path: Path
) -> None:
    helm.fails("uninstall", "it hangs")
    with (
        pytest.raises(ClusterError, match=r"may still be there \(helm uninstall: it hangs\)"),
        deployed(tmp_path),
    ):
        pass
    assert not api.namespaces


def test_a_namespace_that_somebody_has_removed_meanwhile_is_not_missed(
    api: LabCluster, helm: PlayedHelm, tmp_path: Path
) -> None:
    with deployed(tmp_path):
        api.namespaces.clear()
    assert is_removed(api, helm)


def test_a_pod_that_was_started_again_is_said(api: LabCluster, helm: PlayedHelm, tmp_path: Path) -> None:
    with deployed(tmp_path) as target:
        target.wait(0)
        api.restarts = 1
        with pytest.raises(
            ClusterError, match="pods were added, removed or restarted during the measurement"
        ):
            target.wait(0)
    assert is_removed(api, helm)


def test_it_says_what_it_ran_on_and_why_nothing_is_known_of_its_use(
    api: LabCluster, helm: PlayedHelm, tmp_path: Path
) -> None:
    with deployed(tmp_path) as target:
        with target.collecting(0, positions_every_s=5) as found:
            pass
        assert found.facts == {
            "target": "Kubernetes v1.37.1, context here",
            "nodes": "1 of 16 CPUs 64Gi kubelet v1.36.0",
            "images": "my/processor:3",
            "CPU and memory": NOT_MEASURED,
        }
        assert not found.usage.points
    assert is_removed(api, helm)


def test_what_pods_use_is_summed_by_component(api: LabCluster) -> None:
    api.usage = {"cpu": "1500000000n", "memory": "512Mi"}
    with Cluster(namespace=NAMESPACE) as cluster:
        with ClusterSampling(cluster, "lab", DriverPage("127.0.0.1:1"), 0, every_s=0.01) as sampling:
            eventually(lambda: len(sampling.usage.points) > 4, seconds=20)
        assert dict(sampling.usage.memory_mb) == {"worker": 512}
        assert {each.value for each in sampling.usage.points if each.metric == "worker: cores"} == {1.5}
        assert sampling.usage.cpu_s()["worker"] > 0
        assert sampling.unmeasured == ""


def test_the_drivers_page_says_how_far_it_is() -> None:
    page = (
        'bettong_partition_messages_total{partition="0",stage="in"} 40.0\n'
        'bettong_partition_messages_total{partition="1",stage="in"} 2.0\n'
        'bettong_partition_offset{partition="0",stage="in"} 4.0\n'
        'bettong_partition_offset{partition="1",stage="in"} 1.0\n'
        "# TYPE bettong_processor_lag_records gauge\nbettong_processor_lag_records 7.0\n"
    )

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(page.encode())

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
        found = DriverPage(f"127.0.0.1:{server.server_port}")
        position = found.position()
        assert position is not None
        assert (position.lag, position.written, position.folded) == (7, 12, 42)
        assert found.folded() == 42
        server.shutdown()
    assert found.folded() is None
    assert found.position() is None


def test_a_run_file_names_the_cluster(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    text = 'name = "n"\napplication = "a.py"\nload = "l.py"\nmessages = 1\n'
    file.write_text(text)
    assert run_file.read(file).kubernetes is None
    file.write_text(f"{text}[kubernetes]\ncontext = 'bench'\n")
    assert run_file.read(file).kubernetes == KubernetesTable(context="bench", namespace="bettong-lab")
    file.write_text(f"{text}[kubernetes]\nnamespace = 'Not One'\nnodes = 3\n")
    with pytest.raises(
        SettingsError, match=re.compile(r"kubernetes\.namespace.*kubernetes\.nodes", re.DOTALL)
    ):
        run_file.read(file)


def test_faults_and_topics_are_of_this_machine_alone(tmp_path: Path) -> None:
    steps = {"messages": None, "steps": [{"messages_per_s": 10, "seconds": 9}]}
    fault = {"kind": "kill", "targets": ["sender"], "at_s": [2]}
    with pytest.raises(ValueError, match="faults are injected into processes of this machine"):
        spec_of(tmp_path, kubernetes={}, faults=[fault], **steps)
    lab = Path(__file__).parents[2] / "benchmarks" / "lab"
    spec = run_file.read(lab / "word_count_steady.toml").model_copy(update={"kubernetes": KubernetesTable()})
    with pytest.raises(LabError, match=r"reads or writes topics by itself.*pods cannot reach it"):
        once(spec)


@pytest.mark.parametrize("name", ["application", "kubernetes.values"])
def test_a_file_that_is_not_there_is_said_before_anything_is_made(
    name: str, api: LabCluster, helm: PlayedHelm, tmp_path: Path
) -> None:
    where = KubernetesTable(values=tmp_path / "none.yaml") if name != "application" else None
    rest = {"application": str(tmp_path / "none.py")} if name == "application" else {}
    with (
        pytest.raises(SettingsError, match=rf"sums: {name}: .*none.* is no file"),
        deployed(tmp_path, where, **rest),
    ):
        pytest.fail("it runs")
    assert api.calls == []
    assert helm.calls == []
