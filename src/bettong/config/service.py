"""Settings of every service, and those of services that serve gRPC."""

import socket
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

from annotated_types import Ge, Le
from pydantic import AfterValidator, Field, model_validator

from bettong.config.connection_settings import ConnectionSettings
from bettong.config.endpoints import collector, is_loopback, listening
from bettong.config.setting_faults import tls_faults

PREFIX = "BETTONG_"

MEBIBYTE = 1024 * 1024
LIVE_INTERVAL_MS = 500


def instance_field(service: str) -> Any:
    """The setting of an instance's name: names must differ, because each instance writes its own record."""
    return Field(
        default_factory=lambda: f"{service}-{socket.gethostname()}",
        examples=["<service>-<host>"],
        description="This process's name in logs and live metrics; no two may have the same.",
    )


class LogFormat(StrEnum):
    """The format of log lines."""

    TEXT = "text"
    JSON = "json"


class ServiceSettings(ConnectionSettings):
    """Settings of every service."""

    application: str = Field(description="The application: path of a Python file, or path:name.")
    partitions: Annotated[int, Ge(1), Le(4096)] = Field(
        16,
        description="Partitions of every topic; with kept data, only `bettong repartition` changes them.",
    )
    replication: Annotated[int, Ge(1), Le(9)] = Field(1, description="Copies Kafka keeps of each partition.")
    # Below 16 KiB a dead letter with the longest reason would not fit.
    frame_bytes_max: Annotated[int, Ge(16_384), Le(256 * MEBIBYTE)] = Field(
        4 * MEBIBYTE, description="Largest frame in bytes, from clients and between stages."
    )
    instance: str = instance_field("service")
    connections: Path | None = Field(
        None,
        description="JSON file of the external systems that sinks and sources name: addresses and passwords.",
    )
    compiled: bool = Field(
        default=True, description="Run @bettong.compiled functions compiled; off runs them as plain Python."
    )
    kernel_cache: Path = Field(
        Path("~/.cache/bettong/kernels"), description="Folder where compiled functions are kept between runs."
    )
    log_format: LogFormat = Field(LogFormat.TEXT, description="Log lines as text or as JSON.")
    log_level: Annotated[str, Field(pattern="^(debug|info|warning|error)$")] = Field(
        "info", description="Lowest level of log lines that are written."
    )
    metrics_listen: Annotated[str, AfterValidator(listening)] | None = Field(
        None,
        description="Address of live metrics for Prometheus, host:port, over HTTP without authentication: do not expose"
        " it. docs/metrics.md.",
    )
    gc_log: Path | None = Field(
        None,
        description="Folder into which each service and Python worker writes how long its garbage collections took,"
        " those of 0.1 ms and more; by default none.",
    )
    measures: bool = Field(
        default=True,
        description="Measure where the time goes: latency's parts, computations, hot keys, traces; off measures none of"
        " these. docs/traces.md.",
    )
    trace_endpoint: Annotated[str, AfterValidator(collector)] | None = Field(
        None,
        description="Collector of OpenTelemetry that gets traces of sampled frames, OTLP over gRPC: http://host:port,"
        " https:// for TLS; without it there are none. docs/traces.md.",
    )
    trace_ratio: Annotated[float, Ge(0), Le(1)] = Field(
        0.01,
        description="Share of clients' frames that is traced, 0 to 1; a sender's ratio counts for all services.",
    )
    live_interval_ms: Annotated[int, Ge(50), Le(60_000)] = Field(
        LIVE_INTERVAL_MS, description="How often live metrics are written to Redis, in milliseconds."
    )


class ServingSettings(ServiceSettings):
    """Settings of services that serve gRPC."""

    tls_certificate: Path | None = Field(
        None,
        description="PEM file of this service's certificate and its chain; with it, gRPC is served only over TLS. Read"
        " again when it changes.",
    )
    tls_key: Path | None = Field(None, description="PEM file of the certificate's key, without a password.")
    tls_clients: Path | None = Field(
        None,
        description="PEM file of authorities; with it, clients must show a certificate of one of them.",
    )
    tokens: Path | None = Field(
        None,
        description="TOML file of tokens and their permissions: docs/security.md. With it, calls without a token are"
        " refused. Read again when it changes.",
    )
    connection_age_max_s: Annotated[int, Ge(0), Le(86_400)] = Field(
        0,
        description="Greatest age of a client's connection, in seconds, before the client must reconnect, perhaps to a"
        " newer instance; 0: no limit. A call that still runs is cut 5 s after that, and clients resume it.",
    )
    drain_ms: Annotated[int, Ge(0), Le(3_600_000)] = Field(
        0,
        description="How long a service that was told to stop keeps running, in milliseconds, after its health reports"
        " it: time for clients and load balancers to switch.",
    )
    health_listen: Annotated[str, AfterValidator(listening)] | None = Field(
        None,
        description="Address of gRPC's health service alone, without TLS, host:port: for probes that do not support"
        " TLS, such as those of Kubernetes.",
    )

    @property
    def listen(self) -> str:
        """The address of the gRPC server, host:port."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _agree(self) -> Self:
        faults = tls_faults(self.tls_certificate, self.tls_key, self.tls_clients)
        if self.tokens is not None and self.tls_certificate is None and not is_loopback(self.listen):
            faults.append(
                f"BETTONG_TOKENS needs BETTONG_TLS_CERTIFICATE: at {self.listen} tokens would be sent in plain text"
            )
        if faults:
            raise ValueError("; ".join(faults))
        return self
