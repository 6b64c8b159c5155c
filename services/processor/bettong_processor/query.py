"""The micro-batch schedule: one Structured Streaming query for all stages.

    Kafka source (every stage topic, one task a partition) -> mapInArrow(Step) -> Kafka sink

Spark's checkpoint holds the offsets; which state belongs to them is the partition workers' affair.
"""

import json
from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bettong.frames.frame import ENVELOPE_BYTES_MAX
from bettong.settings import ProcessorSettings
from bettong_processor.task import Step

_FETCH_WAIT_MS = 20
_OUTPUT = "topic string, partition int, value binary"


def start(
    spark: SparkSession,
    settings: ProcessorSettings,
    *,
    checkpoint: str,
    topics: tuple[str, ...],
    first_offsets: Mapping[tuple[str, int], int],
) -> StreamingQuery:
    """Starts the query: from `checkpoint` when there is one, else from `first_offsets` (else offset 0)."""
    record_bytes_max = settings.frame_bytes_max + 2 * ENVELOPE_BYTES_MAX
    source = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", settings.kafka)
        .option("subscribe", ",".join(topics))
        .option("startingOffsets", starting_offsets(topics, settings.partitions, first_offsets))
        .option("failOnDataLoss", "true")
        .option("maxOffsetsPerTrigger", settings.batch_frames_max)
        # A consumer that lies in Spark's cache may have a fetch under way from where the last batch ended; the next
        # batch waits for the answer. Kafka's own half second would be most of a micro-batch.
        .option("kafka.fetch.max.wait.ms", _FETCH_WAIT_MS)
        .option("kafka.max.partition.fetch.bytes", max(8 * 1024 * 1024, record_bytes_max))
        .option("kafka.fetch.max.bytes", max(64 * 1024 * 1024, record_bytes_max))
        .load()
    )
    return (
        source.select("topic", "partition", "offset", "value")
        .mapInArrow(Step(settings), _OUTPUT)
        .writeStream.format("kafka")
        .queryName("bettong micro-batch")
        .option("kafka.bootstrap.servers", settings.kafka)
        .option("kafka.max.request.size", 2 * record_bytes_max)
        .option("kafka.buffer.memory", max(64 * 1024 * 1024, 4 * record_bytes_max))
        .option("kafka.batch.size", 256 * 1024)
        .option("kafka.linger.ms", 0)
        .option("kafka.acks", "all")
        .option("kafka.enable.idempotence", "true")
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime="0 seconds")
        .start()
    )


def starting_offsets(
    topics: tuple[str, ...], partitions: int, first_offsets: Mapping[tuple[str, int], int]
) -> str:
    """Spark's JSON for where to start: -2 is its word for the beginning of the log."""
    return json.dumps(
        {
            topic: {str(number): first_offsets.get((topic, number), -2) for number in range(partitions)}
            for topic in topics
        }
    )
