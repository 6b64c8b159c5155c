"""The Spark session: local or on a cluster, with what Bettong needs set and nothing else touched."""

import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import py4j
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bettong.class_archives import SPARK, reading
from bettong.errors import SettingsError
from bettong.jars import CONNECTOR_JARS
from bettong.settings import PREFIX, ProcessorSettings, Schedule
from bettong_processor.faults import fault_of

# Frames are handed to Python in Arrow batches of at most this many records and bytes.
_ARROW_RECORDS_MAX = 1024
_ARROW_BYTES_MAX = 8 * 1024 * 1024
# Connections of a Java that dies close a moment before it is gone.
DEATH_S_MAX = 1.0
_END_S_MAX = 5.0
_LAUNCHER = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_Item = TypeVar("_Item")
_PY4J = str(Path(py4j.__file__).parent)


def session(settings: ProcessorSettings, *, application: str) -> SparkSession:
    """Starts Spark. Blocks for seconds. Raises SettingsError when it cannot: no Java, no jars, no such master."""
    for name, value in settings.model_dump(mode="json").items():
        if value is not None:
            os.environ[PREFIX + name.upper()] = str(value)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Of the Java that only puts the command line of Spark's together: 0.3 instead of 0.5 CPU seconds.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", shlex.join(_LAUNCHER))
    if settings.spark_master.startswith("local"):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.appName(f"bettong {application}").master(settings.spark_master)
    for key, value in options(settings).items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise SettingsError(
            f"Spark does not start with {PREFIX}SPARK_MASTER={settings.spark_master}: {fault_of(str(error)).text};"
            " is the master right, and Java 17 installed?"
        ) from None
    spark.sparkContext.setLogLevel("WARN")
    silence_py4j()
    return spark


def silence_py4j() -> None:
    """It logs each call that a dead Java does not answer, with its stack; what that means is said once, by us.

    The calls of its own threads too, and those to the root logger.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return not record.pathname.startswith(_PY4J)


def java_ended(spark: SparkSession, wait_s: float) -> bool:
    """Whether the Java process of a session is gone, or goes within `wait_s`."""
    return _ended(_java(spark), wait_s)


def stop(spark: SparkSession, *, wait_s: float = _END_S_MAX) -> None:
    """Ends Spark, and its Java: nothing that it has to say may come behind our own last line.

    Java has at most `wait_s`. When it is gone already there is nothing left to end.
    """
    java = _java(spark)
    try:
        spark.stop()
    except (Py4JError, ConnectionError):
        if not _ended(java, DEATH_S_MAX):
            raise
    java.stdin.close()  # that is how pyspark tells it to end
    _ended(java, wait_s)


def _java(spark: SparkSession) -> Any:
    return spark.sparkContext._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001 - nothing public tells


def _ended(java: Any, wait_s: float) -> bool:
    try:
        java.wait(wait_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def warm_up(spark: SparkSession, schedule: Schedule) -> None:
    """Starts Python on every slot, which loads and compiles the application: the first batch need not wait.

    By the same way as the schedule does: Spark keeps other Python daemons for other kinds of tasks.
    """
    slots = spark.sparkContext.defaultParallelism
    if schedule is Schedule.RESIDENT:
        spark.sparkContext.parallelize(range(slots), slots).mapPartitions(_same).count()
        return
    numbers = spark.range(slots, numPartitions=slots)
    numbers.mapInArrow(_same, numbers.schema).write.format("noop").mode("overwrite").save()


def _same(items: Iterable[_Item]) -> Iterator[_Item]:
    """The shortest task there is."""
    yield from items


def options(settings: ProcessorSettings) -> dict[str, str]:
    """Spark's configuration, with the reason for each entry."""
    options = {
        # Our daemon loads and compiles the application before it forks workers.
        "spark.python.daemon.module": "bettong_processor.daemon",
        "spark.python.worker.reuse": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(_ARROW_RECORDS_MAX),
        "spark.sql.execution.arrow.maxBytesPerBatch": str(_ARROW_BYTES_MAX),
        # One consumer a partition of each stage topic must fit, or each batch opens connections anew.
        "spark.kafka.consumer.cache.capacity": str(max(64, 4 * settings.partitions)),
        # A task of ours lives for milliseconds: waiting for a better place never pays.
        "spark.locality.wait": "0",
        # Keeping more than a few batches of history in files only makes cleaning slower.
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.ui.showConsoleProgress": "false",
    }
    local = settings.spark_master.startswith("local")
    if local or settings.spark_ui is not None:
        options["spark.ui.enabled"] = str(bool(settings.spark_ui)).lower()
    jars = [str(jar) for jar in connector_jars(settings)]
    if local:
        java = shlex.join(("-XX:+UseParallelGC", "-XX:TieredStopAtLevel=1", *reading(SPARK)))
        options |= {
            # Not `spark.jars`: what Java is to find in its archive must be on its class path from the start.
            "spark.driver.extraClassPath": os.pathsep.join(jars),
            "spark.executor.extraClassPath": os.pathsep.join(jars),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
            # On few cores a collector that works beside the program only takes its time, and so does the second
            # compiler: 7.9 instead of 12.5 CPU seconds for 3 M messages, start included (docs/performance.md).
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
            f"{PREFIX}JARS: {folder} holds no jars of Spark's Kafka connector; run `make setup`, or name the folder"
        )
    return jars
