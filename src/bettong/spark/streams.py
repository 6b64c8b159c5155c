"""`bettong.spark.stream`: a sink's results as they arrive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa

from bettong.edges.kafka_log.spark_options import spark_options
from bettong.errors import SettingsError
from bettong.frames.frame import ENVELOPE_BYTES_MAX, decode
from bettong.jars import CONNECTOR_JARS
from bettong.spark.data_frames import kafka_stream, mapped, require_spark
from bettong.spark.located import LocatedApplication, WhereOptions, located
from bettong.spark.sink_columns import SinkColumns, gathered, sink_named
from bettong.topics import sink_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def stream(app: str | Path, spark: SparkSession, sink: str, **where: Unpack[WhereOptions]) -> DataFrame:
    """A sink's topic as a streaming DataFrame, from the oldest result in it on; with the columns of `batch`.

    Delivers each message AT LEAST once. The topic holds duplicates where a processor has written results again after a
    crash, and the delivery rule that skips them needs state across micro-batches, which this DataFrame does not keep.
    Duplicates are equal in all columns, so `.dropDuplicates(["_origin", "_sequence", "_index"])` leaves each message
    once; Spark then keeps a row for each message for ever. To bound that,
    `.withWatermark("_taken_in", "1 hour").dropDuplicatesWithinWatermark([...])` keeps an hour of them, by the time at
    which messages were taken in, and lets duplicates of older ones through. A destination that upserts by these three
    columns needs neither. Messages of one origin arrive in the order of the topic.

    A restarted query resumes from its checkpoint, as with any source of Spark. The session needs Spark's Kafka
    connector: see `connector_jars`. On a cluster, certificate and password files must exist on every machine.

    `where`: see `bettong.spark`. Raises ApplicationError for an unknown sink; LogError, LocalError and SettingsError
    where the application is not found, or the connector is missing. The query raises FrameError for messages of
    another version of the application.
    """
    require_spark()
    of, plan = located(app, where)
    columns = SinkColumns(plan, sink_named(plan, sink))
    topic = sink_topic(plan.application, sink)
    of.logs([topic])  # raises if the topic does not exist: Spark would wait for it
    record_bytes_max = of.found.frame_bytes_max + 2 * ENVELOPE_BYTES_MAX
    options = spark_options(of.found.kafka) | {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "failOnDataLoss": "true",
        "kafka.max.partition.fetch.bytes": str(max(2 * 1024 * 1024, record_bytes_max)),
        "kafka.fetch.max.bytes": str(max(64 * 1024 * 1024, record_bytes_max)),
    }
    records = kafka_stream(spark, options).select("partition", "value")
    return mapped(records, _Decoded(of, sink), columns.arrow)


def connector_jars() -> str:
    """The jars of Spark's Kafka connector in this environment, for `.config("spark.jars", ...)` of a session.

    Raises SettingsError when there are none.
    """
    jars = sorted(CONNECTOR_JARS.glob("*.jar"))
    if not jars:
        raise SettingsError(
            f"{CONNECTOR_JARS} holds no jars of Spark's Kafka connector: run `bettong setup`, or give Spark the package"
            " org.apache.spark:spark-sql-kafka-0-10"
        )
    return ",".join(map(str, jars))


@dataclass(frozen=True, slots=True)
class _Decoded:
    """The function of `mapInArrow`: takes (partition, value), returns messages."""

    of: LocatedApplication
    sink: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Runs in a task of Spark."""
        plan = self.of.plan()
        columns = SinkColumns(plan, sink_named(plan, self.sink))
        yield from gathered(
            columns.rows(partition, decode(value))
            for batch in batches
            for partition, value in zip(*(each.to_pylist() for each in batch.columns), strict=True)
        )
