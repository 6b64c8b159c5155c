"""What an upgrade to new code restarts, and how it goes: the section "New code" of docs/kubernetes.md."""

import json
from typing import Any

import pytest

from tests.kubernetes.chart import FOLDER, RELEASE, Chart
from tests.kubernetes.spaces import Space
from tests.waiting import eventually

DRIVER = f"{RELEASE}-bettong-driver"
ALL: dict[str, Any] = {
    "metrics": {"enabled": True},
    "console": {"enabled": True},
    "topicSender": {"enabled": True},
    "application": {"source": "", "path": "/app/app.py"},
}
WITH_PROCESSOR = {"driver", "master", "worker"}
WITH_APPLICATION = {"sender", "topic-sender", "receiver", "console", "driver", "worker"}


def restarted(chart: Chart, before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """The sets of pods whose template changes."""
    found = [chart.render(values, dev=True).pods for values in (before, after)]
    owners = [owner for owner in found[0] if not owner.startswith(("Pod/", "Job/"))]
    return {
        owner.partition(f"{RELEASE}-bettong-")[2]
        for owner in owners
        if (found[0][owner].spec, found[0][owner].annotations)
        != (found[1][owner].spec, found[1][owner].annotations)
    }


def test_a_new_tag_restarts_all_but_the_bundled_stores(chart: Chart) -> None:
    old, new = ({**ALL, "image": {"tag": tag}} for tag in ("1", "2"))
    assert restarted(chart, old, new) == WITH_APPLICATION | WITH_PROCESSOR


def test_a_new_source_restarts_what_loads_the_application(chart: Chart) -> None:
    old, new = ({**ALL, "application": {"source": source}} for source in ("app = 1", "app = 2"))
    assert restarted(chart, old, new) == WITH_APPLICATION


def test_the_driver_and_the_workers_have_the_same_image(chart: Chart) -> None:
    pods = chart.render(ALL, dev=True).pods
    images = {pods[f"StatefulSet/{RELEASE}-bettong-{each}"].containers[0]["image"] for each in WITH_PROCESSOR}
    assert len(images) == 1


def images(space: Space, component: str) -> list[str]:
    return [pod["spec"]["containers"][0]["image"].rpartition(":")[2] for pod in space.running(component)]


@pytest.mark.cluster
@pytest.mark.parametrize("major", [4, 3])
@pytest.mark.parametrize("replicas", [None, 2])
def test_workers_that_are_exchanged_at_once_never_run_beside_the_old_code(
    space: Space, major: int, replicas: int | None
) -> None:
    """`replicas`: of the values. A count that was scaled to 0 has no owner, so helm 4 sets it without a conflict."""

    def values(tag: str) -> dict[str, Any]:
        return {"image": {"tag": tag}, "worker": {"replicas": replicas}}

    space.helm(major, "install", RELEASE, str(FOLDER), values=values("1"))
    space.scale(2)
    space.kubectl("scale", f"statefulset/{DRIVER}", "--replicas=0")
    space.scale(0)
    eventually(lambda: not space.running("driver") and not space.running("worker"), seconds=60)
    space.helm(major, "upgrade", RELEASE, str(FOLDER), values=values("2"), wait=False)
    assert space.wanted() == (0 if replicas is None else replicas)
    space.scale(2)
    eventually(lambda: len(space.running("worker")) == 2 and len(space.running("driver")) == 1, seconds=60)
    assert images(space, "worker") == ["2", "2"]
    assert images(space, "driver") == ["2"]


@pytest.mark.cluster
def test_a_driver_that_never_gets_ready_is_replaced_by_the_next_upgrade(space: Space) -> None:
    space.helm(4, "install", RELEASE, str(FOLDER), values={"image": {"tag": "1"}})
    not_ready = {
        "status": {"conditions": [{"type": kind, "status": "False"} for kind in ("Ready", "ContainersReady")]}
    }
    space.kubectl("patch", f"pod/{DRIVER}-0", "--subresource=status", "--patch", json.dumps(not_ready))
    eventually(lambda: space.get(f"statefulset/{DRIVER}")["status"].get("readyReplicas", 0) == 0, seconds=60)
    space.helm(4, "upgrade", RELEASE, str(FOLDER), values={"image": {"tag": "2"}}, wait=False)
    eventually(lambda: images(space, "driver") == ["2"], seconds=60)
