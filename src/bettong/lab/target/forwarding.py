"""A component of a release at a port of this machine: connections are forwarded to pods through the API server."""

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
    """A context manager; inside, `address` leads to `port` of the component's pods, of any that is ready.

    A connection that no pod takes is closed, and so is one whose pod ends: clients connect anew. It goes through two
    more processes and back, so what is measured through it is never as fast as inside the cluster.
    """

    def __init__(self, cluster: Cluster, release: str, component: str, port: int) -> None:
        """`cluster`: says where; its connection is not used, for it is not for several threads."""
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
                    self._join(ours)
        for each in opened:
            _end(each)

    def _join(self, ours: socket.socket) -> None:
        try:
            theirs = self._connect()
        except ClusterError:
            ours.close()  # who connected tries again, and says in the end that nobody answers
            return
        for source, target in ((ours, theirs), (theirs, ours)):
            threading.Thread(target=_copy, args=(source, target), name=self._thread.name, daemon=True).start()

    def _connect(self) -> PodConnection:
        ready = [name_of(pod) for pod in self._cluster.list("pods", labels=self._labels) if is_ready(pod)]
        if not ready:
            raise ClusterError(f"no pod of {self._labels} is ready")
        return self._cluster.forward(random.choice(ready), self._port)  # noqa: S311 - any of them


def _copy(source: PodConnection, target: PodConnection) -> None:
    """Until either side ends; then both do."""
    with suppress(OSError):
        while data := source.recv(_PIECE_BYTES):
            target.sendall(data)
    _end(source)
    _end(target)


def _end(each: PodConnection) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
