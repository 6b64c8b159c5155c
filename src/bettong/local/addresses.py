"""Free ports of this machine, for servers that must know theirs before they start."""

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
# Where to look when the kernel leaves no room beside its range, or names no range: below Linux' default one.
_ANYWHERE = range(_LOWEST, 32_768)
_ROOM_MIN = 1000  # ports; with fewer, two callers would often choose the same
_TRIES_MAX = 200
# Ports that this process was given last: a server that has not started yet, or starts again, does not listen on its
# own.
_GIVEN: deque[int] = deque(maxlen=500)
# What tells other processes of the last of these: a socket with a name that ends with this process.
_HELD: deque[socket.socket] = deque()
_HELD_MAX = 100


def free_ports(count: int) -> list[int]:
    """Different TCP ports of the loopback interface that nobody listens on now.

    None of the last 500 that this process was given, and on Linux none of the last 100 of another one that lives.
    Elsewhere two processes at the same time rarely get the same, for ports are chosen at random; the second server
    fails to start.
    """
    room = candidates(_RANGE.read_text() if _RANGE.exists() else "")
    found: list[int] = []
    for port in random.sample(room, min(_TRIES_MAX, len(room))):
        if len(found) == count:
            break
        if port not in _GIVEN and is_free(port) and _hold(port):
            found.append(port)
            _GIVEN.append(port)
    if len(found) < count:
        raise LocalError(f"no {count} free ports found between {room.start} and {room.stop - 1}")
    return found


def give(ports: Iterable[int]) -> None:
    """Takes these for given: `free_ports` gives none of them."""
    for port in ports:
        _hold(port)
        _GIVEN.append(port)


def candidates(outgoing: str) -> range:
    """The ports to choose from. `outgoing`: the kernel's range for outgoing connections (ip_local_port_range).

    Outside it as far as there is room: inside, a connection of anybody could take the port between our check and
    the server's start.
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


def _hold(port: int) -> bool:
    """Whether no other process holds the port; this one does from here on. True where nobody can tell."""
    if sys.platform != "linux":
        return True
    held = socket.socket(socket.AF_UNIX)
    try:
        held.bind(f"\0bettong-port-{port}")
    except OSError as error:
        held.close()
        return error.errno != errno.EADDRINUSE
    _HELD.append(held)
    if len(_HELD) > _HELD_MAX:
        _HELD.popleft().close()
    return True
