"""Settings of the processor."""

import hashlib
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from annotated_types import Ge, Le
from pydantic import AfterValidator, Field

from bettong.config.endpoints import snapshots_url
from bettong.config.service import ServiceSettings, instance_field
from bettong.services import PROCESSOR


class Schedule(StrEnum):
    """How Spark hands frames to steps; the results are the same."""

    RESIDENT = "resident"
    MICRO_BATCH = "micro-batch"


class ProcessorSettings(ServiceSettings):
    """The processor's own settings."""

    instance: str = instance_field(PROCESSOR.name)
    schedule: Schedule = Field(
        Schedule.RESIDENT,
        description="How Spark hands frames to steps: resident, or micro-batch where results feed Spark SQL.",
    )
    spark_master: str = Field(
        "local[*,4]", description="Spark's master URL. On one machine: cores, and attempts per task."
    )
    spark_ui: bool | None = Field(
        None,
        description="Whether Spark serves its web page, without authentication; by default only on clusters.",
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
        description="Folder in shared memory for the newest state of each partition between batches.",
    )
    snapshots: Annotated[str, AfterValidator(snapshots_url)] = Field(
        "redis",
        description="Where snapshots are kept: redis, file:///folder, or a URL that fsspec knows, s3://bucket/folder."
        " All workers must reach it.",
    )
    snapshot_interval_ms: Annotated[int, Ge(0), Le(3_600_000)] = Field(
        1000,
        description="Least time between two snapshots of a partition, in milliseconds; 0: every batch. Up to ten times"
        " as long where snapshots would take more than a tenth of a slot's time (resident).",
    )
    message_ms_max: Annotated[int, Ge(0), Le(3_600_000)] = Field(
        0,
        description="How long the processing of one message may take, in milliseconds, before its worker is killed and"
        " the message is treated as one that cannot be processed; 0: no limit. docs/operations.md.",
    )
    state_key_file: Path | None = Field(
        None,
        description="File of 32 random bytes that no other user can read; signs states of bettong.Pickle.",
    )
    batch_frames_max: Annotated[int, Ge(1), Le(1_000_000)] = Field(
        4096, description="Most frames that one micro-batch takes, over all partitions."
    )

    gap_alarm_s: Annotated[float, Ge(1), Le(86_400)] = Field(
        30.0,
        description="How long a frame may be skipped because one before it is missing, in seconds, before"
        " `bettong status` and the metrics report it: a client resends within moments.",
    )
    exclusive_cpus: Annotated[int, Ge(0), Le(4096)] = Field(
        0,
        description="How many exclusive CPUs a worker should have; it checks that at its start and logs the result."
        " 0: none.",
    )

    reload: Path | None = Field(
        None,
        description="Folder of this machine for copies of the application's code: its files are watched, and loaded"
        " again when they change. For development: `bettong run --reload`.",
    )

    def checkpoint_of(self, application: str, generation: int = 0) -> str:
        """The folder of an application's offset log, after `generation` repartitionings."""
        folder = f"{self.checkpoint.rstrip('/')}/{application}"
        # Below the first one, so that removing an application's folder removes all of them.
        return f"{folder}/generation-{generation}" if generation else folder

    def state_folder(self, application: str) -> Path:
        """The folder of the newest states of this deployment of an application; other deployments have others."""
        deployment = hashlib.blake2b(f"{self.kafka}\0{self.checkpoint}".encode(), digest_size=6).hexdigest()
        return self.state_dir / f"{application}-{deployment}"
