"""Renders the chart, and looks at what came out: objects by kind and name, pods of whatever carries them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml
from kubernetes.utils import parse_quantity

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "deploy" / "helm" / "bettong"
TUNING = FOLDER.with_name("bettong-node-tuning")
DEV = FOLDER / "values-dev.yaml"
HELM = Path(sys.prefix) / "share" / "bettong" / "helm" / "helm"
RELEASE = "trial"
NAMESPACE = "space"
_CALL_S_MAX = 450.0

# The least that a deployment for real gives.
REAL: Mapping[str, Any] = {
    "application": {"path": "/app/app.py"},
    "kafka": {"bootstrapServers": "kafka-0.kafka:9092,kafka-1.kafka:9094"},
    "redis": {"url": "redis://redis:6380/0"},
}

Values = Mapping[str, Any]
Object = dict[str, Any]


class CallError(Exception):
    """What helm or kubectl said when it failed."""


def amount(quantity: float | str) -> Decimal:
    """A quantity as a number, which is what Kubernetes compares: a limit of "0" is none."""
    return Decimal(parse_quantity(quantity))


@dataclass(frozen=True)
class Pod:
    """A pod, or the template of one. `owner`: KIND/NAME of the object that carries it."""

    owner: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]

    @property
    def containers(self) -> list[dict[str, Any]]:
        """All that run in it, at its start too."""
        return [*self.spec["containers"], *self.spec.get("initContainers", [])]

    @property
    def qos(self) -> str:
        """The class that Kubernetes gives it, by its rule: `kubernetes.io/docs/concepts/workloads/pods/pod-qos`."""
        pairs = [
            (each.get("resources", {}).get("requests", {}), each.get("resources", {}).get("limits", {}))
            for each in self.containers
        ]
        if all(
            amount(limits.get(kind, 0)) and amount(requests.get(kind, limits[kind])) == amount(limits[kind])
            for requests, limits in pairs
            for kind in ("cpu", "memory")
        ):
            return "Guaranteed"
        asked = any(
            amount(each.get(kind, 0)) for pair in pairs for each in pair for kind in ("cpu", "memory")
        )
        return "Burstable" if asked else "BestEffort"


@dataclass(frozen=True)
class Rendered:
    """The objects of one render, hooks among them."""

    objects: list[Object]

    def of(self, kind: str) -> dict[str, Object]:
        """Those of a kind, by name without the release's."""
        prefix = f"{RELEASE}-bettong"
        return {
            each["metadata"]["name"].removeprefix(prefix).removeprefix("-"): each
            for each in self.objects
            if each["kind"] == kind
        }

    @property
    def pods(self) -> dict[str, Pod]:
        """All pods, by KIND/NAME of what carries them."""
        return {pod.owner: pod for each in self.objects for pod in pods_of(each)}


def pods_of(each: Object) -> Iterator[Pod]:
    """The pod that an object is or makes."""
    owner = f"{each['kind']}/{each['metadata']['name']}"
    if each["kind"] == "Pod":
        yield pod_of(owner, each)
    elif "template" in each.get("spec", {}):
        yield pod_of(owner, each["spec"]["template"])


def pod_of(owner: str, pod: Object) -> Pod:
    meta = pod["metadata"]
    return Pod(owner, meta.get("labels") or {}, meta.get("annotations") or {}, pod["spec"])


@dataclass
class Chart:
    """A chart in the tree. Renders with the values given, over `values-dev.yaml` when `dev`."""

    folder: Path = FOLDER
    _kept: dict[str, Rendered] = field(default_factory=dict)

    def render(self, values: Values | None = None, *, dev: bool = False, upgrade: bool = False) -> Rendered:
        """Raises CallError with helm's message."""
        text = json.dumps(values or {}, sort_keys=True)
        key = f"{dev} {upgrade} {text}"
        if key not in self._kept:
            words = [
                "template",
                RELEASE,
                str(self.folder),
                "--namespace",
                NAMESPACE,
                "--kube-version",
                "1.37.0",
            ]
            words += ["--is-upgrade"] * upgrade + ["--values", str(DEV)] * dev
            out = helm(*words, "--values", "-", given=text)
            self._kept[key] = Rendered([each for each in yaml.load_all(out, yaml.CSafeLoader) if each])
        return self._kept[key]


def helm(*words: str, given: str = "") -> str:
    """What helm prints. Raises CallError."""
    if not HELM.exists():
        raise AssertionError(f"{HELM} is missing: run `make test`, which fetches it")
    return called(HELM, words, given, HOME="/nonexistent")


def called(program: Path, words: Sequence[str], given: str = "", **environment: str) -> str:
    """What a program prints, in 450 s at most. Raises CallError."""
    done = subprocess.run(
        [str(program), *words],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=_CALL_S_MAX,
        env={"PATH": os.defpath, **environment},
    )
    if done.returncode:
        raise CallError(f"{program.name} {' '.join(words)}: {done.stderr}")
    return done.stdout


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether labels have all that a selector asks for."""
    return selector.items() <= labels.items()
