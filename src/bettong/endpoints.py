"""Addresses in settings: checked where they are read, in one form for all who use them. Pure."""

import re
from urllib.parse import urlsplit

# A name or an IPv4 address, or an IPv6 address in brackets; then a port.
_PLACE = re.compile(r"([^\s,:/@\[\]]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})")
_PORT_MAX = 65_535
_REDIS_SCHEMES = ("redis", "rediss", "unix")


def servers(text: str) -> str:
    """Kafka's bootstrap servers without spaces. Raises ValueError unless it is host:port[,host:port]."""
    places = [place.strip() for place in text.split(",")]
    if not all(map(_is_place, places)):
        raise ValueError("expected host:port[,host:port]")
    return ",".join(places)


def listening(text: str) -> str:
    """Where a server listens. Raises ValueError unless it is host:port; port 0 stands for any free one."""
    place = text.strip()
    if not _is_place(place, port_min=0):
        raise ValueError("expected host:port")
    return place


def redis_url(text: str) -> str:
    """A URL of Redis. Raises ValueError, which does not quote it, for the password that may be in it."""
    url = text.strip()
    if not _is_redis(url):
        raise ValueError("expected redis://[user:password@]host:port/number, or rediss:// or unix://")
    return url


def _is_redis(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    place = parts.path if parts.scheme == "unix" else parts.hostname
    return parts.scheme in _REDIS_SCHEMES and bool(place) and port != 0


def _is_place(text: str, *, port_min: int = 1) -> bool:
    match = _PLACE.fullmatch(text)
    return match is not None and port_min <= int(match[2]) <= _PORT_MAX
