"""Free ports of this machine, for servers whose port must be known before they start."""

import errno
import random
import socket
import sys
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from bettong.errors import LocalError

LOOPBACK = "127.0.0.1"

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 15_000
_HIGHEST = 65_535
# The ports to choose from when the kernel's range is unknown or leaves no room: below Linux' default range.
_ANYWHERE = range(_LOWEST, 32_768)
_ROOM_MIN = 1000  # ports; with fewer, two callers would often choose the same
_TRIES_MAX = 200
# The last ports that this process was given: a server that has not started yet, or restarts, does not listen on its
# port.
_RECENT: deque[int] = deque(maxlen=500)
# Abstract Unix sockets that lock the last of these against other processes; the kernel removes them with this process.
_PORT_LOCKS: deque[socket.socket] = deque()
_PORT_LOCKS_MAX = 100


def free_ports(count: int) -> list[int]:
    """Different TCP ports of the loopback interface on which nothing listens now.

    Excluded are the last 500 that this process was given, and on Linux the last 100 of each other living process.
    Elsewhere two processes may get the same port, though rarely, for ports are chosen at random; the second server then
    fails to start.
    """
    room = candidates(_RANGE.read_text() if _RANGE.exists() else "")
    found: list[int] = []
    for port in random.sample(room, min(_TRIES_MAX, len(room))):
        if len(found) == count:
            break
        if port not in _RECENT and is_free(port) and _lock_port(port):
            found.append(port)
            _RECENT.append(port)
    if len(found) < count:
        raise LocalError(f"no {count} free ports found between {room.start} and {room.stop - 1}")
    return found


def reserve(ports: Iterable[int]) -> None:
    """Marks these ports as used, so that `free_ports` does not return them."""
    for port in ports:
        _lock_port(port)
        _RECENT.append(port)


def candidates(outgoing: str) -> range:
    """The ports to choose from. `outgoing`: the kernel's range for outgoing connections (ip_local_port_range).

    They are outside that range if there is room: inside it, an outgoing connection could take the port between our
    check and the server's start.
    """
    try:
        first, last = map(int, outgoing.split())
    except ValueError:
        return _ANYWHERE
    rooms = (range(_LOWEST, first), range(max(_LOWEST, last + 1), _HIGHEST + 1))
    return next((room for room in rooms if len(room) >= _ROOM_MIN), _ANYWHERE)


def is_free(port: int) -> bool:
    """Whether a server could listen on the port of the loopback interface now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise LocalError(f"the loopback interface cannot be used: {error}") from error
    return True


def _lock_port(port: int) -> bool:
    """Locks the port for this process. False when another process has locked it; always True outside Linux."""
    if sys.platform != "linux":
        return True
    held = socket.socket(socket.AF_UNIX)
    try:
        held.bind(f"\0bettong-port-{port}")
    except OSError as error:
        held.close()
        return error.errno != errno.EADDRINUSE
    _PORT_LOCKS.append(held)
    if len(_PORT_LOCKS) > _PORT_LOCKS_MAX:
        _PORT_LOCKS.popleft().close()
    return True
