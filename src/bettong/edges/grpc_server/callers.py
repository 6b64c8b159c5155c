"""Identifies the client of a call, for limits per client."""

import urllib.parse
from contextvars import ContextVar
from ipaddress import ip_address
from typing import Any

import grpc

# The name of the token's holder, set by the guard for each call that it admits.
HOLDER: ContextVar[str] = ContextVar("holder", default="")

_LOOPBACK = "address loopback"
_NAME_CHARACTERS_MAX = 128


def caller(context: grpc.aio.ServicerContext[Any, Any]) -> str:
    """The holder of the call's token; else the name in its certificate; else its address, without the port.

    All loopback addresses count as one client, and so do all clients behind a proxy that translates addresses.
    """
    if holder := HOLDER.get():
        return f"token {holder}"
    for name in context.auth_context().get("x509_common_name", ()):
        return f"certificate {name.decode('utf-8', 'replace')[:_NAME_CHARACTERS_MAX]}"
    return address(context.peer())


def address(peer: str) -> str:
    """The address in gRPC's name of a peer: `ipv4:10.0.0.7:51234`, `ipv6:%5B::1%5D:51234`, `unix:`."""
    kind, _, rest = urllib.parse.unquote(peer).partition(":")
    if kind not in ("ipv4", "ipv6"):
        return _LOOPBACK
    host = rest.rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        found = ip_address(host)
    except ValueError:
        return f"address {host[:_NAME_CHARACTERS_MAX]}"
    mapped = getattr(found, "ipv4_mapped", None) or found
    return _LOOPBACK if mapped.is_loopback else f"address {mapped}"
