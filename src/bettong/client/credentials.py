"""How a client knows the service that it calls, and shows who it is itself."""

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
    # gRPC would begin with a second and double it, up to two minutes, on top of our own waits: a service that is back
    # would wait for its clients, not they for it.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    # No wait, for all its name: how long an attempt may take, by default 20 s, where a host answers nothing. With less
    # than the longest wait here, who takes 0.7 s to shake hands would never be reached.
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)
_NO_PROXY = ("grpc.enable_http_proxy", 0)

# gRPC says why a handshake failed in its status's text alone. The words are BoringSSL's and gRPC's own.
_HANDSHAKES = {
    "certificate has expired": "its certificate has expired: renew it there, unless the clock here is wrong",
    "certificate is not yet valid": "its certificate is not valid yet: look at the clocks here and there",
    "CERTIFICATE_VERIFY_FAILED": "no authority of BETTONG_CLIENT_CA has signed its certificate: give the file of"
    " the one that has",
    "Hostname Verification Check failed": "its certificate is for another host: call it by a name that stands in it",
    "WRONG_VERSION_NUMBER": "it speaks no TLS: leave out BETTONG_CLIENT_CA, or set BETTONG_TLS_CERTIFICATE there",
}
# A server that wants TLS, or a certificate that it did not get, says nothing and hangs up.
_HUNG_UP = ("Socket closed", "Connection reset by peer")


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client shows and trusts; by default nothing, and calls go in plain text.

    ca: PEM file of the authorities that may have signed the service's certificate; with it, TLS is spoken.
    certificate, key: PEM files of the client's own, where the service wants one.
    token, token_file: a token that the service knows, or the file that holds it, which is read anew for each call.
    Both are a SettingsError.
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
        """A channel to host:port with the options that all have, and `options`.

        It leaves out the proxy of `http_proxy` where that could never lead: to this machine itself.
        Raises RefusedError for files that cannot be used.
        """
        options = [*_OPTIONS, *options, *([_NO_PROXY] if is_loopback(target) else [])]
        if self.ca is None:
            return grpc.insecure_channel(target, options)
        shown = grpc.ssl_channel_credentials(
            _read("BETTONG_CLIENT_CA", self.ca),
            _read("BETTONG_CLIENT_KEY", self.key) if self.key else None,
            _read("BETTONG_CLIENT_CERTIFICATE", self.certificate) if self.certificate else None,
        )
        return grpc.secure_channel(target, shown, options)

    def metadata(self, target: str) -> tuple[tuple[str, str], ...]:
        """What a call carries. Raises RefusedError for a token that cannot be read, or that anybody could read."""
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
                f"a token would go to {target} in plain text; set BETTONG_CLIENT_CA, so that TLS is spoken"
            )
        return (("authorization", f"Bearer {token}"),)

    def complaint(self, details: str) -> tuple[str, bool]:
        """The text of a call that found no service, with cause and remedy; whether it is no use to try again."""
        for words, meaning in _HANDSHAKES.items():
            if words in details:
                return meaning, True
        if not any(words in details for words in _HUNG_UP):
            return details, False
        if self.ca is None:
            return f"{details}; if it speaks TLS, set BETTONG_CLIENT_CA", False
        if self.certificate is None:
            return f"{details}; if it wants a certificate, set BETTONG_CLIENT_CERTIFICATE and _KEY", False
        return f"{details}; does BETTONG_TLS_CLIENTS there hold who signed BETTONG_CLIENT_CERTIFICATE?", False


def _read(setting: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RefusedError(f"{setting}: cannot read {path}: {error.strerror}") from None
