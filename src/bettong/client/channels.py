"""gRPC channels to senders and receivers."""

import ipaddress
from collections.abc import Sequence

import grpc

_OPTIONS = (
    # The waits are ours; gRPC's own, up to two minutes, would come on top.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)
_NO_PROXY = ("grpc.enable_http_proxy", 0)


def channel(target: str, options: Sequence[tuple[str, object]]) -> grpc.Channel:
    """A channel with the options that all have, and `options`.

    It leaves out the proxy of `http_proxy` where that could never lead: to this machine itself.
    """
    return grpc.insecure_channel(target, [*_OPTIONS, *options, *([_NO_PROXY] if is_loopback(target) else [])])


def is_loopback(target: str) -> bool:
    """Whether host:port is on this machine's loopback interface."""
    host = target.rpartition(":")[0].strip("[]").lower()
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
