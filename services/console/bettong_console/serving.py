"""The HTTP server of the console: its limits, its address, and its certificate."""

from __future__ import annotations

import contextlib
import resource
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from bettong.config.console import ConsoleSettings
from bettong.config.setting_faults import listening_fault
from bettong.edges.grpc_server.reloaded import Reloaded
from bettong.errors import SettingsError
from bettong.logs import Logger

# Beyond this all get 503. Each takes some 20 KB; a page has up to 7, and loads with 6 at a time.
_CONNECTIONS_MAX = 1024
_CONNECTIONS_MIN = 16
# Descriptors for Redis, Kafka, files, questions, and for connections that just get 503.
_DESCRIPTORS_LEFT = 200
# A request arrives at once, or in a few packets; a silent or half-sent one takes a connection from others.
SILENT_S_MAX = 10.0
# Even a slow client reads an answer within this; one that does not read takes a connection from others.
UNREAD_S_MAX = 60.0
_HEADER_BYTES_MAX = 16_384
_GRACE_S = 3
_BACKLOG = 128


def server(application: ASGIApp, tls: ssl.SSLContext | None) -> uvicorn.Server:
    """A server that has not started. It handles no signals: the process does."""
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
            limit_concurrency=connections_max(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
            h11_max_incomplete_event_size=_HEADER_BYTES_MAX,
            timeout_graceful_shutdown=_GRACE_S,
            ssl_context_factory=(lambda _config, _default: tls) if tls is not None else None,
        )
    )


def connections_max(descriptors: int) -> int:
    """The limit of connections for a process that may open so many files; negative: no limit on files."""
    if descriptors < 0:
        return _CONNECTIONS_MAX
    return max(_CONNECTIONS_MIN, min(_CONNECTIONS_MAX, descriptors - _DESCRIPTORS_LEFT))


class SilentConnections:
    """Connections of a server without a request under way, or with unread answers, and since when.

    For the server's event loop.
    """

    def __init__(self, http: uvicorn.Server) -> None:
        self._http = http
        # By connection and its last request.
        self._silent_since_s: dict[tuple[H11Protocol, object], float] = {}
        self._unread_since_s: dict[H11Protocol, float] = {}

    def close_old(self, now_s: float) -> None:
        """Closes connections that are silent for SILENT_S_MAX, or do not read for UNREAD_S_MAX.

        Call it every second or so.
        """
        connections = [each for each in self._http.server_state.connections if isinstance(each, H11Protocol)]
        # uvicorn itself ends connections that are silent after an answer, but not those with a half-sent request.
        silent = [
            (each, each.cycle) for each in connections if each.cycle is None or each.cycle.response_complete
        ]
        unread = [each for each in connections if each.transport.get_write_buffer_size() > 0]
        self._silent_since_s = {each: self._silent_since_s.get(each, now_s) for each in silent}
        self._unread_since_s = {each: self._unread_since_s.get(each, now_s) for each in unread}
        for (each, _), since_s in self._silent_since_s.items():
            if now_s - since_s >= SILENT_S_MAX:
                each.transport.close()
        for each, since_s in self._unread_since_s.items():
            if now_s - since_s >= UNREAD_S_MAX:
                each.transport.abort()  # closing would wait for the reader


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures no signals."""
        yield


def listening_socket(address: str, setting: str = "BETTONG_CONSOLE_LISTEN") -> socket.socket:
    """A socket that listens at host:port, the value of a setting. Raises SettingsError where it cannot."""
    host, _, port = address.rpartition(":")
    try:
        family = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family[0], socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(family[4])
        listening.listen(_BACKLOG)
    except OSError as error:
        raise SettingsError(listening_fault(setting, address, error)) from None
    return listening


def tls_context(settings: ConsoleSettings, log: Logger) -> ssl.SSLContext | None:
    """The TLS context, which follows changes of its files for new connections; None without a certificate.

    Raises SettingsError for files that cannot be used, without their content.
    """
    certificate, key, clients = settings.tls_certificate, settings.tls_key, settings.tls_clients
    if certificate is None or key is None:
        return None
    paths = [certificate, key, *([clients] if clients else [])]
    files = Reloaded(paths, lambda: _read_context(certificate, key, clients), log)

    def turn_to_newest(connection: ssl.SSLObject, _name: str | None, _first: ssl.SSLContext) -> None:
        connection.context = files.current()

    # OpenSSL calls it in each handshake, whether the client names a server or not.
    context = _read_context(certificate, key, clients)
    context.sni_callback = turn_to_newest
    return context


def _read_context(certificate: Path, key: Path, clients: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without a password OpenSSL would ask for one at the terminal.
        context.load_cert_chain(certificate, key, password="")
        if clients is not None:
            context.load_verify_locations(clients)
            context.verify_mode = ssl.CERT_REQUIRED
    except OSError as error:
        raise SettingsError(
            f"BETTONG_TLS_CERTIFICATE {certificate}, BETTONG_TLS_KEY {key},"
            f" BETTONG_TLS_CLIENTS {clients or '-'}: {error.strerror or error}; expected PEM files of a"
            " chain, of its key without a password, and of authorities"
        ) from None
    return context
