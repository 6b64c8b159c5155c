"""Settings of the console."""

from pathlib import Path
from typing import Annotated, Self

from annotated_types import Ge, Le
from pydantic import AfterValidator, Field, model_validator

from bettong.config.endpoints import is_loopback, listening
from bettong.config.service import ServiceSettings, instance_field
from bettong.config.setting_faults import tls_faults
from bettong.services import CONSOLE, CONSOLE_PORT


class ConsoleSettings(ServiceSettings):
    """The console's own settings. Certificates and tokens have the same names as for other services."""

    instance: str = instance_field(CONSOLE)
    console_listen: Annotated[str, AfterValidator(listening)] = Field(
        f"127.0.0.1:{CONSOLE_PORT}",
        description="Address of the console's page, host:port. Beyond loopback it needs `BETTONG_TOKENS`.",
    )
    console_dir: Path = Field(
        Path(".bettong"),
        description="Folder of a suite on this machine, which has the addresses of Kafka, Redis and snapshots; if none"
        " runs there, those of the settings are used.",
    )
    console_listeners_max: Annotated[int, Ge(1), Le(4096)] = Field(
        64, description="Open pages at a time that are kept up to date; the next one is told to retry later."
    )
    console_objective_p99_ms: Annotated[float, Ge(0.1), Le(86_400_000)] | None = Field(
        None,
        description="Objective for the p99 from client to delivery, in milliseconds; the page compares with it, and"
        " alerts when the p99 is above it for two minutes.",
    )
    console_allow_changes: bool = Field(
        default=False,
        description="Whether the page can make changes: send dead letters again, scale workers, reset states. It needs"
        " `BETTONG_TOKENS`; only tokens with `change = true` may use it.",
    )
    console_release: str | None = Field(
        None,
        description="Release of the chart whose workers the page scales, as `bettong k8s scale`: in the namespace of"
        " the console's pod, or of the kubeconfig. The chart sets it.",
    )
    console_sender: Annotated[str, AfterValidator(listening)] | None = Field(
        None,
        description="Sender to which the console sends dead letters again, host:port; by default that of the suite in"
        " `BETTONG_CONSOLE_DIR`. Its credentials are those of clients, `BETTONG_CLIENT_*`.",
    )
    health_listen: Annotated[str, AfterValidator(listening)] | None = Field(
        None,
        description="Address of HTTP without TLS and tokens, host:port, which only shows that the console is alive: for"
        " probes. By default none.",
    )
    tls_certificate: Path | None = Field(
        None,
        description="PEM file of the page's certificate and its chain; with it, only HTTPS is served.",
    )
    tls_key: Path | None = Field(None, description="PEM file of the certificate's key, without a password.")
    tls_clients: Path | None = Field(
        None, description="PEM file of authorities; with it, browsers must show a certificate of one of them."
    )
    tokens: Path | None = Field(
        None,
        description="TOML file of tokens and their permissions: docs/security.md. The page needs one with"
        " `console = true`. Read again when it changes.",
    )

    @model_validator(mode="after")
    def _agree(self) -> Self:
        faults = tls_faults(self.tls_certificate, self.tls_key, self.tls_clients)
        local = is_loopback(self.console_listen)
        if not local and self.tokens is None:
            faults.append(
                f"BETTONG_CONSOLE_LISTEN: at {self.console_listen} anybody could read states and messages; give"
                " BETTONG_TOKENS, or listen at 127.0.0.1"
            )
        if self.console_allow_changes and self.tokens is None:
            faults.append(
                "BETTONG_CONSOLE_ALLOW_CHANGES (--allow-changes) needs BETTONG_TOKENS: only tokens with `change = true`"
                " permit changes"
            )
        if not local and self.tokens is not None and self.tls_certificate is None:
            faults.append(
                f"BETTONG_TOKENS needs BETTONG_TLS_CERTIFICATE: at {self.console_listen} tokens would be sent in plain"
                " text"
            )
        if faults:
            raise ValueError("; ".join(faults))
        return self
