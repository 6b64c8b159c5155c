"""The chart on a real control plane (`make kubernetes`): scaled counts stay, pods are admitted, nodes drain."""

import importlib.util
import json
from collections.abc import Iterable
from pathlib import Path
from urllib.error import HTTPError

import pytest
import yaml

from tests.kubernetes.chart import FOLDER, NAMESPACE, RELEASE, CallError, Chart, Object
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.spaces import WORKER, Space
from tests.kubernetes.value_sets import CLASSES, MATRIX, merged
from tests.waiting import eventually

pytestmark = pytest.mark.cluster

SMALL = merged(
    CLASSES["guaranteed"],
    {name: {"resources": {"cpu": 1}} for name in ("sender", "receiver", "worker", "driver", "master")},
)
BUNDLED_WHOLE = {
    "kafka": {"bundled": {"resources": {"cpu": 1}}},
    "redis": {"bundled": {"resources": {"cpu": 1}}},
}


@pytest.mark.parametrize("major", [4, 3])
def test_a_scaled_count_survives_upgrades_and_rollbacks(space: Space, major: int) -> None:
    space.helm(major, "install", RELEASE, str(FOLDER))
    assert space.wanted() == 1
    space.scale(4)
    space.helm(major, "upgrade", RELEASE, str(FOLDER), values={"worker": {"slots": 2}})
    assert space.wanted() == 4
    assert "--cores" in json.dumps(space.get(WORKER)["spec"]["template"])
    space.scale(5)
    space.helm(major, "rollback", RELEASE, "1")
    assert space.wanted() == 5
    eventually(lambda: len(space.running("worker")) == 5, seconds=60)
    space.helm(major, "uninstall", RELEASE)
    eventually(lambda: space.pods() == [], seconds=60)
    left = space.get("all,configmap,serviceaccount,pdb,networkpolicy,role,rolebinding")["items"]
    assert [each for each in left if RELEASE in each["metadata"]["name"]] == []


def test_a_count_that_is_rendered_is_refused_after_a_scale(space: Space) -> None:
    """Why the chart renders none, unless it is told to."""
    space.helm(4, "install", RELEASE, str(FOLDER), values={"worker": {"replicas": 2}})
    assert space.wanted() == 2
    space.scale(4)
    with pytest.raises(CallError, match=r"conflict.*\.spec\.replicas"):
        space.helm(4, "upgrade", RELEASE, str(FOLDER), values={"worker": {"replicas": 2, "slots": 2}})
    assert space.wanted() == 4


@pytest.mark.parametrize("major", [4, 3])
def test_a_count_that_leaves_the_values_falls_to_one_and_then_stays_as_scaled(
    space: Space, major: int
) -> None:
    """Helm takes away the field that it set, and the API server's default is one: docs and messages say so."""
    space.helm(major, "install", RELEASE, str(FOLDER), values={"worker": {"replicas": 3}})
    assert space.wanted() == 3
    space.helm(major, "upgrade", RELEASE, str(FOLDER), values={"worker": {"replicas": None}})
    assert space.wanted() == 1
    space.scale(3)
    space.helm(major, "upgrade", RELEASE, str(FOLDER), values={"worker": {"slots": 2}})
    assert space.wanted() == 3


@pytest.mark.parametrize("way", MATRIX)
def test_helm_3_renders_what_helm_4_renders(
    cluster: ControlPlane, chart: Chart, tmp_path: Path, way: str
) -> None:
    values = tmp_path / "values.json"
    values.write_text(json.dumps(MATRIX[way]))
    words = ("template", RELEASE, str(FOLDER), "--namespace", NAMESPACE, "--kube-version", "1.37.0")
    found = yaml.load_all(cluster.helm(3, *words, "-f", str(values)), yaml.CSafeLoader)
    assert by_name(each for each in found if each) == by_name(chart.render(MATRIX[way]).objects)


def by_name(objects: Iterable[Object]) -> dict[tuple[str, str], Object]:
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


@pytest.mark.parametrize("mode", ["burstable", "guaranteed"])
def test_every_pod_is_admitted_and_gets_its_class(space: Space, mode: str) -> None:
    values = merged({"worker": {"initialReplicas": 3}}, {"qos": {"mode": mode}})
    if mode == "guaranteed":
        values = merged(values, SMALL, BUNDLED_WHOLE)
    space.helm(4, "install", RELEASE, str(FOLDER), values=values)
    space.helm(4, "test", RELEASE)
    pods = space.pods()
    assert {pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in pods} >= {
        *("sender", "receiver", "master", "worker", "driver", "kafka", "redis", "test")
    }
    assert {pod["status"]["qosClass"] for pod in pods} == {mode.capitalize()}
    refused = [e["message"] for e in space.get("events")["items"] if e["reason"].startswith("FailedCreate")]
    assert refused == []


def test_the_job_of_first_counts_may_set_them_and_nothing_else(
    space: Space, chart: Chart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space.helm(4, "install", RELEASE, str(FOLDER))
    rendered = chart.render({"worker": {"initialReplicas": 3}}, dev=True)
    for kind in ("ServiceAccount", "Role", "RoleBinding"):
        found = json.loads(
            json.dumps(rendered.of(kind)["first-counts"]).replace('"space"', f'"{space.name}"')
        )
        space.cluster.kubectl("create", "--namespace", space.name, "-f", "-", given=json.dumps(found))
    name = f"{RELEASE}-bettong-first-counts"
    (tmp_path / "token").write_text(space.cluster.kubectl("create", "token", name, "--namespace", space.name))
    (tmp_path / "namespace").write_text(space.name)
    (tmp_path / "ca.crt").write_bytes(space.cluster.authority.read_bytes())
    spec = importlib.util.spec_from_file_location("set_counts", FOLDER / "files" / "set_counts.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    server = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(space.cluster.port)}
    script.main([f"statefulsets/{RELEASE}-bettong-worker=3"], server, tmp_path)
    assert space.wanted() == 3
    with pytest.raises(HTTPError, match="403"):
        script.main([f"statefulsets/{RELEASE}-bettong-master=0"], server, tmp_path)


def test_a_node_drains_though_some_components_have_one_pod(space: Space) -> None:
    space.helm(4, "install", RELEASE, str(FOLDER))
    node = space.running("driver")[0]["spec"]["nodeName"]
    words = ("--ignore-daemonsets", "--delete-emptydir-data", "--timeout=90s")
    try:
        space.cluster.kubectl("drain", node, *words)
        eventually(lambda: space.running("driver") and space.running("driver")[0]["spec"]["nodeName"] != node)
    finally:
        space.cluster.kubectl("uncordon", node)


def test_pinned_workers_and_nothing_else_run_on_a_node_that_is_kept_for_them(space: Space) -> None:
    kept = str(space.get("nodes")["items"][0]["metadata"]["name"])
    mark = "bettong/dedicated"
    space.cluster.kubectl("label", "node", kept, f"{mark}=worker")
    space.cluster.kubectl("taint", "node", kept, f"{mark}=worker:NoSchedule")
    try:
        pinned = {"qos": {"mode": "guaranteed", "pin": {"enabled": True}}}
        space.helm(4, "install", RELEASE, str(FOLDER), values=merged(SMALL, BUNDLED_WHOLE, pinned))
        space.scale(3)
        eventually(lambda: len(space.running("worker")) == 3, seconds=60)
        workers = [pod for pod in space.running("worker") if pod["spec"]["nodeName"] == kept]
        assert [pod["status"]["qosClass"] for pod in workers] == ["Guaranteed"] * 3
        there = [pod for pod in space.pods() if pod["spec"].get("nodeName") == kept]
        assert len(there) == 3
    finally:
        space.cluster.kubectl("taint", "node", kept, f"{mark}-")
        space.cluster.kubectl("label", "node", kept, f"{mark}-")


def test_a_pod_that_is_not_restricted_is_refused(space: Space) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "a", "image": "a"}]},
    }
    with pytest.raises(CallError, match="violates PodSecurity"):
        space.cluster.kubectl("create", "--namespace", space.name, "-f", "-", given=json.dumps(pod))


def test_a_quota_of_limits_admits_guaranteed_pods_and_names_what_others_lack(space: Space) -> None:
    kinds = ("requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
    hard = ",".join(f"{kind}={'40' if kind.endswith('cpu') else '80Gi'}" for kind in kinds)
    space.kubectl("create", "quota", "all", f"--hard={hard}")
    guaranteed = merged({"qos": {"mode": "guaranteed"}}, SMALL, BUNDLED_WHOLE)
    space.helm(4, "install", RELEASE, str(FOLDER), values=guaranteed)
    used = space.get("quota", "all")["status"]["used"]
    assert used["limits.cpu"] == used["requests.cpu"] == "7"
    assert used["limits.memory"] == used["requests.memory"]
    space.helm(4, "upgrade", RELEASE, str(FOLDER), values={"qos": {"mode": "burstable"}}, wait=False)
    refused = "must specify limits.cpu for: sender"
    eventually(lambda: any(refused in event["message"] for event in space.get("events")["items"]), seconds=30)
