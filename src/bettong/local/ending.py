"""How a suite ends: its processes side by side."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from bettong.local.server import Server

_NEEDED = ("kafka", "redis")
_POLL_S = 0.01
_END_S_MAX = 90.0  # all graces together; beyond it only a process that survives SIGKILL is left


def end_all(servers: Mapping[str, Server], *, kept: bool, hurry: threading.Event) -> None:
    """Ends the services side by side, then what they need. Data that nobody keeps is not put in order first.

    `hurry`: nothing is ended gently any more.
    """
    services = [server for name, server in servers.items() if name not in _NEEDED]
    needed = [servers[name] for name in _NEEDED if name in servers]
    for group, gentle in ((services, True), (needed, kept)):
        for server in group:
            server.terminate() if gentle and not hurry.is_set() else server.kill()
        deadline = time.monotonic() + _END_S_MAX / 2
        while any(server.runs() for server in group) and time.monotonic() < deadline:
            if hurry.wait(_POLL_S):
                break
        for server in group:
            server.kill()
