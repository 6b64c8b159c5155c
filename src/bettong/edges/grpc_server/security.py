"""Builds the security of a server from its settings."""

from collections.abc import Callable, Mapping
from pathlib import Path

import grpc

from bettong import metrics
from bettong.config.access import Grants, parse
from bettong.config.service import ServingSettings
from bettong.config.setting_faults import listening_fault
from bettong.edges.grpc_server.certificates import ServerCertificate
from bettong.edges.grpc_server.guard import CallGuard, Permissions
from bettong.edges.grpc_server.pending import OTHER_CALLS_MAX
from bettong.edges.grpc_server.reading import REQUEST_BYTES_MAX, OneRequest, Reading
from bettong.edges.grpc_server.receiving import Receiving
from bettong.edges.grpc_server.reloaded import Reloaded
from bettong.edges.grpc_server.watching import watch
from bettong.errors import SettingsError
from bettong.logs import Logger

# Enough for some thousand tokens.
_TOKENS_BYTES_MAX = 1024 * 1024

# A session is then disconnected, and its client resends what was not acknowledged; short calls end before.
_AGE_GRACE_MS = 5_000


class ServerSecurity:
    """Certificates, tokens, maximum age of connections and bounds on partly received messages, of one server.

    Create the server with its interceptors and options, open its port by `listen`, and run `watch` in parallel.
    """

    def __init__(
        self,
        settings: ServingSettings,
        permissions: Permissions,
        receiving: Receiving,
        log: Logger,
        request_bytes_max: Mapping[str, int] | None = None,
    ) -> None:
        """Reads the files. Raises SettingsError that lists all their faults. `request_bytes_max`: see `Reading`."""
        self._receiving = receiving
        self._log = log
        reading, one_request = Reading(receiving, log, request_bytes_max or {}), OneRequest()
        # The first is the outermost.
        self.interceptors: tuple[grpc.aio.ServerInterceptor, ...] = (reading, one_request)
        self._probe_interceptors = self.interceptors
        self.options: tuple[tuple[str, int], ...] = ()
        if settings.connection_age_max_s:
            self.options = (
                ("grpc.max_connection_age_ms", settings.connection_age_max_s * 1000),
                ("grpc.max_connection_age_grace_ms", _AGE_GRACE_MS),
            )
        self._certificate: ServerCertificate | None = None
        self._health_listen = settings.health_listen
        self._probed: grpc.aio.Server | None = None
        faults = []
        if settings.tls_certificate is not None and settings.tls_key is not None:
            try:
                self._certificate = ServerCertificate(
                    settings.tls_certificate, settings.tls_key, settings.tls_clients, log
                )
            except SettingsError as error:
                faults.append(str(error))
        if (path := settings.tokens) is not None:
            try:
                guard = CallGuard(Reloaded([path], lambda: read_tokens(path), log), permissions, log)
                self.interceptors = (reading, guard, one_request)
            except SettingsError as error:
                faults.append(str(error))
        if faults:
            raise SettingsError("; ".join(faults))

    async def answer_probes(self, add_health: Callable[[grpc.aio.Server], None]) -> None:
        """Serves health checks at BETTONG_HEALTH_LISTEN, if it is set, until `close`. Raises SettingsError."""
        if self._health_listen is None:
            return
        server = grpc.aio.server(
            interceptors=self._probe_interceptors,
            options=[
                ("grpc.so_reuseport", 0),
                ("grpc.http2.bdp_probe", 0),
                ("grpc.max_receive_message_length", REQUEST_BYTES_MAX),
            ],
            maximum_concurrent_rpcs=OTHER_CALLS_MAX,
        )
        add_health(server)
        try:
            server.add_insecure_port(self._health_listen)
        except RuntimeError as error:
            text = listening_fault("BETTONG_HEALTH_LISTEN", self._health_listen, error)
            raise SettingsError(text) from None
        await server.start()
        self._probed = server

    async def watch(self) -> None:
        """Closes connections with too many bytes of partly received messages, until it is cancelled."""
        await watch(self._receiving, self._log)

    async def close(self) -> None:
        """Stops answering probes, if `answer_probes` has started to."""
        if self._probed is not None:
            await self._probed.stop(None)

    def listen(self, server: grpc.aio.Server, address: str) -> int:
        """Makes the server listen at host:port; returns the port. Raises RuntimeError, as gRPC does."""
        if self._certificate is None:
            return server.add_insecure_port(address)
        return server.add_secure_port(address, self._certificate.credentials())

    def metrics(self) -> dict[str, str | int | float]:
        """For the live record: when the certificate expires, if there is one. From any thread."""
        end_s = self._certificate.end_s() if self._certificate is not None else None
        return {} if end_s is None else {metrics.CERTIFICATE_END.name: end_s}


def read_tokens(path: Path) -> Grants:
    """Reads a token file. Raises SettingsError that names the file and every fault, and quotes no token."""
    try:
        content = path.read_bytes()
        if len(content) > _TOKENS_BYTES_MAX:
            raise ValueError(f"{len(content)} bytes, at most {_TOKENS_BYTES_MAX}")
        # A UnicodeDecodeError would quote bytes of the file.
        return parse(content.decode("utf-8", "replace"))
    except OSError as error:
        raise SettingsError(f"BETTONG_TOKENS: cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"BETTONG_TOKENS: {path}: {error}") from None
