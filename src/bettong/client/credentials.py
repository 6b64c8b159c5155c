"""TLS and authentication of a client: how it verifies the service that it calls, and how it proves who it is."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import grpc

from bettong.config.client import ClientSettings
from bettong.config.endpoints import is_loopback
from bettong.config.reading import read_client
from bettong.errors import RefusedError, SettingsError

_OPTIONS = (
    # gRPC's back-off would start at 1 s and double up to 2 min, on top of ours: clients would reconnect long after a
    # service is back.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    # Despite its name, the time limit of one attempt to connect, by default 20 s, to a host that does not answer. With
    # a limit as short as the back-off, a service whose handshake takes 0.7 s would never be reached.
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)
_NO_PROXY = ("grpc.enable_http_proxy", 0)

# gRPC reports why a handshake failed only in the text of its status. The words are those of BoringSSL and gRPC.
_HANDSHAKES = {
    "certificate has expired": "its certificate has expired: renew it, or correct the clock of this machine",
    "certificate is not yet valid": "its certificate is not valid yet: compare the clocks of both machines",
    "CERTIFICATE_VERIFY_FAILED": "no authority of BETTONG_CLIENT_CA has signed its certificate: give"
    " the file of the authority that has",
    "Hostname Verification Check failed": "its certificate is for another host: call it by a name in the certificate",
    "WRONG_VERSION_NUMBER": "it speaks no TLS: leave out BETTONG_CLIENT_CA, or set BETTONG_TLS_CERTIFICATE there",
}
# A server that requires TLS, or a certificate of the client, closes the connection without a reason.
_HUNG_UP = ("Socket closed", "Connection reset by peer")


@dataclass(frozen=True, slots=True)
class Credentials:
    """How a client authenticates, and which authorities it trusts; by default neither, with calls in plain text.

    ca: PEM file of the authorities that may have signed the service's certificate; with it, calls use TLS.
    certificate, key: PEM files of the client's own certificate, where the service requires one.
    token, token_file: a bearer token that the service knows, or the file that holds it, which is read for each call.
    Both together raise SettingsError.
    """

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None

    def __post_init__(self) -> None:
        """See the class."""
        if self.token is not None and self.token_file is not None:
            raise SettingsError(
                f"Credentials has a token and a token_file ({self.token_file}); give one of them"
            )

    @classmethod
    def from_environment(cls) -> Self:
        """Those of BETTONG_CLIENT_*. Raises SettingsError that lists every fault."""
        found: ClientSettings = read_client()
        return cls(
            found.ca,
            found.certificate,
            found.key,
            found.token.get_secret_value() if found.token is not None else None,
            found.token_file,
        )

    def channel(self, target: str, options: Sequence[tuple[str, object]] = ()) -> grpc.Channel:
        """Opens a channel to host:port with the default options and `options`.

        It ignores the proxy of `http_proxy` where that could not lead there: to this machine itself.
        Raises RefusedError for files that cannot be used, and for a target that is no text.
        """
        _check_target(target)
        options = [*_OPTIONS, *options, *([_NO_PROXY] if is_loopback(target) else [])]
        if self.ca is None:
            return grpc.insecure_channel(target, options)
        found = grpc.ssl_channel_credentials(
            _read("BETTONG_CLIENT_CA", self.ca),
            _read("BETTONG_CLIENT_KEY", self.key) if self.key else None,
            _read("BETTONG_CLIENT_CERTIFICATE", self.certificate) if self.certificate else None,
        )
        return grpc.secure_channel(target, found, options)

    def metadata(self, target: str) -> tuple[tuple[str, str], ...]:
        """The headers of a call. Raises RefusedError for a token that cannot be read, or would go in plain text."""
        token = self.token
        if self.token_file is not None:
            token = _read("BETTONG_CLIENT_TOKEN_FILE", self.token_file).decode("ascii", "replace").strip()
        if token is None:
            return ()
        if not token.isascii() or not token.isprintable():
            raise RefusedError(
                "the token holds other characters than printable ASCII; correct BETTONG_CLIENT_TOKEN"
            )
        if self.ca is None and not is_loopback(target):
            raise RefusedError(
                f"a token would go to {target} in plain text; set BETTONG_CLIENT_CA, so that calls use TLS"
            )
        return (("authorization", f"Bearer {token}"),)

    def complaint(self, details: str) -> tuple[str, bool]:
        """Explains why a call reached no service, with cause and remedy; and says whether a retry is useless."""
        for words, meaning in _HANDSHAKES.items():
            if words in details:
                return meaning, True
        if not any(words in details for words in _HUNG_UP):
            return details, False
        if self.ca is None:
            return f"{details}; if it speaks TLS, set BETTONG_CLIENT_CA", False
        if self.certificate is None:
            return f"{details}; if it requires a certificate, set BETTONG_CLIENT_CERTIFICATE and _KEY", False
        return (
            f"{details}; does its BETTONG_TLS_CLIENTS hold the signer of BETTONG_CLIENT_CERTIFICATE?",
            False,
        )


def _check_target(target: object) -> None:
    if not isinstance(target, str) or not target:
        raise RefusedError(f"target {target!r}: expected host:port")


def _read(setting: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RefusedError(f"{setting}: cannot read {path}: {error.strerror}") from None
