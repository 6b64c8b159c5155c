"""`bettong k8s` on a real control plane: what it shows and does, and that its Roles hold what it needs and no more."""

import functools
import itertools
import json
import re
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bettong.cli.exit_codes import NOT_RUNNING
from bettong.cluster.api import Cluster
from bettong.cluster.following import Follower
from bettong.cluster.permissions import NEEDS, role
from bettong.errors import ClusterError
from tests.kubernetes.chart import FOLDER, RELEASE
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.spaces import Desk, Space
from tests.waiting import eventually

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def release(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Space]:
    """One release, which each test leaves with a worker that is ready."""
    space = Space(cluster, "desk", tmp_path_factory.mktemp("desk"))
    space.helm(4, "install", RELEASE, str(FOLDER))
    yield space
    cluster.kubectl("delete", "namespace", space.name, "--wait=false")


@pytest.fixture
def desk(release: Space, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(release, capsys)


def test_status_shows_the_pods_of_the_only_release(desk: Desk) -> None:
    code, out, _ = desk.call("status")
    assert code == 0, out
    for component in ("sender", "master", "worker", "driver", "receiver", "kafka", "redis"):
        assert re.search(rf"^{component}\s+{component}\S*\s+Running\s+yes", out, re.MULTILINE), out
    assert "workers: 1 of 1 live, 1 slots for 4 partitions a stage" in out


def test_a_release_that_is_not_there_is_reported_with_those_that_are(desk: Desk) -> None:
    code, _, err = desk.call("status", "other")
    assert code == ClusterError.exit_code
    assert "no release 'other' of Bettong in namespace desk; there are trial" in err


def test_workers_are_scaled_and_awaited(desk: Desk, release: Space) -> None:
    code, out, err = desk.call("scale", "3")
    assert (code, err) == (0, "")
    assert "trial-bettong-worker: 1 -> 3 workers" in out
    assert len(release.running("worker")) == 3
    code, _, err = desk.call("scale", "5")
    assert code == ClusterError.exit_code
    assert "5 workers for 4 partitions" in err
    assert release.wanted() == 3
    assert desk.call("scale", "1")[0] == 0


def test_workers_that_an_autoscaler_counts_are_not_scaled(desk: Desk, release: Space) -> None:
    release.kubectl("autoscale", f"statefulset/{RELEASE}-bettong-worker", "--name=auto", "--max=4")
    code, _, err = desk.call("scale", "2")
    release.kubectl("delete", "hpa", "auto")
    assert code == ClusterError.exit_code
    assert "scaled by the autoscaler auto" in err


def test_workers_that_a_quota_refuses_are_reported_with_the_reason(desk: Desk, release: Space) -> None:
    release.kubectl("create", "quota", "few", "--hard=pods=8")
    code, out, _ = desk.call("scale", "4", "--timeout", "5")
    shown, reported, _ = desk.call("status")
    release.kubectl("delete", "quota", "few")
    assert desk.call("scale", "1")[0] == 0
    assert (code, shown) == (NOT_RUNNING, NOT_RUNNING)
    for text in (out, reported):
        assert "exceeded quota: few, requested: pods=1, used: pods=8, limited: pods=8" in text
    assert "workers: 2 of 4 live" in reported


def test_all_components_are_restarted_one_after_another(desk: Desk, release: Space) -> None:
    before = uids(release)
    code, out, err = desk.call("rollout")
    assert (code, err) == (0, "")
    assert re.findall(r"bettong-([\w-]+): ready", out) == ["receiver", "master", "worker", "driver", "sender"]
    eventually(lambda: all(uid not in uids(release).values() for uid in before.values()), seconds=30)
    code, out, _ = desk.call("rollout", "--status", "--component", "driver")
    assert (code, out) == (0, "trial-bettong-driver: all 1 pods are new and ready\n")
    code, _, err = desk.call("rollout", "--component", "kafka")
    assert code == ClusterError.exit_code
    assert "no component 'kafka' to restart; there are receiver, master" in err


def uids(space: Space) -> dict[str, str]:
    """Of the pods that a rollout makes new."""
    return {
        pod["metadata"]["name"]: pod["metadata"]["uid"]
        for pod in space.pods()
        if pod["metadata"]["labels"]["app.kubernetes.io/component"] not in {"kafka", "redis"}
    }


def write(cluster: ControlPlane, pod: str, second: int, text: str, *, previous: bool = False) -> None:
    """A line of a log, as a container runtime writes it."""
    with cluster.log_of(pod, previous=previous).open("a") as log:
        log.write(f"2026-01-01T00:00:{second:02d}.000000001Z stdout F {text}\n")


def test_logs_of_all_pods_are_one_by_time(desk: Desk, release: Space) -> None:
    cluster, worker, driver = release.cluster, f"{RELEASE}-bettong-worker-0", f"{RELEASE}-bettong-driver-0"
    write(cluster, worker, 1, "one")
    write(cluster, driver, 2, "two")
    write(cluster, worker, 3, "three")
    code, out, err = desk.call("logs", "--component", "worker")
    assert (code, out, err) == (0, "worker-0 | one\nworker-0 | three\n", "")
    for name in ("sender", "receiver", "master", "kafka", "redis"):
        for pod in release.running(name):
            code, _, err = desk.call("logs", "--component", name)
            assert code == ClusterError.exit_code, pod
            assert "log" in err
    code, out, _ = desk.call("logs", "--component", "driver", "--since", "1h")
    assert (code, out) == (0, "")
    code, _, err = desk.call("logs", "--component", "worker", "--previous")
    assert code == ClusterError.exit_code
    assert "no pod of trial, component worker, has restarted" in err


def test_logs_are_followed_while_they_are_written(
    desk: Desk, release: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = f"{RELEASE}-bettong-worker-0"
    monkeypatch.setenv("KUBECONFIG", str(release.cluster.config_of("admin")))
    with Cluster(namespace=release.name) as cluster:
        lines = Follower(cluster, RELEASE, "worker", None).lines()
        write(release.cluster, worker, 10, "ten")
        assert any(line.text == "ten" for line in lines)
        write(release.cluster, worker, 11, "eleven")
        assert next(lines).text == "eleven"


def play_health(cluster: ControlPlane) -> None:
    """What `bettong health` would say in a container."""
    asked = cluster.programs / "bettong"
    asked.write_text(f"#!{sys.executable}\nprint('driver: 7 records folded, 3 wait, for 0 s')\n")
    asked.chmod(asked.stat().st_mode | stat.S_IXUSR)


def test_lag_is_asked_of_the_driver_in_its_pod(desk: Desk, release: Space) -> None:
    play_health(release.cluster)
    code, out, err = desk.call("status", "--lag")
    assert (code, err) == (0, "")
    assert "driver: 7 records folded, 3 wait" in out


# Each so that it comes to all of its calls: `scale` also says why it was not in time.
WORDS = {
    "status": ["status"],
    "status --lag": ["status", "--lag"],
    "scale": ["scale", "{count}", "--timeout", "0.001"],
    "rollout": ["rollout", "--component", "receiver"],
    "rollout --status": ["rollout", "--status"],
    "logs": ["logs", "--component", "driver"],
}
OF_OLDER_CLUSTERS = {("pods/exec", "get")}


class User:
    """A service account that may do what a command needs, and uses the command."""

    def __init__(self, desk: Desk, release: Space, command: str, name: str) -> None:
        self._desk, self._release, self._command, self._name = desk, release, command, name
        self._counts = itertools.cycle([2, 1])
        self.rules = role(command, release.name)["rules"]
        release.kubectl("create", "serviceaccount", name)
        self._make("role", {"rules": self.rules})
        subject = {"kind": "ServiceAccount", "name": name, "namespace": release.name}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        self._make("rolebinding", {"roleRef": reference, "subjects": [subject]})
        desk.become(release.kubectl("create", "token", name).strip())

    def _make(self, kind: str, body: dict[str, Any]) -> None:
        kinds = {"role": "Role", "rolebinding": "RoleBinding"}
        meta = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": kinds[kind],
            "metadata": {"name": self._name},
        }
        self._release.kubectl("create", "-f", "-", given=json.dumps({**meta, **body}))

    def errors(self) -> str:
        """What a call of the command complains about."""
        words = [each.format(count=next(self._counts)) for each in WORDS[self._command]]
        return self._desk.call(*words)[2]

    def is_content(self) -> bool:
        """Whether the command has nothing to complain about."""
        return self.errors() == ""

    def is_allowed(self, resource: str, verb: str) -> bool:
        """Whether the command names what is missing of the Role."""
        return f"resources ['{resource}'], verbs ['{verb}']" in self.errors()

    def loses(self, rule: int, verb: str) -> None:
        """May do one thing less than the command needs."""
        rules = [dict(each) for each in self.rules]
        # A rule without verbs is none; no command needs this one.
        rules[rule]["verbs"] = [each for each in rules[rule]["verbs"] if each != verb] or ["deletecollection"]
        self._release.kubectl("patch", "role", self._name, "--type=merge", "-p", json.dumps({"rules": rules}))


def test_a_role_of_just_what_is_listed_is_enough_and_all_of_it_is_needed(
    desk: Desk, release: Space, unique_name: Callable[..., str]
) -> None:
    play_health(release.cluster)
    write(release.cluster, f"{RELEASE}-bettong-driver-0", 9, "nine")
    tried = set(OF_OLDER_CLUSTERS)
    for command in NEEDS:
        user = User(desk, release, command, unique_name("user"))
        eventually(user.is_content, seconds=10, what=command)
        for number, rule in enumerate(user.rules):
            for resource, verb in itertools.product(rule["resources"], rule["verbs"]):
                if (resource, verb) not in tried and not (
                    command == "rollout" and resource == "statefulsets"
                ):
                    tried.add((resource, verb))
                    user.loses(number, verb)
                    eventually(
                        functools.partial(user.is_allowed, resource, verb),
                        seconds=10,
                        what=f"{command} says that {verb} of {resource} is missing",
                    )


def test_without_a_kubeconfig_it_is_told_where_one_was_looked_for(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk._config = tmp_path / "none"
    code, _, err = desk.call("status")
    assert code == ClusterError.exit_code
    assert f"no kubeconfig: {tmp_path}/none is not there" in err


def test_a_context_that_is_not_there_is_reported_with_those_that_are(desk: Desk) -> None:
    code, _, err = desk.call("status", "--context", "there")
    assert code == ClusterError.exit_code
    assert "has here" in err
