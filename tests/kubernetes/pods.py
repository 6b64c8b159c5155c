"""Runs the containers of rendered pods as processes of this machine, each on a loopback address of its own.

What a kubelet does, as far as the chart needs it: commands, variables (of ConfigMaps, the pod's address), and
volumes out of ConfigMaps and empty folders. Paths of volumes and names of services become folders and addresses
here. No limits, no probes, no policies.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bettong.local.processes import Command, Process
from bettong.local.server import Server
from tests.kubernetes.chart import Pod, Rendered

_START_S_MAX = 120.0
_STOP_S_MAX = 45.0
_REFERENCE = re.compile(r"\$\((\w+)\)")
PATH = f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin"


class Pods:
    """The pods of one release, in folders below `folder`. `names`: addresses of services that run elsewhere."""

    def __init__(self, rendered: Rendered, folder: Path, names: Mapping[str, str]) -> None:
        self._rendered = rendered
        self._folder = folder
        self._names = dict(names)
        self._count = 0
        self._inside: dict[str, Callable[[Sequence[str]], tuple[str, ...]]] = {}

    def serve(self, owner: str, *, named: str = "", answers: Callable[[str], bool]) -> Server:
        """A server for the only container of a pod; `answers` gets the pod's address.

        `named`: the service by which others find it.
        """
        self._count += 1
        # By the number of this process: several runs at a time do not meet.
        number = os.getpid()
        address = f"127.{77 + self._count}.{number // 250 % 250}.{number % 250 + 1}"
        if named:
            self._names[named] = address
        command = self._command(
            self._rendered.pods[owner], f"{owner.rpartition('/')[2]}-{self._count}", address
        )
        return Server(command, answers=lambda: answers(address), start_s_max=_START_S_MAX)

    def run(self, owner: str) -> Process:
        """Runs the only container of a pod that ends by itself."""
        self._count += 1
        return Process(self._command(self._rendered.pods[owner], f"run-{self._count}", "127.0.0.1"))

    def probe(self, owner: str, kind: str) -> Process:
        """Runs the command of a probe (`livenessProbe`) as in the container of the last server of that pod."""
        (container,) = self._rendered.pods[owner].spec["containers"]
        self._count += 1
        words = self._inside[owner](container[kind]["exec"]["command"])
        return Process(Command(kind, words, self._folder / f"probe-{self._count}.log"))

    def _command(self, pod: Pod, name: str, address: str) -> Command:
        (container,) = pod.spec["containers"]
        folder = self._folder / name
        places = self._volumes(container, folder)
        variables = self._variables(container, address)

        def here(text: str) -> str:
            filled = _REFERENCE.sub(lambda match: variables[match[1]], text)
            return self._moved(filled, places, address)

        for path, content in self._files(pod, folder).items():
            path.write_text(here(content))
        given = [f"PATH={PATH}", *(f"{key}={here(value)}" for key, value in variables.items())]

        def inside(words: Sequence[str]) -> tuple[str, ...]:
            return ("env", "-i", *given, *map(here, words))

        self._inside[pod.owner] = inside
        words = inside([*container.get("command", []), *container.get("args", [])])
        return Command(name, words, self._folder / f"{name}.log", stop_s_max=_STOP_S_MAX)

    def _volumes(self, container: Mapping[str, Any], folder: Path) -> dict[str, str]:
        """The folder of each mounted path."""
        places = {mount["mountPath"]: folder / mount["name"] for mount in container["volumeMounts"]}
        for place in places.values():
            place.mkdir(parents=True, exist_ok=True)
        return {path: str(place) for path, place in places.items()}

    def _files(self, pod: Pod, folder: Path) -> dict[Path, str]:
        """The content of each file of a mounted ConfigMap."""
        maps = {v["name"]: v["configMap"]["name"] for v in pod.spec["volumes"] if "configMap" in v}
        return {
            folder / volume / name: content
            for volume, wanted in maps.items()
            for name, content in self._map(wanted).items()
        }

    def _map(self, name: str) -> dict[str, str]:
        (found,) = (
            each["data"]
            for each in self._rendered.objects
            if each["kind"] == "ConfigMap" and each["metadata"]["name"] == name
        )
        return dict(found)

    def _variables(self, container: Mapping[str, Any], address: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for source in container.get("envFrom", []):
            found |= self._map(source["configMapRef"]["name"])
        for each in container.get("env", []):
            if "valueFrom" in each:
                assert each["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
                found[each["name"]] = address
            else:
                found[each["name"]] = _REFERENCE.sub(lambda match: found[match[1]], each["value"])
        return found

    def _moved(self, text: str, places: Mapping[str, str], address: str) -> str:
        """With paths of volumes, names of services and "any address" as they are here."""
        moves = {**places, **self._names, "0.0.0.0": address}  # noqa: S104 - replaced by the pod's own
        longest = sorted(moves, key=len, reverse=True)
        # A path begins where no other path ends.
        words = [("(?<![/.])" if word.startswith("/") else "") + re.escape(word) for word in longest]
        pattern = rf"(?<![\w-])({'|'.join(words)})(?![\w-])"
        return re.sub(pattern, lambda match: moves[match[1]], text)
