"""Node tuning on a real control plane: which nodes get its pods, what its account may do, what an uninstall leaves."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from bettong_node_tuner.effects import Effects
from bettong_node_tuner.errors import NodeError
from bettong_node_tuner.keeping import Keeping
from bettong_node_tuner.metrics import TunerMetrics
from bettong_node_tuner.node import TAINT, Node
from bettong_node_tuner.report import ANNOTATION
from bettong_node_tuner.service import Tuner
from bettong_node_tuner.settings import Mode, TunerSettings
from tests.kubernetes.chart import RELEASE, CallError
from tests.kubernetes.chart import TUNING as FOLDER
from tests.kubernetes.control_plane import ControlPlane
from tests.simulation.fake_node import FILES, SWAPPINESS, FakeNode
from tests.waiting import eventually

pytestmark = pytest.mark.cluster

SPACE = "node-tuning"
OPTED_IN = ("fake-0", "fake-2")
ACCOUNT = f"{RELEASE}-bettong-node-tuning"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """With the chart installed, two nodes opted in, one of them with its startup taint and another one."""
    with ControlPlane(tmp_path_factory.mktemp("cluster")) as found:
        found.kubectl("create", "namespace", SPACE)
        found.kubectl("label", "namespace", SPACE, "pod-security.kubernetes.io/enforce=privileged")
        for name in OPTED_IN:
            found.kubectl("label", "node", name, "bettong/tuned=true")
        found.kubectl(
            "taint", "node", "fake-0", f"{TAINT}=:NoSchedule", "bettong/dedicated=worker:NoSchedule"
        )
        values = ["--set", "mode=apply", "--set", "settings.cpu_latency_us=10"]
        found.helm(4, "install", RELEASE, str(FOLDER), "--namespace", SPACE, *values)
        yield found


def pods(cluster: ControlPlane, space: str = SPACE) -> list[Any]:
    found = cluster.get("pods", "--namespace", space)["items"]
    return [pod for pod in found if pod["status"].get("phase") == "Running"]


def test_its_pods_run_on_opted_in_nodes_alone_and_go_with_the_label(cluster: ControlPlane) -> None:
    eventually(lambda: len(pods(cluster)) == len(OPTED_IN), seconds=60)
    assert {pod["spec"]["nodeName"] for pod in pods(cluster)} == set(OPTED_IN)
    cluster.kubectl("label", "node", "fake-2", "bettong/tuned-")
    eventually(lambda: [pod["spec"]["nodeName"] for pod in pods(cluster)] == ["fake-0"], seconds=60)
    words = ("get", "events", "--namespace", SPACE, "-o", "json")
    events = json.loads(cluster.kubectl(*words))["items"]
    assert [each["message"] for each in events if each["reason"].startswith("FailedCreate")] == []


def test_a_namespace_that_is_not_for_privileged_pods_refuses_them(cluster: ControlPlane) -> None:
    pod = pods_template(cluster)
    cluster.kubectl("create", "namespace", "baseline")
    cluster.kubectl("label", "namespace", "baseline", "pod-security.kubernetes.io/enforce=baseline")
    with pytest.raises(CallError, match=r"violates PodSecurity.*privileged"):
        cluster.kubectl("create", "--namespace", "baseline", "-f", "-", given=json.dumps(pod))


def pods_template(cluster: ControlPlane) -> dict[str, Any]:
    (daemons,) = cluster.get("daemonsets", "--namespace", SPACE)["items"]
    spec = {**daemons["spec"]["template"]["spec"], "serviceAccountName": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tuner"}, "spec": spec}


@pytest.fixture(scope="module")
def api(cluster: ControlPlane) -> client.CoreV1Api:
    return api_of(cluster, SPACE)


def api_of(cluster: ControlPlane, space: str) -> client.CoreV1Api:
    """As a pod of the chart speaks to the API server: by the token of its account."""
    token = cluster.kubectl("create", "token", ACCOUNT, "--namespace", space)
    configuration = client.Configuration(
        host=f"https://127.0.0.1:{cluster.port}", api_key={"authorization": f"Bearer {token}"}
    )
    configuration.ssl_ca_cert = str(cluster.authority)
    return client.CoreV1Api(client.ApiClient(configuration))


def test_it_reports_on_its_node_and_lets_it_take_pods(cluster: ControlPlane, api: client.CoreV1Api) -> None:
    node = Node(api, "fake-0")
    cluster.kubectl("annotate", "node", "fake-0", "other=stays")
    node.annotate('{"mode":"apply"}')
    annotations = cluster.get("node", "fake-0")["metadata"]["annotations"]
    assert (annotations[ANNOTATION], annotations["other"]) == ('{"mode":"apply"}', "stays")
    assert node.remove_taint()
    assert [each["key"] for each in cluster.get("node", "fake-0")["spec"]["taints"]] == ["bettong/dedicated"]
    assert not node.remove_taint()
    with pytest.raises(NodeError, match="node gone: the API server says 404"):
        Node(api, "gone").annotate("{}")


def test_its_account_may_get_and_patch_nodes_alone(api: client.CoreV1Api) -> None:
    body: dict[str, Any] = {"metadata": {"labels": {"a": "b"}}}
    refused: dict[str, Callable[[], object]] = {
        "list nodes": api.list_node,
        "delete a node": lambda: api.delete_node("fake-1"),
        "patch a node's status": lambda: api.patch_node_status("fake-1", body),
        "list pods": lambda: api.list_namespaced_pod(SPACE),
        "create a pod": lambda: api.create_namespaced_pod(SPACE, client.V1Pod()),
        "list secrets": lambda: api.list_namespaced_secret(SPACE),
        "patch its namespace": lambda: api.patch_namespace(SPACE, body),
    }
    for what, call in refused.items():
        with pytest.raises(ApiException) as raised:
            call()
        assert raised.value.status == 403, what
    api.patch_node("fake-1", body)


@pytest.fixture(params=[4, 3], ids=["helm 4", "helm 3"])
def leaving(
    cluster: ControlPlane, request: pytest.FixtureRequest, unique_name: Callable[..., str]
) -> Iterator[tuple[int, str]]:
    """The major version of helm, and a namespace with a release of its own that writes."""
    major = request.param
    space = unique_name("leaving")
    cluster.kubectl("create", "namespace", space)
    cluster.kubectl("label", "namespace", space, "pod-security.kubernetes.io/enforce=privileged")
    cluster.helm(major, "install", RELEASE, str(FOLDER), "--namespace", space, "--set", "mode=apply")
    eventually(lambda: "fake-0" in {pod["spec"]["nodeName"] for pod in pods(cluster, space)}, seconds=60)
    yield major, space
    cluster.kubectl("delete", "namespace", space, "--wait=false")


@contextmanager
def tuner_of(folder: Path, api: client.CoreV1Api, mode: Mode) -> Iterator[tuple[Tuner, FakeNode]]:
    """The tuner of a pod on fake-0, before it looks for the first time, and the kernel that it writes to."""
    node = FakeNode(folder / "node")
    settings = TunerSettings(mode=mode, sysctls={"vm.swappiness": "1"})
    with Keeping(folder / "journal") as keeping:
        yield Tuner(settings, Effects(node, keeping), TunerMetrics(), Node(api, "fake-0")), node


def reported(cluster: ControlPlane) -> str:
    return str(cluster.get("node", "fake-0")["metadata"]["annotations"][ANNOTATION])


def left_of(cluster: ControlPlane, space: str) -> list[str]:
    """What is there of a release in a namespace."""
    kinds = ("daemonsets,pods,serviceaccounts,networkpolicies,secrets", "clusterroles,clusterrolebindings")
    names = [
        f"{each['kind']}/{each['metadata']['name']}"
        for kind in kinds
        for each in cluster.get(kind, "--namespace", space)["items"]
    ]
    # Cluster roles of other namespaces' releases begin with the same name.
    return [
        each
        for each in names
        if each.partition("/")[2].startswith((ACCOUNT, "sh.helm"))
        and (each.endswith(f"-{space}") or not each.startswith("ClusterRole"))
    ]


def test_an_uninstall_removes_pods_and_rights_and_the_annotation_stays(
    cluster: ControlPlane, leaving: tuple[int, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    major, space = leaving
    assert {name.partition("/")[0] for name in left_of(cluster, space)} >= {
        "DaemonSet",
        "Pod",
        "ServiceAccount",
        "NetworkPolicy",
        "ClusterRole",
        "ClusterRoleBinding",
    }
    with tuner_of(tmp_path, api_of(cluster, space), Mode.APPLY) as (tuner, node):
        tuner.check()
        said = reported(cluster)
        assert '"mode":"apply"' in said
        cluster.helm(major, "uninstall", RELEASE, "--namespace", space)
        eventually(lambda: left_of(cluster, space) == [], seconds=60)
        # What the pod does in its last second, when its rights are gone.
        tuner.revert()
    assert node.text(SWAPPINESS) == FILES[SWAPPINESS]
    assert re.search(r"node fake-0: the API server says 40[13] \w+; not retried", caplog.text)
    assert reported(cluster) == said


def test_a_revert_before_the_uninstall_is_reported(
    cluster: ControlPlane, leaving: tuple[int, str], tmp_path: Path
) -> None:
    major, space = leaving
    to_revert = ("--reuse-values", "--set", "mode=revert")
    cluster.helm(major, "upgrade", RELEASE, str(FOLDER), "--namespace", space, *to_revert)
    cluster.kubectl("rollout", "status", f"daemonset/{ACCOUNT}", "--namespace", space, "--timeout=120s")
    modes = {
        each["value"]
        for pod in pods(cluster, space)
        for each in pod["spec"]["containers"][0]["env"]
        if each["name"] == "BETTONG_NODE_TUNER_MODE"
    }
    assert modes == {"revert"}
    with tuner_of(tmp_path, api_of(cluster, space), Mode.REVERT) as (tuner, _):
        tuner.check()
    columns = "custom-columns=NODE:.metadata.name,TUNING:.metadata.annotations.bettong/node-tuning"
    shown = cluster.kubectl("get", "nodes", "-l", "bettong/tuned=true", "-o", columns)
    assert re.search(r'fake-0 +\{"mode":"revert","done":true', shown)
    cluster.helm(major, "uninstall", RELEASE, "--namespace", space)
    eventually(lambda: left_of(cluster, space) == [], seconds=60)
    assert '"mode":"revert"' in reported(cluster)
    cluster.kubectl("annotate", "nodes", "--all", "bettong/node-tuning-")
    assert ANNOTATION not in cluster.get("node", "fake-0")["metadata"]["annotations"]
