"""What the chart renders, over all ways to deploy: valid objects, restricted pods of the right class."""

import copy
import itertools
import json
from typing import Any

import kubernetes_validate
import pytest

from tests.kubernetes.chart import DEV, FOLDER, Chart, Pod, Rendered, helm, selects
from tests.kubernetes.operator_kinds import KINDS
from tests.kubernetes.value_sets import CLASSES, MATRIX, WAYS

# The oldest that Chart.yaml allows, one between, and the newest whose schemas there are.
VERSIONS = ("1.32", "1.35", "1.37")
FEW = ("full-pinned", "bundled-guaranteed", "many-burst", "autoscaled-burstable")
# Each way once, each class twice: a lint takes as long as a render.
LINTED = ["dev", *(f"{way}-{kind}" for way, kind in zip(WAYS, itertools.cycle(CLASSES), strict=False))]


@pytest.fixture(params=[*MATRIX, "dev"])
def rendered(chart: Chart, request: pytest.FixtureRequest) -> Rendered:
    return chart.render(dev=True) if request.param == "dev" else chart.render(MATRIX[request.param])


@pytest.mark.parametrize("way", LINTED)
def test_helm_finds_nothing_to_say(way: str) -> None:
    values = str(DEV) if way == "dev" else "-"
    said = helm("lint", "--strict", str(FOLDER), "--values", values, given=json.dumps(MATRIX.get(way, {})))
    assert "0 chart(s) failed" in said


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid(chart: Chart, version: str) -> None:
    """Each once, however many ways render it: for the newest version those of all ways, for others those of a few."""
    ways = MATRIX if version == VERSIONS[-1] else FEW
    rendered = [chart.render(dev=True), *(chart.render(MATRIX[way]) for way in ways)]
    different = {
        json.dumps(each, sort_keys=True)
        for one in rendered
        for each in one.objects
        if each["kind"] not in KINDS  # of operators: test_operator_kinds.py
    }
    assert len(different) > 80
    for text in different:
        kubernetes_validate.validate(json.loads(text), version, strict=True)


def test_an_object_with_a_field_that_there_is_not_is_refused(chart: Chart) -> None:
    sender = copy.deepcopy(chart.render(dev=True).of("Deployment")["sender"])
    sender["spec"]["template"]["spec"]["containers"][0]["comand"] = []
    with pytest.raises(kubernetes_validate.ValidationError, match="comand"):
        kubernetes_validate.validate(sender, VERSIONS[0], strict=True)


def test_names_are_unique_and_short_enough(rendered: Rendered) -> None:
    names = [(each["kind"], each["metadata"]["name"]) for each in rendered.objects]
    assert len(names) == len(set(names))
    assert all(len(name) <= 63 for _, name in names)


def test_every_pod_has_the_class_that_was_asked_for(chart: Chart) -> None:
    for way, values in MATRIX.items():
        wanted = "Guaranteed" if values.get("qos", {}).get("mode") == "guaranteed" else "Burstable"
        pods = chart.render(values).pods
        assert {owner: pod.qos for owner, pod in pods.items()} == dict.fromkeys(pods, wanted), way


def test_every_pod_keeps_to_restricted_pod_security(rendered: Rendered) -> None:
    assert len(rendered.pods) >= 6
    for pod in rendered.pods.values():
        assert violations(pod) == []


def violations(pod: Pod) -> list[str]:
    """What of `kubernetes.io/docs/concepts/security/pod-security-standards`, restricted, and beyond, a pod breaks."""
    spec, found = pod.spec, []
    context = spec.get("securityContext", {})
    volumes = {kind for each in spec.get("volumes", []) for kind in each if kind != "name"}
    allowed = {"configMap", "emptyDir", "secret", "persistentVolumeClaim", "projected", "csi", "downwardAPI"}
    found += [f"volume {kind}" for kind in volumes - allowed]
    found += [key for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    if context.get("runAsNonRoot") is not True or not context.get("runAsUser"):
        found.append("may be root")
    if context.get("seccompProfile") != {"type": "RuntimeDefault"}:
        found.append("seccomp")
    calls = any(
        env["name"] == "BETTONG_CONSOLE_RELEASE" for each in pod.containers for env in each.get("env", [])
    )
    if spec.get("automountServiceAccountToken") is not (calls or pod.owner.endswith("-first-counts")):
        found.append("token")
    for each in pod.containers:
        wanted: dict[str, Any] = {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        if each.get("securityContext") != wanted:
            found.append(f"securityContext of {each['name']}")
        found += [f"host port {port}" for port in each.get("ports", []) if "hostPort" in port]
    return found


def test_a_pod_that_breaks_the_rules_is_found() -> None:
    bad = Pod(
        "Pod/a", {}, {}, {"containers": [{"name": "a"}], "hostNetwork": True, "volumes": [{"hostPath": {}}]}
    )
    assert violations(bad) == [
        "volume hostPath",
        "hostNetwork",
        "may be root",
        "seccomp",
        "token",
        "securityContext of a",
    ]
    assert bad.qos == "BestEffort"


@pytest.mark.parametrize(
    ("cpu", "memory", "wanted"),
    [("1", "1Gi", "Guaranteed"), ("0", "1Gi", "Burstable"), ("0", "0", "BestEffort")],
)
def test_a_limit_of_nothing_is_none(cpu: str, memory: str, wanted: str) -> None:
    both = {"cpu": cpu, "memory": memory}
    pod = Pod(
        "Pod/a", {}, {}, {"containers": [{"name": "a", "resources": {"requests": both, "limits": both}}]}
    )
    assert pod.qos == wanted


def test_services_budgets_and_policies_select_pods_that_are_there(rendered: Rendered) -> None:
    pods = [pod.labels for pod in rendered.pods.values()]
    selectors = [
        (f"{each['kind']}/{each['metadata']['name']}", selector)
        for each in rendered.objects
        for selector in selectors_of(each)
    ]
    assert len(selectors) >= 7
    for owner, selector in selectors:
        assert any(selects(selector, labels) for labels in pods), owner


def selectors_of(each: dict[str, Any]) -> list[dict[str, str]]:
    spec = each.get("spec", {})
    if each["kind"] == "Service":
        return [spec["selector"]]
    if each["kind"] == "PodDisruptionBudget":
        return [spec["selector"]["matchLabels"]]
    if each["kind"] == "NetworkPolicy":
        peers = [
            peer["podSelector"]["matchLabels"]
            for side in ("ingress", "egress")
            for rule in spec.get(side) or []
            for peer in rule.get("from", rule.get("to", []))
            if "podSelector" in peer
        ]
        return [spec["podSelector"]["matchLabels"], *peers]
    return []


def test_a_service_selects_one_component_and_a_port_that_it_has(rendered: Rendered) -> None:
    for service in rendered.of("Service").values():
        chosen = [pod for pod in rendered.pods.values() if selects(service["spec"]["selector"], pod.labels)]
        assert len(chosen) == 1, service["metadata"]["name"]
        names = {port["name"] for each in chosen[0].containers for port in each["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= names


def test_what_makes_pods_selects_its_own_alone(rendered: Rendered) -> None:
    makers = [each for each in rendered.objects if each["kind"] in {"Deployment", "StatefulSet"}]
    for maker in makers:
        selector = maker["spec"]["selector"]["matchLabels"]
        chosen = [pod.owner for pod in rendered.pods.values() if selects(selector, pod.labels)]
        assert chosen == [f"{maker['kind']}/{maker['metadata']['name']}"]


def test_every_volume_that_is_mounted_is_there(rendered: Rendered) -> None:
    for each in rendered.objects:
        claims = {claim["metadata"]["name"] for claim in each.get("spec", {}).get("volumeClaimTemplates", [])}
        pod = rendered.pods.get(f"{each['kind']}/{each['metadata']['name']}")
        if pod is not None:
            there = claims | {volume["name"] for volume in pod.spec.get("volumes", [])}
            mounted = {mount["name"] for c in pod.containers for mount in c.get("volumeMounts", [])}
            assert mounted == there, pod.owner
