"""Settings of the console."""

from pathlib import Path
from typing import Annotated, Self

from annotated_types import Ge, Le
from pydantic import AfterValidator, Field, model_validator

from bettong.config.endpoints import is_loopback, listening
from bettong.config.service import ServiceSettings, instance_field
from bettong.services import CONSOLE, CONSOLE_PORT


class ConsoleSettings(ServiceSettings):
    """What the console needs on top. Certificates and tokens have the names that they have for other services."""

    instance: str = instance_field(CONSOLE)
    console_listen: Annotated[str, AfterValidator(listening)] = Field(
        f"127.0.0.1:{CONSOLE_PORT}",
        description="Where the console serves its page, host:port. Beyond loopback it needs `BETTONG_TOKENS`.",
    )
    console_dir: Path = Field(
        Path(".bettong"),
        description="Folder of a suite on this machine, which says where Kafka, Redis and snapshots are; where none"
        " runs there, the settings do.",
    )
    console_listeners_max: Annotated[int, Ge(1), Le(4096)] = Field(
        64, description="Open pages at a time that are kept up to date; the next one is told to come later."
    )
    console_objective_p99_ms: Annotated[float, Ge(0.1), Le(86_400_000)] | None = Field(
        None,
        description="What the p99 from client to delivery is to be, in milliseconds; the page compares with it,"
        " and above it for two minutes needs a person.",
    )
    console_allow_changes: bool = Field(
        default=False,
        description="Whether the page can change anything: send dead letters again, scale workers, reset states. It"
        " needs `BETTONG_TOKENS`, and is for those with `change = true`.",
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
        description="Where the console answers HTTP without TLS and tokens, host:port, and says no more than that it"
        " lives: for probes. By default nowhere.",
    )
    tls_certificate: Path | None = Field(
        None,
        description="PEM file of the page's certificate and those that lead to its authority; then HTTPS alone.",
    )
    tls_key: Path | None = Field(None, description="PEM file of the certificate's key, without a password.")
    tls_clients: Path | None = Field(
        None, description="PEM file of authorities; with it, browsers must show a certificate of one of them."
    )
    tokens: Path | None = Field(
        None,
        description="TOML file of tokens and what each may: docs/security.md. The page is for those with"
        " `console = true`. Read again when it changes.",
    )

    @model_validator(mode="after")
    def _agree(self) -> Self:
        faults, local = [], is_loopback(self.console_listen)
        if (self.tls_certificate is None) is not (self.tls_key is None):
            faults.append("BETTONG_TLS_CERTIFICATE and BETTONG_TLS_KEY: give both, or none")
        if self.tls_clients is not None and self.tls_certificate is None:
            faults.append("BETTONG_TLS_CLIENTS needs BETTONG_TLS_CERTIFICATE and BETTONG_TLS_KEY")
        if not local and self.tokens is None:
            faults.append(
                f"BETTONG_CONSOLE_LISTEN: at {self.console_listen} strangers would read states and messages; give"
                " BETTONG_TOKENS, or listen at 127.0.0.1"
            )
        if self.console_allow_changes and self.tokens is None:
            faults.append(
                "BETTONG_CONSOLE_ALLOW_CHANGES (--allow-changes) needs BETTONG_TOKENS: only those with `change = true`"
                " may change something"
            )
        if not local and self.tokens is not None and self.tls_certificate is None:
            faults.append(
                f"BETTONG_TOKENS needs BETTONG_TLS_CERTIFICATE: at {self.console_listen} tokens would come in plain"
                " text"
            )
        if faults:
            raise ValueError("; ".join(faults))
        return self
