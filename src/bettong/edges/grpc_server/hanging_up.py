"""Closes a client's connection. grpc.aio ends a call by a status, which waits behind what the client does not read."""

import contextlib
import os
import socket
import stat
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

_DESCRIPTORS = Path("/dev/fd")
_MAPPED = "::ffff:"


def hang_up(peer: str) -> bool:
    """Shuts down a peer's connection, as `ServicerContext.peer` names it, with all its calls; whether it was found.

    gRPC notices at once, as if the client had gone: it lets go of what it held, and the client's calls end with
    UNAVAILABLE.
    """
    found = False
    for connection in _connections():
        with contextlib.suppress(OSError):
            if _name(connection) == urllib.parse.unquote(peer):
                connection.shutdown(socket.SHUT_RDWR)
                found = True
    return found


def _connections() -> Iterator[socket.socket]:
    """The sockets of this process, one after the other."""
    for path in list(_DESCRIPTORS.iterdir()):
        # Others open and close theirs meanwhile.
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(int(path.name)).st_mode):
                with socket.socket(fileno=os.dup(int(path.name))) as connection:
                    yield connection


def _name(connection: socket.socket) -> str:
    """The other end, as gRPC writes it: a client of IPv4 is one, also at a socket of both."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return ""
    host, port = connection.getpeername()[:2]
    host = host.removeprefix(_MAPPED) if "." in host else host
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"
