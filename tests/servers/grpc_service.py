"""A gRPC service of a test in this process, at a port of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager

import grpc

from bettong.local.addresses import LOOPBACK

_THREADS = 4
_STOP_S_MAX = 10.0


@contextmanager
def serving(add: Callable[[grpc.Server], None], *, port: int = 0) -> Iterator[str]:
    """Serves what `add` puts into a server; the address. Calls that are under way end with it.

    `port`: by default a free one.
    """
    server = grpc.server(futures.ThreadPoolExecutor(_THREADS))
    add(server)
    bound = server.add_insecure_port(f"{LOOPBACK}:{port}")
    server.start()
    try:
        yield f"{LOOPBACK}:{bound}"
    finally:
        server.stop(0).wait(_STOP_S_MAX)
