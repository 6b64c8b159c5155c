"""The connections of this process, beside gRPC: what the system knows of them, and their end.

grpc.aio ends a call by a status, which waits behind what the client does not read; and it tells nothing of a message
that has come in part. Peers are named as `ServicerContext.peer` does.
"""

import contextlib
import os
import socket
import stat
import struct
import sys
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

_DESCRIPTORS = Path("/dev/fd")
_MAPPED = "::ffff:"

# `tcpi_bytes_received` in Linux's `struct tcp_info`, since 4.1.
_RECEIVED = struct.Struct("=Q")
_RECEIVED_OFFSET = 128


def hang_up(peer: str) -> bool:
    """Shuts down a peer's connection, with all its calls; whether it was found.

    gRPC notices at once, as if the client had gone: it lets go of what it held, and the client's calls end with
    UNAVAILABLE.
    """
    found = False
    for name, connection in _connections():
        if name == urllib.parse.unquote(peer):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
                found = True
    return found


def received_bytes() -> dict[str, int]:
    """How many bytes each peer has sent since it connected. Empty where the system does not tell: not on Linux.

    Takes some 20 us a connection.
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
    """Peers and sockets of this process, one after the other."""
    for path in list(_DESCRIPTORS.iterdir()):
        # Others open and close theirs meanwhile.
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(int(path.name)).st_mode):
                with socket.socket(fileno=os.dup(int(path.name))) as connection:
                    if name := _name(connection):
                        yield name, connection


def _name(connection: socket.socket) -> str:
    """The other end, as gRPC writes it: a client of IPv4 is one, also at a socket of both."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return ""
    host, port = connection.getpeername()[:2]
    host = host.removeprefix(_MAPPED) if "." in host else host
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"
