"""The record `suite.json` of a running suite, by which other commands find it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bettong.config.connection_settings import KafkaConnection, KafkaMechanism, KafkaSecurity, RedisConnection
from bettong.errors import LocalError
from bettong.local.processes import start_mark
from bettong.services import RECEIVER, SENDER

FILE = "suite.json"
_UNFINISHED = "suite.new"
FILES = (FILE, _UNFINISHED)
_START_S_SAME = 1.0  # two readings of one process's start time differ by less


class ProcessRecord(BaseModel):
    """A process, identified by its id and its start, since ids are reused."""

    model_config = ConfigDict(frozen=True)

    pid: int
    started_s: float = Field(description="Unix seconds. They move when the machine's clock is set.")
    start_mark: str = Field(
        default="", description="See `processes.start_mark`; without one the time counts."
    )

    def runs(self) -> bool:
        """Whether this very process is alive."""
        try:
            process = psutil.Process(self.pid)
            if self.start_mark:
                same = start_mark(self.pid) == self.start_mark
            else:
                same = abs(process.create_time() - self.started_s) < _START_S_SAME
            return same and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    @classmethod
    def own(cls) -> ProcessRecord:
        """This process."""
        pid = os.getpid()
        return cls(pid=pid, started_s=psutil.Process(pid).create_time(), start_mark=start_mark(pid))


class ServiceRecord(ProcessRecord):
    """One of the suite's processes."""

    log: Path
    restarts: int = 0
    fault: str = Field(default="", description="How it ended the last time, and its last line.")
    final_status: int | None = Field(default=None, description="Exit code of one that nobody starts again.")


class SuiteRecord(BaseModel):
    """A suite: addresses, folders and processes."""

    model_config = ConfigDict(frozen=True)

    application: str
    name: str = Field(description="The application's own name.")
    schedule: str
    partitions: int
    compiled: bool
    directory: Path
    results: Path | None
    kafka: str
    kafka_user: str = ""
    kafka_password_file: Path | None = None
    redis: str
    redis_password_file: Path | None = None
    state_key_file: Path | None = None
    snapshots: str
    addresses: dict[str, str] = Field(description="Where each service serves gRPC that does, by instance.")
    console: str | None = Field(default=None, description="The address of the console's page.")
    metrics: dict[str, str] = Field(
        default_factory=dict, description="Where each process serves its metrics to Prometheus, by instance."
    )
    ready: bool
    owner: ProcessRecord
    services: dict[str, ServiceRecord]

    @property
    def sender(self) -> str:
        """The address to which clients send."""
        return self.addresses[SENDER.name]

    @property
    def senders(self) -> tuple[str, ...]:
        """The addresses of all senders, the first one's first."""
        return tuple(each for name, each in self.addresses.items() if name.startswith(SENDER.name))

    @property
    def metrics_lines(self) -> list[str]:
        """A line with each process's metrics URL; empty where metrics are not served."""
        return [f"metrics       http://{address}/metrics ({name})" for name, address in self.metrics.items()]

    @property
    def receiver(self) -> str:
        """The address to which subscribers connect."""
        return self.addresses[RECEIVER.name]

    @property
    def kafka_connection(self) -> KafkaConnection:
        """How to connect to its Kafka."""
        if self.kafka_password_file is None:
            return KafkaConnection(self.kafka)
        return KafkaConnection(
            self.kafka,
            KafkaSecurity.SASL_PLAINTEXT,
            mechanism=KafkaMechanism.PLAIN,
            user=self.kafka_user,
            password_file=self.kafka_password_file,
        )

    @property
    def redis_connection(self) -> RedisConnection:
        """How to connect to its Redis."""
        return RedisConnection(self.redis, password_file=self.redis_password_file)

    def write(self, directory: Path) -> None:
        """Replaces the file in a folder atomically: a reader sees the old one or the new one."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / FILE
        unfinished = directory / _UNFINISHED
        unfinished.write_text(self.model_dump_json(indent=2) + "\n")
        unfinished.replace(path)


def find(directory: Path) -> SuiteRecord | None:
    """The suite that runs in a folder; None when none does. Raises LocalError for a damaged record."""
    path = directory / FILE
    try:
        record = SuiteRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LocalError(
            f"{path} cannot be read: {error.strerror}; give the folder of a suite, as `bettong up` made it"
        ) from None
    except ValidationError as error:
        raise LocalError(f"{path} is damaged ({error.error_count()} faults): remove it") from None
    return record if record.owner.runs() else None


def address_of(service: str, directory: Path) -> str:
    """The address of a service of the suite in a folder. Raises LocalError when no suite runs there."""
    record = find(directory)
    if record is None:
        raise LocalError(
            f"nothing runs in {directory}: start it with `bettong up APP.py`,"
            f" or give the address of a {service} elsewhere"
        )
    return record.addresses[service]


def forget(directory: Path) -> None:
    """Removes the record of this process's suite, and its folder if it is empty then.

    Does nothing when there is no record, or when it is another suite's: two that start at once in one folder both write
    theirs, the second over the first.
    """
    path = directory / FILE
    with contextlib.suppress(OSError, ValidationError):
        if SuiteRecord.model_validate_json(path.read_bytes()).owner.pid == os.getpid():
            path.unlink()
            directory.rmdir()
