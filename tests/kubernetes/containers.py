"""A pod's only container as a process of this machine: its command, variables and volumes, as the API server has them.

Paths of volumes become folders, names of Services addresses, and "any address" the pod's own: there is one file
system and one network for all. Nothing is isolated, and nothing limited.
"""

import base64
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bettong.local.processes import Command, Process

_REFERENCE = re.compile(r"\$\((\w+)\)")
PATH = f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin"

Object = Mapping[str, Any]
Read = Callable[[str, str, str], Object]  # (path of the API, namespace, name) -> object


@dataclass
class Container:
    """The container of a pod, at an address. `names`: addresses of Services. `read` reads an object of the API."""

    pod: Object
    address: str
    folder: Path
    names: Mapping[str, str]
    environment: Mapping[str, str]
    read: Read
    token: Callable[[str, str], str]
    _variables: dict[str, str] = field(default_factory=dict)
    _folders: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.spec,) = self.pod["spec"]["containers"]
        self.name: str = self.pod["metadata"]["name"]
        self._volumes()
        self._variables = self._read_variables()

    def start(self) -> Process:
        """Runs the command."""
        words = [*self.spec.get("command", []), *self.spec.get("args", [])]
        return Process(self.command(words, self.folder / "container.log"))

    def command(self, words: Sequence[str], log: Path, process: Process | None = None) -> Command:
        """A command as in the container; its process 1 is `process`."""
        given = [f"PATH={PATH}", *(f"{key}={self._here(value)}" for key, value in self._variables.items())]
        found = [self._here(word) for word in words]
        if process is not None:
            found = [re.sub(r"(kill -s \w+) 1\b", rf"\1 {process.pid}", word) for word in found]
        return Command(self.name, ("env", "-i", *given, *found), log)

    @property
    def _namespace(self) -> str:
        return str(self.pod["metadata"]["namespace"])

    def _data(self, kind: str, name: str) -> dict[str, str]:
        data = self.read(f"/api/v1/namespaces/{{}}/{kind}/{{}}", self._namespace, name).get("data") or {}
        if kind == "secrets":
            return {key: base64.b64decode(value).decode() for key, value in data.items()}
        return dict(data)

    def _read_variables(self) -> dict[str, str]:
        found = dict(self.environment)
        for source in self.spec.get("envFrom", []):
            for key, kind in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
                if key in source:
                    found |= self._data(kind, source[key]["name"])
        for each in self.spec.get("env", []):
            if "valueFrom" in each:
                found[each["name"]] = self._value_from(each["valueFrom"])
            else:
                text = each.get("value", "")
                found[each["name"]] = _REFERENCE.sub(lambda match: found.get(match[1], match[0]), text)
        return found

    def _value_from(self, source: Object) -> str:
        if "fieldRef" in source:
            path = source["fieldRef"]["fieldPath"]
            if path == "status.podIP":
                return self.address
            found: Any = self.pod
            for part in path.split("."):
                found = found[part]
            return str(found)
        for key, kind in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
            if key in source:
                return self._data(kind, source[key]["name"])[source[key]["key"]]
        raise AssertionError(f"{self.name}: a variable from {source} is not played")

    def _volumes(self) -> None:
        """Makes a folder of each volume, and writes what is in it."""
        volumes = {each["name"]: each for each in self.pod["spec"].get("volumes", [])}
        self._folders = {"/dev/shm": str(self.folder / "shm")}  # noqa: S108 - a container's
        for mount in self.spec.get("volumeMounts", []):
            volume = volumes[mount["name"]]
            if "persistentVolumeClaim" in volume:
                self._folders[mount["mountPath"]] = self._claimed(
                    volume["persistentVolumeClaim"]["claimName"]
                )
            else:
                self._folders[mount["mountPath"]] = str(self.folder / mount["name"])
        for folder in self._folders.values():
            Path(folder).mkdir(parents=True, exist_ok=True)
        for mount in self.spec.get("volumeMounts", []):
            for name, text in self._files(volumes[mount["name"]]).items():
                (Path(self._folders[mount["mountPath"]]) / name).write_text(self._here(text))

    def _claimed(self, claim: str) -> str:
        found = self.read("/api/v1/namespaces/{}/persistentvolumeclaims/{}", self._namespace, claim)
        volume = self.read("/api/v1/persistentvolumes/{1}", "", found["spec"]["volumeName"])
        return str(volume["spec"]["hostPath"]["path"])

    def _files(self, volume: Object) -> dict[str, str]:
        if "configMap" in volume:
            return self._data("configmaps", volume["configMap"]["name"])
        if "secret" in volume:
            return self._data("secrets", volume["secret"]["secretName"])
        found = {}
        for source in volume.get("projected", {}).get("sources", []):
            if "serviceAccountToken" in source:
                account = self.pod["spec"]["serviceAccountName"]
                found[source["serviceAccountToken"]["path"]] = self.token(self._namespace, account)
            elif "configMap" in source:
                found |= self._data("configmaps", source["configMap"]["name"])
            elif "downwardAPI" in source:
                found["namespace"] = self._namespace
        return found

    def _here(self, text: str) -> str:
        """With paths, names and "any address" as they are here, and variables filled in."""
        filled = _REFERENCE.sub(lambda match: self._variables.get(match[1], match[0]), text)
        moves = {**self._folders, **self.names, "0.0.0.0": self.address}  # noqa: S104 - replaced by the pod's own
        longest = sorted(moves, key=len, reverse=True)
        # A path begins where no other path ends; a name stands for an address where a port follows.
        words = [
            f"(?<![/.]){re.escape(word)}"
            if word.startswith("/")
            else re.escape(word) + (r"(?=:\d)" if word in self.names else "")
            for word in longest
        ]
        pattern = rf"(?<![\w-])({'|'.join(words)})(?![\w-])"
        return re.sub(pattern, lambda match: moves[match[1]], filled)
