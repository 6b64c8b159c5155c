"""Pods as rows, and the reasons why one is not ready, from the pods and events of a namespace. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from bettong.cluster.objects import Object, component_of, name_of, order_of

_LAST_OUTPUT_CHARACTERS_MAX = 300  # characters of a container's termination message
_REFUSALS = ("FailedCreate", "FailedScheduling", "FailedMount", "FailedAttachVolume")
_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")


@dataclass(frozen=True, slots=True)
class PodRow:
    """One pod. `cpus`: the sum of its containers' requests. `whole`: it is Guaranteed and requests whole CPUs, so a
    node with the static CPU manager gives it exclusive CPUs; whether the node has one cannot be seen from here.
    `since_s`: Unix seconds of its creation.
    """

    name: str
    component: str
    state: str
    ready: bool
    restarts: int
    qos: str
    cpus: Fraction
    whole: bool
    node: str
    since_s: float


def rows(pods: Iterable[Object]) -> list[PodRow]:
    """A row for each pod, without those of finished jobs and tests, ordered by component and name."""
    found = [row(pod) for pod in pods if pod["status"].get("phase") != "Succeeded"]
    return sorted(found, key=lambda each: (order_of(each.component), each.name))


def row(pod: Object) -> PodRow:
    """The row of one pod."""
    spec, status = pod["spec"], pod["status"]
    requests = [
        cpus(each.get("resources", {}).get("requests", {}).get("cpu", "0")) for each in spec["containers"]
    ]
    qos = str(status.get("qosClass", ""))
    return PodRow(
        name=name_of(pod),
        component=component_of(pod),
        state=_state(pod),
        ready=is_ready(pod),
        restarts=sum(each.get("restartCount", 0) for each in status.get("containerStatuses", [])),
        qos=qos,
        cpus=sum(requests, Fraction(0)),
        whole=qos == "Guaranteed" and all(each.denominator == 1 for each in requests),
        node=str(spec.get("nodeName", "")),
        since_s=seconds(pod["metadata"]["creationTimestamp"]),
    )


def is_ready(pod: Object) -> bool:
    """Whether a pod is ready and not being deleted."""
    if "deletionTimestamp" in pod["metadata"]:
        return False
    return _condition(pod, "Ready") == "True"


def cpus(quantity: str) -> Fraction:
    """`2`, `500m` or `0.5` CPUs: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/"""
    text = str(quantity)
    return Fraction(text[:-1]) / 1000 if text.endswith("m") else Fraction(text)


def seconds(text: str) -> float:
    """Unix seconds of an RFC 3339 time."""
    return datetime.fromisoformat(text).timestamp()


def warnings(pods: Iterable[Object], events: Iterable[Object], names: Iterable[str]) -> list[str]:
    """The problems, one line each, of pods, and of the workloads `names`, which may not have their pods yet."""
    pods = list(pods)
    found = [f"{name_of(pod)}: {why}" for pod in pods for why in _troubles(pod)]
    known = {name_of(pod) for pod in pods if not is_ready(pod)} | set(names)
    for event in sorted(events, key=_event_time):
        about, reason = event.get("involvedObject", {}), event.get("reason", "")
        owner = _owner(str(about.get("name", "")), known)
        if (
            reason not in _REFUSALS
            or owner is None
            or (reason == "FailedScheduling" and _placed(owner, pods))
        ):
            continue
        line = f"{owner}: {_one_line(str(event.get('message', '')))}"
        # A refusal that has been resolved is left out: its pods exist by now.
        if line not in found and not (reason == "FailedCreate" and _is_over(event, pods)):
            found.append(line)
    return found


def _state(pod: Object) -> str:
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    for each in pod["status"].get("containerStatuses", []):
        waiting = each.get("state", {}).get("waiting", {}).get("reason", "")
        if waiting and waiting != "ContainerCreating":
            return str(waiting)
    return str(pod["status"].get("phase", "Unknown"))


def _condition(pod: Object, kind: str) -> str:
    for each in pod["status"].get("conditions", []):
        if each["type"] == kind:
            return str(each["status"])
    return ""


def _troubles(pod: Object) -> Iterator[str]:
    for each in pod["status"].get("conditions", []):
        if each["type"] == "PodScheduled" and each["status"] == "False":
            yield f"has no node: {_one_line(each.get('message', each.get('reason', '')))}"
    for each in pod["status"].get("containerStatuses", []):
        waiting = each.get("state", {}).get("waiting", {})
        reason, text = waiting.get("reason", ""), _one_line(waiting.get("message", ""))
        if reason in _IMAGE:
            yield f"the image {each.get('image', '')} cannot be pulled: {text or reason}"
        elif reason == "CreateContainerConfigError":
            yield f"cannot begin: {text}"
        ended = each.get("state", {}).get("terminated") or each.get("lastState", {}).get("terminated")
        if ended and (each.get("restartCount", 0) or ended.get("exitCode")):
            yield from _ending(ended, each.get("restartCount", 0), again=reason == "CrashLoopBackOff")


def _ending(ended: Object, restarts: int, *, again: bool) -> Iterator[str]:
    if ended.get("reason") == "OOMKilled":
        yield f"had too little memory and was killed (OOMKilled), {restarts} restarts: give more resources.memory"
        return
    code, words = ended.get("exitCode", 0), _one_line(ended.get("message", ""))[-_LAST_OUTPUT_CHARACTERS_MAX:]
    if not again and not code:
        return
    loop = "keeps crashing" if again else "was restarted" if restarts else "ended"
    yield f"{loop}, {restarts} restarts, exit code {code}; last output: {words or 'see bettong k8s logs --previous'}"


def _owner(name: str, known: set[str]) -> str | None:
    """The subject of an event: a known pod or workload, or the workload of a ReplicaSet."""
    if name in known:
        return name
    stem = name.rpartition("-")[0]
    return stem if stem in known else None


def _placed(owner: str, pods: Iterable[Object]) -> bool:
    """Whether a pod has a node by now, or has a condition that says why not."""
    return any(name_of(pod) == owner and _condition(pod, "PodScheduled") for pod in pods)


def _is_over(event: Object, pods: Iterable[Object]) -> bool:
    """Whether the same owner created a pod after this refusal."""
    about = str(event.get("involvedObject", {}).get("name", ""))
    made = [
        seconds(pod["metadata"]["creationTimestamp"])
        for pod in pods
        if any(owner["name"] == about for owner in pod["metadata"].get("ownerReferences", []))
    ]
    return any(at > _event_time(event) for at in made)


def _event_time(event: Object) -> float:
    text = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp")
    return seconds(text) if text else 0.0


def _one_line(text: str) -> str:
    return " ".join(text.split())
