"""Ends a suite's processes in parallel."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from bettong.local.server import Server

_NEEDED = ("kafka", "redis")
_POLL_S = 0.01
_END_S_MAX = 90.0  # for both groups together; longer than any process may take between SIGTERM and its end


def end_all(servers: Mapping[str, Server], *, kept: bool, hurry: threading.Event) -> None:
    """Ends the services in parallel, then Kafka and Redis; these are killed at once unless their data is kept.

    `hurry`: once it is set, what still runs is killed.
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
