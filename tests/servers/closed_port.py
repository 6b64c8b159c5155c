"""A port at which nobody answers, and which no other test takes meanwhile."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from bettong.local.addresses import LOOPBACK


@contextmanager
def closed_port() -> Iterator[int]:
    """A port of the loopback interface that is taken, but not listened on: connections are refused."""
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        yield taken.getsockname()[1]
