"""Speaks to qemu's guest agent, which runs commands in a virtual machine: JSON by a serial line.

Source: the QEMU Guest Agent Protocol Reference.
"""

import base64
import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bettong.closing import Closing
from tests.waiting import eventually

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_ANSWER_S_MAX = 300.0  # for what takes ten seconds on a machine of its own
_SYNC_S_MAX = 5.0
# What the agent puts before the answer to a greeting, and takes as the end of half a request.
_SENTINEL = b"\xff"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command of the guest ended: its exit code, or minus the signal's number."""

    status: int
    text: str


class GuestAgent(Closing):
    """A connection to the agent; one at a time. What takes too long raises TimeoutError."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._left = b""
        self._socket.settimeout(_ANSWER_S_MAX)
        self._socket.connect(str(path))

    def close(self) -> None:
        """Ends the connection."""
        self._socket.close()

    def greets(self) -> bool:
        """Whether the agent answers; waits for 5 s."""
        number = time.monotonic_ns()
        self._socket.settimeout(_SYNC_S_MAX)
        try:
            self._send("guest-sync-delimited", {"id": number}, before=_SENTINEL)
            while self._line().rpartition(_SENTINEL)[2] != b'{"return": %d}' % number:
                pass
        except TimeoutError:
            return False
        finally:
            self._socket.settimeout(_ANSWER_S_MAX)
        return True

    def start(self, script: str, variables: Mapping[str, str] | None = None, *, listens: bool = False) -> int:
        """Starts a script of sh; its number, by which it is asked for. `listens`: what it writes is kept."""
        environment = {"PATH": _PATH, **(variables or {})}
        arguments = {
            "path": "/bin/sh",
            "arg": ["-ec", script],
            "env": [f"{name}={value}" for name, value in environment.items()],
            "capture-output": listens,
        }
        return int(self._call("guest-exec", arguments)["pid"])

    def ended(self, number: int) -> Ended | None:
        """How it ended, reported once; None while it runs."""
        found = self._call("guest-exec-status", {"pid": number})
        if not found["exited"]:
            return None
        status = -found["signal"] if "signal" in found else found["exitcode"]
        text = b"".join(base64.b64decode(found.get(name, "")) for name in ("out-data", "err-data"))
        return Ended(status, text.decode())

    def run(self, script: str, variables: Mapping[str, str] | None = None) -> Ended:
        """Runs a script to its end; output and errors, one after the other."""
        number = self.start(script, variables, listens=True)
        return eventually(lambda: self.ended(number), seconds=_ANSWER_S_MAX, what=script)

    def text(self, script: str) -> str:
        """What a script writes; it must succeed."""
        ended = self.run(script)
        assert ended.status == 0, f"{script}: {ended}"
        return ended.text

    def _call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        self._send(name, arguments)
        answer = json.loads(self._line())
        assert "return" in answer, f"{name} {arguments}: {answer}"
        return answer["return"]

    def _send(self, name: str, arguments: Mapping[str, Any], *, before: bytes = b"") -> None:
        request = {"execute": name, "arguments": arguments}
        self._socket.sendall(before + json.dumps(request).encode() + b"\n")

    def _line(self) -> bytes:
        while b"\n" not in self._left:
            received = self._socket.recv(65536)
            if not received:
                raise ConnectionError("the virtual machine is gone")
            self._left += received
        line, _, self._left = self._left.partition(b"\n")
        return line
