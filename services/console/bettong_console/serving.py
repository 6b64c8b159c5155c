"""The HTTP server of the console: how much it takes, where it listens, and its certificate."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from bettong.config.console import ConsoleSettings
from bettong.errors import SettingsError

# Beyond this all are told 503. Each takes some 20 KB; a page has up to 7, and loads with 6 at a time.
_CONNECTIONS_MAX = 1024
# A request comes at once, or in a few packets; who says nothing, or half of something, takes a place of others.
SILENT_S_MAX = 10.0
_HEADER_BYTES_MAX = 16_384
_GRACE_S = 3
_BACKLOG = 128


def server(application: ASGIApp, tls: ssl.SSLContext | None) -> uvicorn.Server:
    """A server that has not begun. It takes no signals: these are the process's own affair."""
    return _Server(
        uvicorn.Config(
            application,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            limit_concurrency=_CONNECTIONS_MAX,
            h11_max_incomplete_event_size=_HEADER_BYTES_MAX,
            timeout_graceful_shutdown=_GRACE_S,
            ssl_context_factory=(lambda _config, _default: tls) if tls is not None else None,
        )
    )


class SilentConnections:
    """Connections of a server on which no request has come yet, since when; for its event loop."""

    def __init__(self, http: uvicorn.Server) -> None:
        self._http = http
        self._since_s: dict[object, float] = {}

    def close_old(self, now_s: float) -> None:
        """Closes those that have been silent for SILENT_S_MAX. Call it every second or so."""
        # Of those that had a request uvicorn ends the idle ones by itself.
        connections = self._http.server_state.connections
        silent = [each for each in connections if isinstance(each, H11Protocol) and each.cycle is None]
        self._since_s = {each: self._since_s.get(each, now_s) for each in silent}
        for each in silent:
            if now_s - self._since_s[each] >= SILENT_S_MAX:
                each.transport.close()


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures none."""
        yield


def listening_socket(address: str, setting: str = "BETTONG_CONSOLE_LISTEN") -> socket.socket:
    """Listens at host:port, as a setting says. Raises SettingsError where it cannot."""
    host, _, port = address.rpartition(":")
    try:
        family = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family[0], socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(family[4])
        listening.listen(_BACKLOG)
    except OSError as error:
        raise SettingsError(
            f"{setting}: cannot listen on {address!r}: {error.strerror or error}; expected host:port, free"
            " on this machine"
        ) from None
    return listening


def tls_context(settings: ConsoleSettings) -> ssl.SSLContext | None:
    """None where there is no certificate. Raises SettingsError for files that cannot be used; it quotes none."""
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without a password OpenSSL would ask for one at the terminal.
        context.load_cert_chain(settings.tls_certificate, settings.tls_key, password="")
        if settings.tls_clients is not None:
            context.load_verify_locations(settings.tls_clients)
            context.verify_mode = ssl.CERT_REQUIRED
    except OSError as error:
        raise SettingsError(
            f"BETTONG_TLS_CERTIFICATE {settings.tls_certificate}, BETTONG_TLS_KEY {settings.tls_key},"
            f" BETTONG_TLS_CLIENTS {settings.tls_clients or '-'}: {error.strerror or error}; expected PEM files of a"
            " chain, of its key without a password, and of authorities"
        ) from None
    return context
