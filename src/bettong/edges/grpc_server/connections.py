"""Inspects and closes this process's connections by their sockets, bypassing gRPC.

grpc.aio ends a call with a status, which queues behind responses that the client does not read; and it does not report
partly received messages. Peers have the names of `ServicerContext.peer`.
"""

import contextlib
import errno
import os
import resource
import socket
import stat
import struct
import sys
import threading
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path

_DESCRIPTORS = Path("/dev/fd")
# Linux's maximum per process, unless `fs.nr_open` is raised; elsewhere the limit may be infinite.
_DESCRIPTORS_MAX = 1 << 20
_MAPPED = "::ffff:"

# `tcpi_bytes_received` in Linux's `struct tcp_info`, since 4.1.
_RECEIVED = struct.Struct("=Q")
_RECEIVED_OFFSET = 128


def close_connection(peer: str) -> bool:
    """Shuts down a peer's connection, with all its calls; returns whether it was found.

    gRPC notices at once, as if the client had disconnected: it frees the connection's memory, and the client's calls
    end with UNAVAILABLE.
    """
    found = False
    for name, connection in _connections():
        if name == urllib.parse.unquote(peer):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
                found = True
    return found


def received_bytes() -> dict[str, int]:
    """The number of bytes that each peer has sent since it connected. Empty on systems other than Linux.

    Takes some 20 us per connection.
    """
    if not sys.platform.startswith("linux"):
        return {}
    found = {}
    for name, connection in _connections():
        with contextlib.suppress(OSError, struct.error):
            length = _RECEIVED_OFFSET + _RECEIVED.size
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, length)
            (found[name],) = _RECEIVED.unpack_from(info, _RECEIVED_OFFSET)
    return found


def _connections() -> Iterator[tuple[str, socket.socket]]:
    """Peers and sockets of this process, one at a time: a socket is valid until the next one."""
    for descriptor in _descriptors():
        # Other threads may close it meanwhile.
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                with _RESERVED.of(descriptor) as connection:
                    if name := _name(connection):
                        yield name, connection


def _descriptors() -> Sequence[int]:
    """The descriptors of this process; empty if the system does not list them."""
    try:
        return [int(path.name) for path in _DESCRIPTORS.iterdir()]
    except OSError as error:
        if error.errno != errno.EMFILE:
            return ()
        # Listing needs a descriptor and none is free, so all possible descriptors are open.
        return range(min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], _DESCRIPTORS_MAX))


class _ReservedDescriptor:
    """A reserved descriptor: a duplicate of the inspected one, which other threads may close and reopen meanwhile.

    It is allocated at the start, because clients may use up all descriptors with connections.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._nothing = os.open(os.devnull, os.O_RDONLY)
        self._own = os.dup(self._nothing)

    @contextlib.contextmanager
    def of(self, descriptor: int) -> Iterator[socket.socket]:
        """A duplicate of this descriptor's socket. Raises OSError if the descriptor is closed or no socket."""
        with self._lock:
            os.dup2(descriptor, self._own, inheritable=False)
            try:
                connection = socket.socket(fileno=self._own)
                try:
                    yield connection
                finally:
                    connection.detach()
            finally:
                os.dup2(self._nothing, self._own, inheritable=False)


_RESERVED = _ReservedDescriptor()


def _name(connection: socket.socket) -> str:
    """The peer's name as gRPC writes it: an IPv4 client has its IPv4 address, even on a dual-stack socket."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return ""
    host, port = connection.getpeername()[:2]
    host = host.removeprefix(_MAPPED) if "." in host else host
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"
