"""Records the class-data archives of Kafka and Spark: `python -m bettong_processor.recording`.

`bettong setup` and `make setup` call it. It counts words once, with a broker and a Spark session that archive their
loaded classes when they end, starts the tasks of the other schedule, and an executor. See `bettong.class_archives`. A
Java that cannot record leaves no archive, and starts are not faster.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
from pyspark.sql import SparkSession

from bettong.application.plan import plan
from bettong.class_archives import EXECUTOR, KAFKA, MICRO_BATCH, NAMES, RESIDENT, archive, recording, sign
from bettong.config.processor import ProcessorSettings, Schedule
from bettong.config.reading import read
from bettong.edges.application_file import load
from bettong.edges.kafka_log import LogAdmin, LogWriter
from bettong.edges.redis_store import RedisStore
from bettong.errors import BettongError, LocalError, LogError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, encode
from bettong.identifiers import Origin, SequenceNumber, TopicPartition
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.logs import configure
from bettong.topics import stage_topic
from bettong_processor.java import Java, set_environment
from bettong_processor.micro_batch.query import start
from bettong_processor.resident.driver import start_run
from bettong_processor.warming import warm_up

_APPLICATION = Path(__file__).with_name("recorded_application.py")
_END_S_MAX = 120.0  # for a JVM that writes its archive when it ends, which takes seconds
_POLL_S = 0.1
_MASTER, _WITH_EXECUTOR = "local[2]", "local-cluster[1,2,1024]"


def main() -> None:
    """Records all archives. If that fails, the existing ones are kept."""
    archives = archive(KAFKA).parent
    old = archives.with_name(f"{archives.name}.old")
    try:
        shutil.rmtree(old, ignore_errors=True)
        if archives.exists():
            archives.rename(old)  # a JVM that starts from an archive records none
        try:
            archives.mkdir(parents=True)
            record()
            sign()
        except BaseException:
            shutil.rmtree(archives, ignore_errors=True)
            if old.exists():
                old.rename(archives)
            raise
        shutil.rmtree(old, ignore_errors=True)
    except (BettongError, OSError) as error:
        sys.exit(f"no class-data archives: {error}")
    for name in NAMES:
        print(  # noqa: T201 - a program of its own, whose output a setup shows or keeps
            f"{name}: {archive(name).stat().st_size >> 20} MiB" if archive(name).exists() else f"{name}: none"
        )


def record() -> None:
    """Runs Kafka and Spark, which record; also keeps the checkpoint file of a formatted Kafka storage."""
    with tempfile.TemporaryDirectory(prefix="bettong-setup-") as folder:
        broker = KafkaBroker(Path(folder) / "kafka")
        try:
            broker.prepare()  # first, so that the storage tool is not recorded
            broker.keep_checkpoint()
            os.environ |= recording(KAFKA)
            broker.start()
            with RedisServer(Path(folder) / "redis") as redis, ThreadPoolExecutor(1, "executor") as beside:
                servers = (broker.bootstrap, redis.url)
                executor = beside.submit(_run_apart, EXECUTOR, folder, *servers)
                for name in (MICRO_BATCH, RESIDENT):
                    _run_apart(name, folder, *servers)
                executor.result()
            broker.terminate()
            assert broker.process is not None  # noqa: S101 - it was started above
            broker.process.wait(_END_S_MAX)
        finally:
            broker.kill()


def _environment(name: str) -> dict[str, str]:
    """In which Spark records that archive: only its executor, or its driver."""
    if name != EXECUTOR:
        return {**os.environ, **recording(name)}
    ((variable, value),) = recording(name).items()
    of_executor = ("--conf", f"spark.executorEnv.{variable}={value}")
    others = {key: each for key, each in os.environ.items() if key != variable}
    return {**others, "PYSPARK_SUBMIT_ARGS": shlex.join([*of_executor, "pyspark-shell"])}


def _run_apart(name: str, *words: str) -> None:
    """Runs `work_apart` in another process, for a process can start one Java only."""
    command = [sys.executable, "-m", "bettong_processor.recording", name, *words]
    ended = subprocess.run(command, env=_environment(name), check=False)
    if ended.returncode:
        raise LocalError(f"recording {name} ended with exit code {ended.returncode}")


def work_apart(name: str, folder: str, kafka: str, redis: str) -> None:
    """Runs Spark's Java while it records the archive of that name."""
    try:
        _WORK[name](Path(folder) / name, kafka, redis)
    except BettongError as error:
        sys.exit(str(error))


def start_tasks(folder: Path, kafka: str, redis: str) -> None:
    """Starts the tasks of `resident`, and ends them once they hold their partitions: messages do not involve Java."""
    settings = _settings(folder, kafka, redis, Schedule.RESIDENT)
    planned = plan(load(settings.application))
    set_environment(settings)
    with Java(settings, end_s_max=_END_S_MAX) as java, RedisStore(redis, planned.application) as store:
        context = java.context(planned.application)
        warm_up(context, settings)
        run = start_run(context, settings, planned, store, configure(settings, "setup"))
        until_s = time.monotonic() + _END_S_MAX
        while not run.metrics() or run.waits_for():
            if run.ended(_POLL_S) or time.monotonic() > until_s:
                raise LocalError(f"Spark's tasks do not start: {run.waits_for()}")
        run.stop(_END_S_MAX)


def start_executor(folder: Path, kafka: str, redis: str) -> None:
    """Starts an executor and its Python workers, and ends it. It needs neither log nor store."""
    settings = _settings(folder, kafka, redis, Schedule.RESIDENT, _WITH_EXECUTOR)
    set_environment(settings)
    with Java(settings, end_s_max=_END_S_MAX) as java:
        warm_up(java.context("setup"), settings)
        programs = psutil.Process().children(recursive=True)
    psutil.wait_procs(programs, _END_S_MAX)  # an executor ends after the driver


def count_words(folder: Path, kafka: str, redis: str) -> None:
    """Processes a line under `micro-batch` twice: in the first batch of a query, and in a later one."""
    settings = _settings(folder, kafka, redis, Schedule.MICRO_BATCH)
    planned = plan(load(settings.application))
    LogAdmin(kafka).create_topics(
        planned.topics,
        partitions=settings.partitions,
        replication=1,
        frame_bytes_max=settings.frame_bytes_max,
    )
    stages = {stage_topic(planned.application, stage.name): stage.name for stage in planned.stages}
    set_environment(settings)
    with Java(settings, end_s_max=_END_S_MAX) as java, RedisStore(redis, planned.application) as store:
        warm_up(java.context(planned.application), settings)
        spark = SparkSession.builder.getOrCreate()
        run = start(
            spark,
            settings,
            store,
            checkpoint=str(settings.checkpoint),
            stages=stages,
            first_offsets={},
            log_id="setup",
            log=configure(settings, "setup"),
        )
        (query,) = spark.streams.active
        with LogWriter(kafka, frame_bytes_max=settings.frame_bytes_max, buffer_bytes_max=1 << 24) as log:
            for sequence in (1, 2):
                answers: list[int | LogError] = []
                log.append(
                    TopicPartition(next(iter(stages)), 0),
                    line(SequenceNumber(sequence)),
                    on_done=answers.append,
                )
                log.flush(60)
                if isinstance(answers[0], LogError):
                    raise answers[0]
                query.processAllAvailable()
        run.stop(_END_S_MAX)


def _settings(
    folder: Path, kafka: str, redis: str, schedule: Schedule, master: str = _MASTER
) -> ProcessorSettings:
    return read(
        ProcessorSettings,
        {
            "application": str(_APPLICATION),
            "kafka": kafka,
            "redis": redis,
            "partitions": 2,
            "schedule": schedule,
            "spark_master": master,
            "checkpoint": str(folder / "checkpoint"),
            "state_dir": folder / "state",
            "kernel_cache": folder / "kernels",
        },
    )


def line(sequence: SequenceNumber) -> bytes:
    """A record of the source, as a sender would write it."""
    (source,) = plan(load(str(_APPLICATION))).sources
    columns = Columns.of_messages(source.schema, [source.schema.message(text="to be or not to be")])
    return encode(
        Frame(
            origin=Origin(f"{source.name}/setup"),
            sequence=sequence,
            previous=SequenceNumber(sequence - 1),
            count=1,
            schema=source.schema.fingerprint,
            ingest_ns=time.time_ns(),
            columns=columns.payload(),
        )
    )


_WORK = {MICRO_BATCH: count_words, RESIDENT: start_tasks, EXECUTOR: start_executor}

if __name__ == "__main__":
    work_apart(*sys.argv[1:]) if sys.argv[1:] else main()
