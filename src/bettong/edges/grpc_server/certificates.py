"""A server's certificate, its key, and whose clients it takes; new files count from the next connection on."""

import ssl
from pathlib import Path

import grpc

from bettong.edges.grpc_server.reloaded import Reloaded
from bettong.errors import SettingsError
from bettong.logs import Logger


def server_credentials(
    certificate: Path, key: Path, clients: Path | None, log: Logger
) -> grpc.ServerCredentials:
    """Credentials that follow their files. With `clients`, who shows no certificate of these authorities is refused.

    Connections that are open stay as they are. Raises SettingsError that lists every fault of the files.
    """
    paths = [certificate, key, *([clients] if clients else [])]
    files = Reloaded(paths, lambda: _read(certificate, key, clients), log)
    # gRPC asks for the newest before each handshake.
    return grpc.dynamic_ssl_server_credentials(
        files.current(), files.current, require_client_authentication=clients is not None
    )


def _read(certificate: Path, key: Path, clients: Path | None) -> grpc.ServerCertificateConfiguration:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    faults = []
    try:
        # Without a password OpenSSL would ask for one at the terminal.
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
        return grpc.ssl_server_certificate_configuration(
            [(key.read_bytes(), certificate.read_bytes())],
            root_certificates=clients.read_bytes() if clients is not None else None,
        )
    except OSError as error:
        raise SettingsError(f"BETTONG_TLS_*: {_reason(error)}") from None


def _reason(error: OSError) -> str:
    """OpenSSL's word, or the system's; neither quotes the file."""
    if isinstance(error, ssl.SSLError):
        return (error.reason or "not to be read").replace("_", " ").lower()
    return error.strerror or "not to be read"
