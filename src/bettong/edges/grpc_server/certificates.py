"""A server's certificate and key, and the authorities for its clients; new files apply from the next connection on."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

from bettong.edges.grpc_server.certificate_end import chain_end_s
from bettong.edges.grpc_server.reloaded import Reloaded
from bettong.errors import SettingsError
from bettong.logs import Logger


class ServerCertificate:
    """A server's certificate, from files that may change. With `clients`, clients need one of these authorities.

    Open connections are not affected by changes. Raises SettingsError that lists every fault of the files.
    """

    def __init__(self, certificate: Path, key: Path, clients: Path | None, log: Logger) -> None:
        paths = [certificate, key, *([clients] if clients else [])]
        self._files = Reloaded(paths, lambda: _read(certificate, key, clients), log)
        self._asks_clients = clients is not None

    def credentials(self) -> grpc.ServerCredentials:
        """Credentials that follow changes of the files."""
        # gRPC calls back before each handshake.
        return grpc.dynamic_ssl_server_credentials(
            self._files.current().configuration,
            lambda: self._files.current().configuration,
            require_client_authentication=self._asks_clients,
        )

    def end_s(self) -> float | None:
        """When the first certificate of the chain expires, Unix s; None if unknown. From any thread."""
        return self._files.current().end_s


@dataclass(frozen=True, slots=True)
class _Shown:
    configuration: grpc.ServerCertificateConfiguration
    end_s: float | None


def _read(certificate: Path, key: Path, clients: Path | None) -> _Shown:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    faults = []
    try:
        # Without a password argument OpenSSL would prompt for one at the terminal.
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:
        faults.append(
            f"BETTONG_TLS_CERTIFICATE {certificate} and BETTONG_TLS_KEY {key}: {_reason(error)};"
            " expected PEM files of a chain and of its key, without a password"
        )
    if clients is not None:
        try:
            context.load_verify_locations(clients)
        except OSError as error:
            faults.append(
                f"BETTONG_TLS_CLIENTS {clients}: {_reason(error)}; expected a PEM file of authorities"
            )
    if faults:
        raise SettingsError("; ".join(faults))
    try:
        chain = certificate.read_bytes()
        configuration = grpc.ssl_server_certificate_configuration(
            [(key.read_bytes(), chain)],
            root_certificates=clients.read_bytes() if clients is not None else None,
        )
    except OSError as error:
        raise SettingsError(f"BETTONG_TLS_*: {_reason(error)}") from None
    return _Shown(configuration, chain_end_s(chain))


def _reason(error: OSError) -> str:
    """OpenSSL's reason, or the system's; neither quotes the file."""
    if isinstance(error, ssl.SSLError):
        return (error.reason or "not to be read").replace("_", " ").lower()
    return error.strerror or "not to be read"
