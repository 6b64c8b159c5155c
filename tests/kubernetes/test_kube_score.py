"""kube-score over what is rendered: it finds nothing but what is ignored on purpose, here, each with its reason."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from tests.kubernetes.building import KUBE_SCORE
from tests.kubernetes.chart import TUNING, Chart, Object, pods_of
from tests.kubernetes.value_sets import MATRIX

pytestmark = pytest.mark.chart_tool("kube-score")

PASSED = 10  # of its grades


@dataclass(frozen=True)
class Ignored:
    """A check that is ignored for objects whose KIND/NAME matches, without the release's name."""

    check: str
    objects: str
    reason: str


IGNORED = [
    Ignored(
        "container-image-pull-policy",
        ".*",
        "A tag or digest always names the same image, and a pod must start while the registry is away.",
    ),
    Ignored(
        "pod-probes",
        "StatefulSet/driver",
        "Ready when its startup probe has passed. No client is sent to it, and executors must find it before that.",
    ),
    Ignored(
        "pod-probes-identical",
        "StatefulSet/(master|kafka)|DaemonSet/.*",
        "The one question is answered or not; it may fail for longer until a restart than until the pod is not ready.",
    ),
    Ignored(
        "statefulset-has-servicename",
        "StatefulSet/(master|kafka|redis)",
        "One pod, called by its Service's address, which stays when the pod goes; nobody asks for the pod's own name.",
    ),
    Ignored(
        "(deployment|statefulset)-has-host-podantiaffinity",
        "Deployment/sender|StatefulSet/worker",
        "topologySpreadConstraints spread them over nodes, and let more of them than nodes run.",
    ),
    Ignored(
        "deployment-(replicas|strategy)",
        "Deployment/(receiver|topic-sender)",
        "One at a time: two receivers would feed a sink doubly, two such senders read a topic doubly.",
    ),
    Ignored(
        "pod-probes-identical",
        "Deployment/console",
        "It is ready when it lives; it may fail for longer until a restart than until the pod is not ready.",
    ),
    Ignored(
        "deployment-replicas",
        "Deployment/sender",
        "Its count is `kubectl scale`'s and not rendered, so that no upgrade sets it back.",
    ),
    Ignored(
        "horizontalpodautoscaler-replicas",
        "HorizontalPodAutoscaler/(sender|worker)",
        "One is enough for a quiet stream, for clients resend and Spark folds again; autoscaling.minReplicas has more.",
    ),
    Ignored(
        "container-security-context-user-group-id",
        "StatefulSet/(kafka|redis)",
        "The users of images that are others', who own the files in them.",
    ),
    Ignored(
        "container-security-context-user-group-id",
        "DaemonSet/.*",
        "Only root reads and writes the kernel's files.",
    ),
    Ignored(
        "container-(security-context-privileged|seccomp-profile)",
        "DaemonSet/.*",
        "Privileged where it writes the kernel's files, and only there: test_node_tuning.py.",
    ),
    Ignored(
        "pod-networkpolicy",
        "DaemonSet/.*",
        "What comes in has a policy. What goes out goes to the API server, at an address of the cluster's.",
    ),
]

# CPUs that nobody else wants may be used: that is what burstable is for.
BURSTABLE = ("--ignore-container-cpu-limit",)
GUARANTEED = (
    "--enable-optional-test=container-cpu-requests-equal-limits,container-memory-requests-equal-limits",
)
ALWAYS = (
    "--enable-optional-test=container-seccomp-profile,container-ports-check",
    "--kubernetes-version=v1.37",
    "--output-format=json",
)
WAYS: Mapping[str, tuple[str, ...]] = {
    "least-burstable": BURSTABLE,
    "autoscaled-burst": BURSTABLE,
    "full-guaranteed": GUARANTEED,
    "many-guaranteed": GUARANTEED,
    "bundled-pinned": GUARANTEED,
}
MODES = ("dry-run", "apply")


@pytest.fixture(scope="module")
def found(chart: Chart) -> dict[str, list[tuple[str, str, str]]]:
    """What it finds, by how the charts are rendered: check, KIND/NAME, what is said."""
    tuning = Chart(TUNING)
    return {
        **{way: list(scored(chart.render(MATRIX[way]).objects, *words)) for way, words in WAYS.items()},
        **{mode: list(scored(tuning.render({"mode": mode}).objects, *BURSTABLE)) for mode in MODES},
    }


def scored(objects: list[Object], *words: str) -> Iterator[tuple[str, str, str]]:
    """It ends with 1 when something is critical."""
    done = subprocess.run(
        [str(KUBE_SCORE.folder / "kube-score"), "score", "-", *ALWAYS, *words],
        input=yaml.safe_dump_all(objects),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout, done.stderr
    reported: list[dict[str, Any]] = json.loads(done.stdout)
    carriers = {pod.owner for each in objects for pod in pods_of(each)}
    assert carriers <= {f"{each['type_meta']['kind']}/{each['object_meta']['name']}" for each in reported}
    for each in reported:
        name = re.sub("^trial-bettong-", "", each["object_meta"]["name"])
        for check in each["checks"]:
            if not check["skipped"] and check["grade"] < PASSED:
                said = "; ".join(f"{one['path']} {one['summary']}" for one in check["comments"] or [])
                yield check["check"]["id"], f"{each['type_meta']['kind']}/{name}", said


def is_ignored(by: Ignored, check: str, named: str) -> bool:
    return bool(re.fullmatch(by.check, check) and re.fullmatch(by.objects, named))


@pytest.mark.parametrize("way", [*WAYS, *MODES])
def test_it_finds_nothing_but_what_is_ignored(
    found: Mapping[str, list[tuple[str, str, str]]], way: str
) -> None:
    left = [each for each in found[way] if not any(is_ignored(by, *each[:2]) for by in IGNORED)]
    assert left == []


def test_nothing_is_ignored_that_it_does_not_find(found: Mapping[str, list[tuple[str, str, str]]]) -> None:
    everything = [each for way in found.values() for each in way]
    stale = [by for by in IGNORED if not any(is_ignored(by, *each[:2]) for each in everything)]
    assert stale == []


def test_a_pod_that_deserves_it_is_found() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "bad"},
        "spec": {"containers": [{"name": "a", "image": "a:latest", "securityContext": {"privileged": True}}]},
    }
    checks = {check for check, _, _ in scored([pod])}
    assert {"container-image-tag", "container-resources", "container-security-context-privileged"} <= checks
