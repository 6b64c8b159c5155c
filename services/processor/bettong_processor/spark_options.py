"""Spark's configuration, local or on a cluster: sets only what Bettong needs."""

import os
import shlex
from pathlib import Path

from bettong.class_archives import EXECUTOR, MICRO_BATCH, RESIDENT, reading
from bettong.config.processor import ProcessorSettings, Schedule
from bettong.config.service import PREFIX
from bettong.errors import SettingsError
from bettong.jars import CONNECTOR_JARS
from bettong_processor.spark_master import is_on_one_machine, is_one_process

# Frames are handed to Python in Arrow batches of at most this many records and bytes.
_ARROW_RECORDS_MAX = 1024
_ARROW_BYTES_MAX = 8 * 1024 * 1024
# On few cores a concurrent collector only slows the program down. Under `resident` Java is idle: of its default initial
# heap, a share of the machine's memory, it would touch a little at a time, and look for an hour as if it leaked. Under
# `micro-batch` it reads the log, and its young generation grows as that requires.
_COLLECTOR = {
    Schedule.RESIDENT: ("-XX:+UseSerialGC", "-Xms64m", "-Xmn24m"),
    Schedule.MICRO_BATCH: ("-XX:+UseParallelGC",),
}
# The class-data archive that a driver which runs all tasks itself starts from.
_ARCHIVE = {Schedule.RESIDENT: RESIDENT, Schedule.MICRO_BATCH: MICRO_BATCH}


def options(settings: ProcessorSettings) -> dict[str, str]:
    """Spark's configuration, with the reason for each entry."""
    options = {
        "spark.master": settings.spark_master,
        # Bettong's daemon loads and compiles the application before it forks workers.
        "spark.python.daemon.module": "bettong_processor.daemon",
        "spark.python.worker.reuse": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(_ARROW_RECORDS_MAX),
        "spark.sql.execution.arrow.maxBytesPerBatch": str(_ARROW_BYTES_MAX),
        # Must hold a consumer for each partition of each stage topic, or each batch opens new connections.
        "spark.kafka.consumer.cache.capacity": str(max(64, 4 * settings.partitions)),
        # A task lives for milliseconds: waiting for a nearer executor never pays off.
        "spark.locality.wait": "0",
        # More than a few batches of history in files only makes their cleanup slower.
        "spark.sql.streaming.minBatchesToRetain": "10",
        # Pause between two polls of Kafka for the ends of its logs: with Spark's 10 ms an idle suite takes twice the
        # CPU. A record that arrives at an idle query waits for half of this on average.
        "spark.sql.streaming.pollingDelay": "50ms",
        # The plan only moves frames, some thousand rows a second at most. Generated code would save nothing, and a new
        # driver would wait for Spark's code generator to warm up.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.ui.showConsoleProgress": "false",
    }
    is_local = is_on_one_machine(settings.spark_master)
    if is_local or settings.spark_ui is not None:
        options["spark.ui.enabled"] = str(bool(settings.spark_ui)).lower()
    jars = [str(jar) for jar in connector_jars(settings)]
    if is_local:
        in_one_process = is_one_process(settings.spark_master)
        # On few cores the second-tier compiler costs more than it saves: 7.9 CPU seconds without it instead of 12.5
        # for 3 M messages, start included (docs/performance-profiles.md).
        java = (*_COLLECTOR[settings.schedule], "-XX:TieredStopAtLevel=1")
        archived = reading(_ARCHIVE[settings.schedule]) if in_one_process else ()
        options |= {
            # Not `spark.jars`: classes in the archive must be on Java's class path from the start.
            "spark.driver.extraClassPath": os.pathsep.join(jars),
            "spark.executor.extraClassPath": os.pathsep.join(jars),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": shlex.join((*java, *archived)),
            "spark.executor.extraJavaOptions": shlex.join((*java, *reading(EXECUTOR))),
        }
        if in_one_process:
            # Every user of the machine can connect to loopback, so Spark's listeners require a secret, which Spark
            # generates itself where driver and executor are one process.
            options["spark.authenticate"] = "true"
    else:
        options["spark.jars"] = ",".join(jars)
    return options


def connector_jars(settings: ProcessorSettings) -> list[Path]:
    """The jars of Spark's Kafka connector."""
    folder = settings.jars or CONNECTOR_JARS
    jars = sorted(folder.glob("*.jar"))
    if not jars:
        raise SettingsError(
            f"{PREFIX}JARS: {folder} holds no jars of Spark's Kafka connector; run `bettong setup`, or name the folder"
        )
    return jars
