"""Probes of a container, asked as a kubelet asks: each at its period, started before ready and alive are asked."""

import socket
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bettong.local.processes import Process
from tests.kubernetes.containers import Container
from tests.servers.health import answers_serving

# A machine with two cores starts all of a cluster at once: commands may take longer there, and fail more often.
_COMMAND_S_MAX = 60.0
_PATIENCE = 5


class Probe:
    """One probe: `holds` is whether it succeeded last, `failed` whether it has failed as often as it may."""

    def __init__(self, spec: Mapping[str, Any], container: Container) -> None:
        self._spec, self._container = spec, container
        self._next_s, self._failures = 0.0, 0
        self._call: tuple[Process, float] | None = None
        self.holds = False

    @property
    def failed(self) -> bool:
        """Whether failures have come one after another so often as the probe allows."""
        return self._failures >= _PATIENCE * int(self._spec.get("failureThreshold", 3))

    def ask(self, process: Process) -> None:
        """Asks if it is time. A command is looked at again, and not waited for."""
        if self._call is not None:
            self._look()
        elif time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + float(self._spec.get("periodSeconds", 10))
            if "exec" in self._spec:
                log = Path(self._container.folder) / "probe.log"
                command = self._container.command(self._spec["exec"]["command"], log, process)
                self._call = (Process(command), time.monotonic() + _COMMAND_S_MAX)
            else:
                self._is(holds=self._answers())

    def end(self) -> None:
        """Ends a command that is under way."""
        if self._call is not None:
            self._call[0].kill()
            self._call = None

    def _look(self) -> None:
        assert self._call is not None
        process, until_s = self._call
        if (ending := process.ending) is not None:
            self._call = None
            self._is(holds=ending.status == 0)
        elif time.monotonic() > until_s:
            self.end()
            self._is(holds=False)

    def _is(self, *, holds: bool) -> None:
        self.holds = holds
        self._failures = 0 if holds else self._failures + 1

    def _answers(self) -> bool:
        address, seconds = self._container.address, max(1.0, float(self._spec.get("timeoutSeconds", 1)))
        if "grpc" in self._spec:
            asked = self._spec["grpc"]
            return answers_serving(f"{address}:{asked['port']}", asked.get("service", ""), seconds)
        kind = "httpGet" if "httpGet" in self._spec else "tcpSocket"
        port = self._port(self._spec[kind]["port"])
        try:
            if kind == "httpGet":
                url = f"http://{address}:{port}{self._spec[kind]['path']}"
                with urllib.request.urlopen(url, timeout=seconds) as answer:
                    return int(answer.status) < 400
            with socket.create_connection((address, port), timeout=seconds):
                return True
        except OSError:
            return False

    def _port(self, port: int | str) -> int:
        named = {each["name"]: each["containerPort"] for each in self._container.spec["ports"]}
        return int(named[port]) if isinstance(port, str) else port
