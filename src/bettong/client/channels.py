"""gRPC channels to senders and receivers."""

import ipaddress
from collections.abc import Sequence

import grpc

_NO_PROXY = ("grpc.enable_http_proxy", 0)


def channel(target: str, options: Sequence[tuple[str, object]]) -> grpc.Channel:
    """A channel that leaves out the proxy of `http_proxy` where it could never lead: to this machine itself."""
    return grpc.insecure_channel(target, [*options, *([_NO_PROXY] if is_loopback(target) else [])])


def is_loopback(target: str) -> bool:
    """Whether host:port is on this machine's loopback interface."""
    host = target.rpartition(":")[0].strip("[]").lower()
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
