"""Where the parts of an application are: flags first, then the suite on this machine, then the environment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bettong.config.connection_settings import KafkaConnection, RedisConnection
from bettong.config.processor import ProcessorSettings
from bettong.config.reading import read
from bettong.config.service import PREFIX
from bettong.edges.state_key import state_key
from bettong.errors import LocalError
from bettong.inspection.locations import Locations
from bettong.local.record import find


@dataclass(frozen=True, slots=True)
class FoundLocations:
    """Locations as paths and addresses only: without secrets, so that they may be sent to other machines."""

    kafka: KafkaConnection
    redis: RedisConnection
    sender: str | None
    compiled: bool
    kernel_cache: Path
    frame_bytes_max: int
    state_dir: Path
    snapshots: str
    state_key_file: Path | None

    def on_this_machine(self, *, folds: bool = True) -> Locations:
        """Reads the files at these paths on this machine. Raises SettingsError for a key that cannot be used.

        Without `folds` it leaves out the kernels and the states' key, which not every machine has.
        """
        cache = None
        if folds:
            from bettong.edges.kernel_cache import kernel_cache  # loads Numba

            cache = kernel_cache(self.kernel_cache)
        return Locations(
            kafka=self.kafka,
            redis=self.redis,
            sender=self.sender,
            compiled=self.compiled,
            kernel_cache=cache,
            frame_bytes_max=self.frame_bytes_max,
            state_dir=self.state_dir,
            snapshots=self.snapshots,
            state_key=state_key(self.state_key_file) if folds else None,
        )


def locations(
    application: str,
    name: str,
    directory: Path,
    *,
    kafka: str | None = None,
    redis: str | None = None,
    folds: bool = True,
) -> Locations:
    """As `found_locations`, with the files on this machine read. `folds`: see `FoundLocations.on_this_machine`."""
    return found_locations(application, name, directory, kafka=kafka, redis=redis).on_this_machine(
        folds=folds
    )


def found_locations(
    application: str,
    name: str,
    directory: Path,
    *,
    kafka: str | None = None,
    redis: str | None = None,
) -> FoundLocations:
    """The locations of application `name` in the file `application`.

    Raises LocalError when no flag, suite or variable names a Kafka, or when the suite in `directory` runs another
    application; SettingsError for a wrong environment.
    """
    record = find(directory)
    if record is not None and record.name != name and kafka is None:
        raise LocalError(
            f"{directory} runs application {record.name!r}, and {application} is {name!r}: give the --dir of its"
            " suite, or --kafka for one elsewhere"
        )
    if record is not None and (record.name != name or kafka is not None):
        record = None
    overrides = {"application": application, "kafka": kafka, "redis": redis}
    if record is not None:
        overrides["kafka"] = record.kafka
        overrides["redis"] = redis or record.redis
    settings = read(ProcessorSettings, overrides)
    if "kafka" not in settings.model_fields_set:
        raise LocalError(
            f"nothing runs in {directory}: start it with `bettong up {application}`, or say where it runs with"
            f" --kafka or {PREFIX}KAFKA"
        )
    return FoundLocations(
        kafka=record.kafka_connection if record is not None else settings.kafka_connection,
        redis=record.redis_connection if record is not None and redis is None else settings.redis_connection,
        sender=record.sender if record is not None else None,
        compiled=record.compiled if record is not None else settings.compiled,
        kernel_cache=settings.kernel_cache,
        frame_bytes_max=settings.frame_bytes_max,
        state_dir=settings.state_dir,
        snapshots=record.snapshots if record is not None else settings.snapshots,
        state_key_file=record.state_key_file if record is not None else settings.state_key_file,
    )
