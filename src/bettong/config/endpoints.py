"""Checks and normalizes addresses in settings. Pure."""

import ipaddress
import re
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

# A name or an IPv4 address, or an IPv6 address in brackets; then a port.
_ADDRESS = re.compile(r"([^\s,:/@\[\]]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})")
_PORT_MAX = 65_535
_REDIS_SCHEMES = ("redis", "rediss", "unix")
_PASSWORDS = {"password", "ssl_password"}  # parameters of the URL of a Redis

# A scheme, then no character with a special meaning in URLs that is not supported here.
_FOLDER_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s?#]*")


def servers(text: str) -> str:
    """Kafka's bootstrap servers without spaces. Raises ValueError unless it is host:port[,host:port]."""
    addresses = [address.strip() for address in text.split(",")]
    if not all(map(_is_address, addresses)):
        raise ValueError("expected host:port[,host:port]")
    return ",".join(addresses)


def listening(text: str) -> str:
    """The address of a server. Raises ValueError unless it is host:port; port 0 stands for any free one."""
    address = text.strip()
    if not _is_address(address, port_min=0):
        raise ValueError("expected host:port")
    return address


def redis_url(text: str) -> str:
    """A URL of Redis. Raises ValueError, which does not quote it: it may contain a password."""
    url = text.strip()
    if not _is_redis(url):
        raise ValueError("expected redis://[user:password@]host:port/number, or rediss:// or unix://")
    return url


def snapshots_url(text: str) -> str:
    """Where snapshots are kept: `redis`, or a folder's URL, without a slash at its end.

    Raises ValueError, which does not quote it: it may contain a password.
    """
    url = text.strip()
    if url == "redis":
        return url
    if not _FOLDER_URL.fullmatch(url):
        raise ValueError(
            "expected redis, file:///folder, or a URL such as s3://bucket/folder without ? and #"
        )
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    if scheme in _REDIS_SCHEMES:
        raise ValueError("expected redis alone: BETTONG_REDIS has its address")
    if scheme in {"http", "https"}:
        raise ValueError(
            "expected s3://bucket/folder for an S3-compatible store; its address goes into AWS_ENDPOINT_URL"
        )
    if scheme == "file" and (host or not path.strip("/")):
        raise ValueError("expected a folder from the root on, file:///folder")
    if scheme != "file" and not host:
        raise ValueError(f"expected {scheme}://bucket/folder")
    if ":" in host.rpartition("@")[0]:
        raise ValueError("expected no password in it: credentials come from the environment (for S3, AWS_*)")
    return url.rstrip("/")


def collector(text: str) -> str:
    """The address of a trace collector. Raises ValueError unless it is a scheme, a host and a port alone."""
    url = text.strip().rstrip("/")
    scheme, _, address = url.partition("://")
    if scheme not in {"http", "https"} or not _is_address(address):
        raise ValueError("expected http://host:port, or https:// for TLS, where OTLP is taken over gRPC")
    return url


def without_password(url: str | None) -> str | None:
    """A URL of a flag. Raises ValueError for one with a password: all users of a machine can see processes' flags."""
    parts = urlsplit(url or "")
    if parts.password or _PASSWORDS & parse_qs(parts.query).keys():
        raise ValueError(
            "all users of this machine can see flags: give a URL with a password by BETTONG_REDIS"
        )
    return url


def is_loopback(address: str) -> bool:
    """Whether host:port is on this machine's loopback interface."""
    host = address.rpartition(":")[0].strip("[]").lower()
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def folder_of(url: str) -> Path | None:
    """The folder of a file: URL; None for any other URL."""
    scheme, _, path = url.partition("://")
    return Path(unquote(path)) if scheme == "file" else None


def _is_redis(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    host = parts.path if parts.scheme == "unix" else parts.hostname
    return parts.scheme in _REDIS_SCHEMES and bool(host) and port != 0


def _is_address(text: str, *, port_min: int = 1) -> bool:
    match = _ADDRESS.fullmatch(text)
    return match is not None and port_min <= int(match[2]) <= _PORT_MAX
