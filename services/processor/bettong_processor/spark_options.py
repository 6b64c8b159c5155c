"""Spark's configuration: local or on a cluster, with what Bettong needs set and nothing else touched."""

import os
import shlex
from pathlib import Path

from bettong.class_archives import MICRO_BATCH, RESIDENT, reading
from bettong.config.processor import ProcessorSettings, Schedule
from bettong.config.service import PREFIX
from bettong.errors import SettingsError
from bettong.jars import CONNECTOR_JARS

# Frames are handed to Python in Arrow batches of at most this many records and bytes.
_ARROW_RECORDS_MAX = 1024
_ARROW_BYTES_MAX = 8 * 1024 * 1024
# On few cores a collector that works beside the program only takes its time. Under `resident` Java has nothing to do:
# what it is given at its start, by default a part of the machine's memory, it would touch bit by bit, and look for an
# hour as if it leaked. Under `micro-batch` it reads the log, and its young generation grows to what that takes.
_COLLECTOR = {
    Schedule.RESIDENT: ("-XX:+UseSerialGC", "-Xms64m", "-Xmn24m"),
    Schedule.MICRO_BATCH: ("-XX:+UseParallelGC",),
}
# What Java loads at its start, parsed and verified once.
_ARCHIVE = {Schedule.RESIDENT: RESIDENT, Schedule.MICRO_BATCH: MICRO_BATCH}


def options(settings: ProcessorSettings) -> dict[str, str]:
    """Spark's configuration, with the reason for each entry."""
    options = {
        "spark.master": settings.spark_master,
        # Our daemon loads and compiles the application before it forks workers.
        "spark.python.daemon.module": "bettong_processor.daemon",
        "spark.python.worker.reuse": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(_ARROW_RECORDS_MAX),
        "spark.sql.execution.arrow.maxBytesPerBatch": str(_ARROW_BYTES_MAX),
        # One consumer a partition of each stage topic must fit, or each batch opens connections anew.
        "spark.kafka.consumer.cache.capacity": str(max(64, 4 * settings.partitions)),
        # A task of ours lives for milliseconds: waiting for a nearer executor never pays.
        "spark.locality.wait": "0",
        # Keeping more than a few batches of history in files only makes cleaning slower.
        "spark.sql.streaming.minBatchesToRetain": "10",
        # Between two looks for news, each of which asks Kafka where its logs end: at Spark's 10 ms an idle suite takes
        # twice the CPU. What comes to an idle query waits for half of it.
        "spark.sql.streaming.pollingDelay": "50ms",
        # A plan of ours moves frames, some thousand rows a second at most. Code made for it would save nothing later,
        # and a new driver would wait for the compiler of Spark's, which runs cold.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.ui.showConsoleProgress": "false",
    }
    local = settings.spark_master.startswith("local")
    if local or settings.spark_ui is not None:
        options["spark.ui.enabled"] = str(bool(settings.spark_ui)).lower()
    jars = [str(jar) for jar in connector_jars(settings)]
    if local:
        archived = reading(_ARCHIVE[settings.schedule])
        java = shlex.join((*_COLLECTOR[settings.schedule], "-XX:TieredStopAtLevel=1", *archived))
        options |= {
            # Not `spark.jars`: what Java is to find in its archive must be on its class path from the start.
            "spark.driver.extraClassPath": os.pathsep.join(jars),
            "spark.executor.extraClassPath": os.pathsep.join(jars),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
            # On few cores the second compiler only takes time, too: 7.9 instead of 12.5 CPU seconds for 3 M messages,
            # start included (docs/performance-profiles.md).
            "spark.driver.extraJavaOptions": java,
            "spark.executor.extraJavaOptions": java,
        }
        if not settings.spark_master.startswith("local-cluster"):
            # All users of the machine reach loopback: what listens there asks for a secret, which Spark draws itself
            # where driver and executor are one process.
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
