"""Every setting of every service: environment variables `BETTONG_<NAME>`, read and checked once at start.

A setting stands here, or in `bettong.connection_settings`, and nowhere else; a test checks `docs/settings.md`.
"""

import hashlib
import os
import socket
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from annotated_types import Ge, Le
from pydantic import AfterValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from bettong.connection_settings import ConnectionSettings
from bettong.endpoints import is_loopback, listening, snapshots_url
from bettong.errors import SettingsError
from bettong.setting_faults import fault_text, misspelt

PREFIX = "BETTONG_"

_MEBIBYTE = 1024 * 1024


def _instance(service: str) -> Any:
    """The setting of a service's name: those of one host must differ, for each writes a record of its own."""
    return Field(
        default_factory=lambda: f"{service}-{socket.gethostname()}",
        examples=["<service>-<host>"],
        description="This process's name in logs and live metrics; no two may have the same.",
    )


class Schedule(StrEnum):
    """How Spark hands frames to steps; the results are the same."""

    MICRO_BATCH = "micro-batch"
    RESIDENT = "resident"


class LogFormat(StrEnum):
    """How log lines look."""

    TEXT = "text"
    JSON = "json"


class ServiceSettings(ConnectionSettings):
    """What every service needs."""

    application: str = Field(description="The application: path of a Python file, or path:name.")
    partitions: Annotated[int, Ge(1), Le(4096)] = Field(
        16, description="Partitions of every topic; fixed for the life of an application."
    )
    replication: Annotated[int, Ge(1), Le(9)] = Field(1, description="Copies Kafka keeps of each partition.")
    # Below 16 KiB a dead letter with the longest reason would not fit.
    frame_bytes_max: Annotated[int, Ge(16_384), Le(256 * _MEBIBYTE)] = Field(
        4 * _MEBIBYTE, description="Largest frame in bytes, from clients and between stages."
    )
    instance: str = _instance("service")
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
        "info", description="Least level of log lines that are written."
    )
    metrics_listen: Annotated[str, AfterValidator(listening)] | None = Field(
        None,
        description="Where live metrics are served to Prometheus, host:port, in plain text over HTTP: keep it from"
        " strangers. docs/metrics.md.",
    )
    live_interval_ms: Annotated[int, Ge(50), Le(60_000)] = Field(
        500, description="How often live metrics are written to Redis, in milliseconds."
    )


class ServingSettings(ServiceSettings):
    """What services need that serve gRPC."""

    tls_certificate: Path | None = Field(
        None,
        description="PEM file of this service's certificate and those that lead to its authority; with it, gRPC is"
        " served by TLS alone. Read again when it changes.",
    )
    tls_key: Path | None = Field(None, description="PEM file of the certificate's key, without a password.")
    tls_clients: Path | None = Field(
        None,
        description="PEM file of authorities; with it, clients must show a certificate of one of them.",
    )
    tokens: Path | None = Field(
        None,
        description="TOML file of tokens and what each may: docs/security.md. With it, calls without one are refused."
        " Read again when it changes.",
    )
    connection_age_max_s: Annotated[int, Ge(0), Le(86_400)] = Field(
        0,
        description="How old a client's connection may grow, in seconds, before the client must connect anew, perhaps"
        " to a service that came later; 0: for ever. A call that goes on is cut 5 s after that, and clients resume it.",
    )
    drain_ms: Annotated[int, Ge(0), Le(3_600_000)] = Field(
        0,
        description="How long a service that was told to stop goes on, in milliseconds, after its health says so: time"
        " for clients and balancers to look elsewhere.",
    )
    health_listen: Annotated[str, AfterValidator(listening)] | None = Field(
        None,
        description="Where gRPC's health service, and nothing else, is served without TLS, host:port: for probes that"
        " speak none, as Kubernetes' do.",
    )

    @property
    def listen(self) -> str:
        """Where gRPC is served, host:port."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _agree(self) -> Self:
        faults = []
        if (self.tls_certificate is None) is not (self.tls_key is None):
            faults.append("BETTONG_TLS_CERTIFICATE and BETTONG_TLS_KEY: give both, or none")
        if self.tls_clients is not None and self.tls_certificate is None:
            faults.append("BETTONG_TLS_CLIENTS needs BETTONG_TLS_CERTIFICATE and BETTONG_TLS_KEY")
        if self.tokens is not None and self.tls_certificate is None and not is_loopback(self.listen):
            faults.append(
                f"BETTONG_TOKENS needs BETTONG_TLS_CERTIFICATE: at {self.listen} tokens would come in plain text"
            )
        if faults:
            raise ValueError("; ".join(faults))
        return self


class SenderSettings(ServingSettings):
    """What a sender needs on top."""

    instance: str = _instance("sender")
    sender_listen: Annotated[str, AfterValidator(listening)] = Field(
        "127.0.0.1:7100", description="Where the sender serves gRPC, host:port."
    )
    sender_credits: Annotated[int, Ge(1), Le(4096)] = Field(
        32, description="Frames that one session may have under way without a receipt."
    )
    sender_sessions_max: Annotated[int, Ge(1), Le(65_536)] = Field(
        1024, description="Sessions of clients at a time; the next is refused with RESOURCE_EXHAUSTED."
    )
    sender_sessions_per_client_max: Annotated[int, Ge(1), Le(65_536)] = Field(
        128,
        description="Sessions of one client at a time: of a token, else of a certificate's name, else of an address"
        " (all of loopback are one); the next is refused with RESOURCE_EXHAUSTED.",
    )
    sender_buffer_bytes_max: Annotated[int, Ge(_MEBIBYTE), Le(64 * 1024 * _MEBIBYTE)] = Field(
        256 * _MEBIBYTE,
        description="Bytes of all sessions under way to Kafka; beyond it no credits are granted.",
    )
    sender_receive_bytes_max: Annotated[int, Ge(_MEBIBYTE), Le(64 * 1024 * _MEBIBYTE)] = Field(
        128 * _MEBIBYTE,
        description="Bytes held of frames that have come in part. Beyond it the connections are closed that have sent"
        " most of them; on Linux alone. Sessions times the largest frame cannot reach it: 25 by default.",
    )
    frame_messages_max: Annotated[int, Ge(1), Le(16 * _MEBIBYTE)] = Field(
        65_536,
        description="Most messages of one frame from a client: time and memory go by the message, and others wait.",
    )
    sender_lease_ms: Annotated[int, Ge(500), Le(600_000)] = Field(
        5_000,
        description="How long a stream stays its client's after its sender died, and how long sessions go on"
        " without Redis, in milliseconds.",
    )
    # Below 10 ms the TICKs of a source in many partitions would be more records than its frames are.
    tick_ms: Annotated[int, Ge(10), Le(60_000)] = Field(
        200,
        description="How long a partition may get no frame of a client whose event time moves on, in milliseconds,"
        " before a record tells it how far that has come; only where a stage goes by event time. docs/sources.md.",
    )
    sender_marks: Path = Field(
        # Private to this user, or refused: see `bettong_sender.marks`.
        default_factory=lambda: Path(f"/tmp/bettong-sender-{os.getuid()}"),  # noqa: S108
        examples=["/tmp/bettong-sender-<uid>"],  # noqa: S108
        description="Folder of this sender's own in which it marks what it is reading, so that a frame that kills it"
        " is found out after its next start.",
    )
    sender_topics: str = Field(
        "all",
        description="Sources whose external Kafka topics this sender reads: all, none, or names with commas."
        " Exactly one sender may read a source.",
    )

    @property
    def listen(self) -> str:
        """See ServingSettings."""
        return self.sender_listen


class ProcessorSettings(ServiceSettings):
    """What a processor needs on top."""

    instance: str = _instance("processor")
    schedule: Schedule = Field(
        Schedule.MICRO_BATCH,
        description="How Spark hands frames to steps: micro-batch, or resident for low latency.",
    )
    spark_master: str = Field(
        "local[*,4]", description="Spark's master URL. On one machine: cores, and how often a task is tried."
    )
    spark_ui: bool | None = Field(
        None, description="Whether Spark serves its web page, to anybody; by default on clusters alone."
    )
    checkpoint: str = Field(
        "checkpoint",
        description="Where Spark keeps its offset log, in a folder named by the application: a directory or a URL"
        " that Spark can write.",
    )
    jars: Path | None = Field(
        None, description="Folder of the Kafka connector's jars; by default the one of this environment."
    )
    state_dir: Path = Field(
        Path("/dev/shm/bettong"),  # noqa: S108 - shared memory is the point: all workers of a machine map it
        description="Folder in shared memory where the newest state of each partition lies between batches.",
    )
    snapshots: Annotated[str, AfterValidator(snapshots_url)] = Field(
        "redis",
        description="Where snapshots are kept: redis, file:///folder, or a URL that fsspec knows, s3://bucket/folder."
        " All workers must reach it.",
    )
    snapshot_interval_ms: Annotated[int, Ge(0), Le(3_600_000)] = Field(
        1000, description="Least time between two snapshots of a partition, in milliseconds; 0: every batch."
    )
    message_ms_max: Annotated[int, Ge(0), Le(3_600_000)] = Field(
        0,
        description="How long the processing of one message may take, in milliseconds, before its worker is ended and"
        " the message treated as one that cannot be processed; 0: for ever. docs/operations.md.",
    )
    state_key_file: Path | None = Field(
        None, description="File of 32 random bytes that nobody else can read; signs states of bettong.Pickle."
    )
    batch_frames_max: Annotated[int, Ge(1), Le(1_000_000)] = Field(
        4096, description="Most frames that one micro-batch takes, over all partitions."
    )

    gap_alarm_s: Annotated[float, Ge(1), Le(86_400)] = Field(
        30.0,
        description="How long a frame may be skipped because one before it is missing, in seconds, before"
        " `bettong status` and the metrics tell: a client resends within moments.",
    )
    exclusive_cpus: Annotated[int, Ge(0), Le(4096)] = Field(
        0,
        description="How many CPUs a worker was promised for itself; it checks that at its start and says what it"
        " found. 0: none.",
    )

    def checkpoint_of(self, application: str) -> str:
        """Where the offset log of an application lies."""
        return f"{self.checkpoint.rstrip('/')}/{application}"

    def state_folder(self, application: str) -> Path:
        """Where the newest states of this deployment of an application lie; those of others lie elsewhere."""
        deployment = hashlib.blake2b(f"{self.kafka}\0{self.checkpoint}".encode(), digest_size=6).hexdigest()
        return self.state_dir / f"{application}-{deployment}"


class ReceiverSettings(ServingSettings):
    """What a receiver needs on top."""

    instance: str = _instance("receiver")
    receiver_listen: Annotated[str, AfterValidator(listening)] = Field(
        "127.0.0.1:7200", description="Where the receiver serves gRPC, host:port."
    )
    receiver_dir: Path | None = Field(
        None, description="Folder of the file sink, one file a partition; without it no files are written."
    )
    receiver_redis_results_max: Annotated[int, Ge(0), Le(100_000_000)] = Field(
        10_000, description="Newest results of each sink kept in Redis; 0 keeps none."
    )
    receiver_subscribers_max: Annotated[int, Ge(1), Le(4096)] = Field(
        64, description="Subscribers at a time; the next is refused with RESOURCE_EXHAUSTED."
    )
    receiver_subscriber_bytes_max: Annotated[int, Ge(65_536), Le(256 * _MEBIBYTE)] = Field(
        _MEBIBYTE,
        description="Bytes read ahead for one subscriber, one frame at least; it takes three times that of memory.",
    )
    receiver_subscribers_bytes_max: Annotated[int, Ge(_MEBIBYTE), Le(64 * 1024 * _MEBIBYTE)] = Field(
        256 * _MEBIBYTE,
        description="Bytes held for all subscribers; beyond it those that have not read for longest are ended, "
        "and where all read, the next is refused.",
    )
    receiver_stall_ms: Annotated[int, Ge(100), Le(3_600_000)] = Field(
        30_000,
        description="How long a subscriber may leave one response unread, in milliseconds, before it is ended with"
        " ABORTED; after the same time again its connection is closed.",
    )

    @property
    def listen(self) -> str:
        """See ServingSettings."""
        return self.receiver_listen


class ClientSettings(BaseSettings):
    """What a client shows and trusts: `bettong send`, `bettong tail`, and programs that say nothing else."""

    model_config = SettingsConfigDict(
        env_prefix=f"{PREFIX}CLIENT_", env_ignore_empty=True, frozen=True, extra="ignore"
    )

    ca: Path | None = Field(
        default=None,
        description="PEM file of the authorities that may have signed certificates of senders and receivers; with it,"
        " clients speak TLS.",
    )
    certificate: Path | None = Field(
        default=None, description="PEM file of the client's own certificate, where services want one."
    )
    key: Path | None = Field(
        default=None, description="PEM file of that certificate's key, without a password."
    )
    token: SecretStr | None = Field(default=None, description="The client's token.")
    token_file: Path | None = Field(
        default=None, description="File that holds the client's token instead; read anew for each call."
    )

    @model_validator(mode="after")
    def _agree(self) -> Self:
        faults = []
        if (self.certificate is None) is not (self.key is None):
            faults.append("BETTONG_CLIENT_CERTIFICATE and BETTONG_CLIENT_KEY: give both, or none")
        if self.certificate is not None and self.ca is None:
            faults.append(
                "BETTONG_CLIENT_CERTIFICATE needs BETTONG_CLIENT_CA, without which no TLS is spoken"
            )
        if self.token is not None and self.token_file is not None:
            faults.append("BETTONG_CLIENT_TOKEN and BETTONG_CLIENT_TOKEN_FILE: give one of them")
        if faults:
            raise ValueError("; ".join(faults))
        return self


_Settings = TypeVar("_Settings", bound=ConnectionSettings)


def read(kind: type[_Settings], overrides: Mapping[str, Any] | None = None) -> _Settings:
    """The settings of a service (or how Kafka and Redis are reached) from the environment, `overrides` (flags) first.

    Raises SettingsError that lists every fault at once.
    """
    faults = misspelt(os.environ, PREFIX, _names())
    try:
        found = kind(
            **{key: value for key, value in (overrides or {}).items() if value is not None and value != ""}
        )
    except ValidationError as error:
        faults += [fault_text(each, PREFIX) for each in error.errors()]
    else:
        if not faults:
            return found
    raise SettingsError(f"{len(faults)} setting(s) wrong: {'; '.join(faults)}")


def read_client() -> ClientSettings:
    """A client's settings from the environment. Raises SettingsError that lists every fault at once."""
    try:
        return ClientSettings()
    except ValidationError as error:
        faults = [fault_text(each, f"{PREFIX}CLIENT_") for each in error.errors()]
    raise SettingsError(f"{len(faults)} setting(s) wrong: {'; '.join(faults)}")


def _names() -> set[str]:
    """Of all settings of all services, and of clients."""
    kinds: list[type[ServiceSettings]] = [ServiceSettings]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
    names = {name.upper() for kind in kinds for name in kind.model_fields}
    return names | {f"CLIENT_{name.upper()}" for name in ClientSettings.model_fields}
