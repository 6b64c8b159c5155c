"""How `bettong k8s` shows objects: rows of pods, problems, counts, progress, merged logs."""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from bettong.cli.k8s.tables import short
from bettong.cluster import counts, rolling
from bettong.cluster.helm import chart_of
from bettong.cluster.log_lines import Line, lines_of, merged, nanoseconds, seconds
from bettong.cluster.objects import Object, chosen, of_release
from bettong.cluster.pods import cpus, row, rows, warnings
from bettong.cluster.trial import ClusterTrial, namespace_of
from bettong.errors import ClusterError, SettingsError

MADE = "2026-01-01T00:00:00Z"


def pod(
    name: str, *, component: str = "worker", state: Object | None = None, **status: Any
) -> dict[str, Any]:
    """A ready pod; `state` replaces the state of its container."""
    container = {
        "name": component,
        "image": "bettong:1",
        "restartCount": 0,
        "state": {"running": {}},
        **(state or {}),
    }
    ready = "True" if "running" in container["state"] else "False"
    return {
        "metadata": {
            "name": name,
            "creationTimestamp": MADE,
            "labels": {"app.kubernetes.io/component": component},
            "ownerReferences": [{"name": "x-worker"}],
        },
        "spec": {
            "containers": [{"name": component, "resources": {"requests": {"cpu": "2"}}}],
            "nodeName": "n1",
        },
        "status": {
            "phase": "Running",
            "qosClass": "Guaranteed",
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [container],
            **status,
        },
    }


def test_a_pod_is_a_row() -> None:
    found = row(pod("x-worker-0", state={"restartCount": 3}))
    assert (found.name, found.component, found.state, found.ready) == (
        "x-worker-0",
        "worker",
        "Running",
        True,
    )
    assert (found.restarts, found.qos, found.cpus, found.whole, found.node) == (
        3,
        "Guaranteed",
        Fraction(2),
        True,
        "n1",
    )
    assert found.since_s == 1_767_225_600


def test_fractions_of_a_cpu_are_not_exclusive() -> None:
    each = pod("x")
    each["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1500m"
    assert not row(each).whole
    assert cpus("1500m") == Fraction(3, 2) == cpus("1.5")


def test_pods_are_in_the_order_of_the_data_flow_without_finished_jobs() -> None:
    found = [
        pod("r", component="receiver"),
        pod("w"),
        pod("s", component="sender"),
        pod("j", phase="Succeeded"),
    ]
    assert [each.name for each in rows(found)] == ["s", "w", "r"]


def waiting(why: str, text: str = "", **ended: Any) -> dict[str, Any]:
    last = {"lastState": {"terminated": ended}} if ended else {}
    return {"state": {"waiting": {"reason": why, "message": text}}, **last}


WRONG: list[tuple[Object, str]] = [
    (
        waiting("ImagePullBackOff", "no such\nmanifest"),
        "the image bettong:1 cannot be pulled: no such manifest",
    ),
    (waiting("CreateContainerConfigError", 'secret "a" not found'), 'cannot begin: secret "a" not found'),
    (
        waiting("CrashLoopBackOff", "back-off", exitCode=4, reason="Error", message="x" * 400 + "no Kafka\n")
        | {"restartCount": 7},
        "keeps crashing, 7 restarts, exit code 4; last output: " + "x" * 292 + "no Kafka",
    ),
    (
        waiting("CrashLoopBackOff", "back-off", exitCode=137, reason="OOMKilled") | {"restartCount": 2},
        "had too little memory and was killed (OOMKilled), 2 restarts: give more resources.memory",
    ),
    (
        {"lastState": {"terminated": {"exitCode": 1, "message": "gone"}}, "restartCount": 1},
        "was restarted, 1 restarts, exit code 1; last output: gone",
    ),
    (
        {"state": {"terminated": {"exitCode": 1}}},
        "ended, 0 restarts, exit code 1; last output: see bettong k8s logs --previous",
    ),
]


@pytest.mark.parametrize(("state", "reported"), WRONG, ids=[text[:20] for _, text in WRONG])
def test_the_problems_of_a_pod_are_reported(state: Object, reported: str) -> None:
    assert warnings([pod("x-worker-0", state=state)], [], ["x-worker"]) == [f"x-worker-0: {reported}"]


def test_a_ready_pod_has_no_problems() -> None:
    assert warnings([pod("x-worker-0")], [], ["x-worker"]) == []
    ended = {"lastState": {"terminated": {"exitCode": 0}}, "restartCount": 1}
    assert warnings([pod("x-worker-0", state=ended)], [], ["x-worker"]) == []


def test_a_pod_without_a_node_says_why_and_once() -> None:
    why = "0/3 nodes are available: 3 Insufficient cpu."
    each = pod("x-worker-0", conditions=[{"type": "PodScheduled", "status": "False", "message": why}])
    each["status"]["containerStatuses"] = []
    found = warnings([each], [event("FailedScheduling", "x-worker-0", why)], ["x-worker"])
    assert found == [f"x-worker-0: has no node: {why}"]


def event(reason: str, name: str, message: str, at: str = MADE) -> Object:
    return {
        "metadata": {"creationTimestamp": at},
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
        "involvedObject": {"name": name},
    }


def test_a_workload_that_gets_no_pods_is_reported_until_it_gets_one() -> None:
    refused = event("FailedCreate", "x-worker", "exceeded quota")
    assert warnings([], [refused], ["x-worker"]) == ["x-worker: exceeded quota"]
    assert warnings([], [refused], ["y-worker"]) == []
    later = pod("x-worker-0")
    later["metadata"]["creationTimestamp"] = "2026-01-01T00:00:05Z"
    assert warnings([later], [refused], ["x-worker"]) == []
    of_a_set = event("FailedCreate", "x-sender-6c9f", "violates PodSecurity")
    assert warnings([], [of_a_set], ["x-sender"]) == ["x-sender: violates PodSecurity"]


def workload(name: str, component: str, **more: Any) -> dict[str, Any]:
    """A StatefulSet with both its pods ready."""
    meta = {
        "name": name,
        "generation": 2,
        "labels": {
            "app.kubernetes.io/instance": name.partition("-")[0],
            "app.kubernetes.io/component": component,
            "helm.sh/chart": "bettong-0.1.0",
        },
    }
    container = {
        "args": ["--host", "$(POD_IP)", "--cores", "2"],
        "envFrom": [{"configMapRef": {"name": "x-settings"}}],
    }
    status = {
        "observedGeneration": 2,
        "replicas": 2,
        "readyReplicas": 2,
        "updatedReplicas": 2,
        "currentRevision": "a",
        "updateRevision": "b",
    }
    return {
        "metadata": meta,
        "spec": {"replicas": 2, "serviceName": name, "template": {"spec": {"containers": [container]}}},
        "status": status | more,
    }


def test_the_release_is_the_one_that_is_named_or_the_only_one() -> None:
    one, other = workload("x-worker", "worker"), workload("y-worker", "worker")
    assert chosen(None, [one], "space") == "x"
    assert chosen("y", [one, other], "space") == "y"
    with pytest.raises(ClusterError, match=r"which release in namespace space.*there are x, y"):
        chosen(None, [one, other], "space")
    with pytest.raises(ClusterError, match="there is none: helm install"):
        chosen(None, [], "space")
    assert of_release([other, one], "x") == [one]


def test_workers_are_counted_with_their_slots() -> None:
    found = counts.workers(workload("x-worker", "worker"), {"BETTONG_PARTITIONS": "3"})
    assert found == counts.Workers("x-worker", wanted=2, live=2, slots=2, partitions=3)
    assert found.line() == "workers: 2 of 2 live, 4 slots for 3 partitions a stage: 1 slots are idle"
    assert counts.settings_map(workload("x-worker", "worker")) == "x-settings"
    none = counts.workers(workload("x-worker", "worker", readyReplicas=0), {})
    assert none.line().endswith("0 slots for 16 partitions a stage: nothing is processed")


def test_a_count_that_would_be_undone_is_refused() -> None:
    each = workload("x-worker", "worker")
    found = counts.workers(each, {})
    counts.refuse(each, found, 16, [])
    each["metadata"]["annotations"] = {"bettong/replicas": "values"}
    with pytest.raises(
        ClusterError, match=r"values of the release fix the count.*worker\.replicas.*sets 1; scale again"
    ):
        counts.refuse(each, found, 3, [])


def test_a_rollout_is_done_when_all_pods_are_updated_and_ready_and_no_others_left() -> None:
    assert rolling.progress(workload("x-worker", "worker")).done
    for half in ({"updatedReplicas": 1}, {"readyReplicas": 1}, {"replicas": 3}, {"observedGeneration": 1}):
        assert not rolling.progress(workload("x-worker", "worker", **half)).done, half
    ended = workload("x-worker", "worker", updatedReplicas=0, currentRevision="b")
    assert rolling.progress(ended).done
    late = rolling.progress(workload("x-worker", "worker", updatedReplicas=1, readyReplicas=1))
    assert late.line() == "x-worker: 1 of 2 pods are new, 1 ready"


def test_consumers_restart_before_producers_and_bundled_servers_not_at_all() -> None:
    names = ("sender", "driver", "kafka", "worker", "receiver", "master")
    found = [workload(f"x-{name}", name) for name in names]
    order = [each["metadata"]["name"] for each in rolling.ordered(found, None)]
    assert order == ["x-receiver", "x-master", "x-worker", "x-driver", "x-sender"]
    with pytest.raises(ClusterError, match="no component 'redis'"):
        rolling.ordered(found, "redis")


def test_lines_of_many_logs_are_merged_by_time() -> None:
    def log(pod: str, *at: int) -> Iterator[Line]:
        return lines_of(pod, [f"2026-01-01T00:00:0{each}.5Z line {each}" for each in at])

    found = [f"{line.pod} {line.text}" for line in merged([log("a", 1, 4), log("b", 2, 3)])]
    assert found == ["a line 1", "b line 2", "b line 3", "a line 4"]


def test_a_line_without_a_time_stays_behind_the_one_before() -> None:
    found = list(lines_of("a", ["2026-01-01T00:00:01Z first", "  at here", "2026-01-01T00:00:00Z late"]))
    assert [line.text for line in found] == ["first", "  at here", "late"]
    assert len({line.at_ns for line in found}) == 1


def test_times_have_nine_digits() -> None:
    assert nanoseconds("2026-01-01T00:00:00.000000001Z") == 1_767_225_600_000_000_001
    assert nanoseconds("2026-01-01T01:00:00.5+01:00") == 1_767_225_600_500_000_000
    assert nanoseconds("message") is None


def test_durations_have_a_unit() -> None:
    assert [seconds(text) for text in ("90s", "10m", "2h", "1d")] == [90, 600, 7200, 86_400]
    with pytest.raises(SettingsError, match="--since ten: expected a number and s, m, h or d"):
        seconds("ten")


def test_a_pod_is_called_without_its_release() -> None:
    assert short("trial-bettong-worker-0", "trial") == "worker-0"
    assert short("bettong-worker-0", "bettong") == "worker-0"
    assert short("other-0", "trial") == "other-0"


def test_a_lab_has_a_namespace_named_after_its_application() -> None:
    assert namespace_of("Trial_one") == "bettong-trial-trial-one"
    assert len(namespace_of("a" * 90)) == 63
    assert namespace_of("a" * 50 + "..") == "bettong-trial-" + "a" * 49


def test_a_lab_takes_images_of_a_folder_with_a_tag_or_without_one() -> None:
    def image(given: str) -> object:
        trial = ClusterTrial(Path("app.py"), "space", Path("chart"), None, given, ())
        return json.loads(trial.values_json())["image"]

    assert image("my/bettong:3") == {"repository": "my/bettong", "tag": "3"}
    assert image("localhost:5000/bettong") == {"repository": "localhost:5000/bettong", "tag": ""}
    assert image("localhost:5000/bettong:3") == {"repository": "localhost:5000/bettong", "tag": "3"}


def test_a_lab_without_a_chart_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="give --chart FOLDER"):
        chart_of(tmp_path)
