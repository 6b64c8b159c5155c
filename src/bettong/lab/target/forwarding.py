"""Forwards connections from a port of this machine to the pods of a component, through the API server."""

from __future__ import annotations

import random
import socket
import threading
from contextlib import suppress

from bettong.cluster.api import Cluster, PodConnection
from bettong.cluster.objects import COMPONENT, RELEASE, name_of
from bettong.cluster.pods import is_ready
from bettong.errors import ClusterError
from bettong.local.addresses import LOOPBACK
from bettong.threads import BlockThread

_CLOSE_S_MAX = 5.0
_POLL_S = 0.1
_PIECE_BYTES = 256 * 1024


class Forwarding(BlockThread):
    """A context manager; inside, `address` leads to `port` of any ready pod of the component.

    A connection is closed if no pod accepts it, or when its pod ends: clients connect again. It passes through two
    more processes each way, so latencies through it are higher than inside the cluster.
    """

    def __init__(self, cluster: Cluster, release: str, component: str, port: int) -> None:
        """`cluster`: its context and namespace are used, but not its connection, which is not thread-safe."""
        super().__init__(f"forward-{component}", close_s_max=_CLOSE_S_MAX)
        self._cluster = Cluster(context=cluster.context, namespace=cluster.namespace)
        self._labels = f"{RELEASE}={release},{COMPONENT}={component}"
        self._port = port
        self._listening = socket.create_server((LOOPBACK, 0))
        self._listening.settimeout(_POLL_S)
        self.address = f"{LOOPBACK}:{self._listening.getsockname()[1]}"

    def _run(self) -> None:
        opened: list[socket.socket] = []
        with self._cluster, self._listening:
            while not self._stopping.is_set():
                with suppress(TimeoutError):
                    ours, _ = self._listening.accept()
                    ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    opened = [*(each for each in opened if each.fileno() >= 0), ours]
                    self._forward(ours)
        for each in opened:
            _close(each)

    def _forward(self, ours: socket.socket) -> None:
        try:
            theirs = self._connect()
        except ClusterError:
            ours.close()  # the client tries again, and reports in the end that nobody answers
            return
        for source, target in ((ours, theirs), (theirs, ours)):
            threading.Thread(target=_copy, args=(source, target), name=self._thread.name, daemon=True).start()

    def _connect(self) -> PodConnection:
        ready = [name_of(pod) for pod in self._cluster.list("pods", labels=self._labels) if is_ready(pod)]
        if not ready:
            raise ClusterError(f"no pod of {self._labels} is ready")
        return self._cluster.forward(random.choice(ready), self._port)  # noqa: S311 - any of them


def _copy(source: PodConnection, target: PodConnection) -> None:
    """Copies until either side ends; then closes both."""
    with suppress(OSError):
        while data := source.recv(_PIECE_BYTES):
            target.sendall(data)
    _close(source)
    _close(target)


def _close(each: PodConnection) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
