"""Free ports of this machine, for servers that must know theirs before they start."""

import errno
import random
import socket
from pathlib import Path

from bettong.errors import LocalError

LOOPBACK = "127.0.0.1"

# Below the range from which the kernel gives ports to outgoing connections (ip_local_port_range): there, a
# connection of anybody could take the port between our look and the server's start.
_LOWEST = 15_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_TRIES_MAX = 200


def free_ports(count: int) -> list[int]:
    """Different TCP ports of the loopback interface that nobody listens on now.

    Chosen at random, so that two callers at the same time rarely get the same; who comes second fails to start.
    """
    highest = int(_RANGE.read_text().split()[0]) - 1 if _RANGE.exists() else 32_767
    candidates = range(min(_LOWEST, highest - 1), highest)
    found: list[int] = []
    for port in random.sample(candidates, min(_TRIES_MAX, len(candidates))):
        if len(found) == count:
            break
        if is_free(port):
            found.append(port)
    if len(found) < count:
        raise LocalError(f"no {count} free ports found between {candidates.start} and {highest}")
    return found


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
