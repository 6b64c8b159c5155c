"""The micro-batch schedule: one Structured Streaming query for all stages.

    Kafka source (every stage topic, one task a partition) -> mapInArrow(Step) -> Kafka sink

Spark's checkpoint holds the offsets; which state belongs to them is the partition workers' affair.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bettong.frames.frame import ENVELOPE_BYTES_MAX
from bettong.logs import Logger
from bettong.settings import ProcessorSettings
from bettong_processor.micro_batch.offsets import starting_offsets
from bettong_processor.micro_batch.progress import durations_of, ends_of, figures_of
from bettong_processor.micro_batch.saving import Ends, save
from bettong_processor.micro_batch.spark_kafka import spark_options
from bettong_processor.micro_batch.task import Step

_FETCH_WAIT_MS = 20
_OUTPUT = "topic string, partition int, value binary"
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """A `supervision.Run`: the query at work."""

    query: StreamingQuery
    log: Logger
    stages: Mapping[str, str]
    save: Callable[[Ends], None]

    @property
    def name(self) -> str:
        """See Run."""
        return f"micro-batch {self.query.id}"

    def waits_for(self) -> str:
        """See Run."""
        return ""

    def figures(self) -> Mapping[str, str | float]:
        """See Run."""
        progress = self.query.lastProgress
        self.log.debug("progress", **durations_of(progress))
        return figures_of(progress, self.stages)

    def ended(self, wait_s: float) -> bool:
        """See Run."""
        return bool(self.query.awaitTermination(timeout=max(1, round(wait_s))))

    def stop(self, wait_s: float) -> None:
        """See Run."""
        deadline = time.monotonic() + wait_s
        while self.query.status["isTriggerActive"] and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        self.query.stop()
        if ends := ends_of(self.query.lastProgress):
            self.save(ends)


def start(
    spark: SparkSession,
    settings: ProcessorSettings,
    *,
    checkpoint: str,
    stages: Mapping[str, str],
    first_offsets: Mapping[tuple[str, int], int],
    log: Logger,
) -> MicroBatch:
    """Starts the query: from `checkpoint` when there is one, else from `first_offsets` (else offset 0).

    `stages`: by their topics.
    """
    topics = tuple(stages)
    kafka = spark_options(settings.kafka_place)
    record_bytes_max = settings.frame_bytes_max + 2 * ENVELOPE_BYTES_MAX
    source = (
        spark.readStream.format("kafka")
        .options(**kafka)
        .option("subscribe", ",".join(topics))
        .option("startingOffsets", starting_offsets(topics, settings.partitions, first_offsets))
        .option("failOnDataLoss", "true")
        .option("maxOffsetsPerTrigger", settings.batch_frames_max)
        # A consumer that lies in Spark's cache may have a fetch under way from where the last batch ended; the next
        # batch waits for the answer. Kafka's own half second would be most of a micro-batch.
        .option("kafka.fetch.max.wait.ms", _FETCH_WAIT_MS)
        # A cached consumer holds the next fetch, too: with 8 MiB each, 16 of them fill half of Java's heap.
        .option("kafka.max.partition.fetch.bytes", max(2 * 1024 * 1024, record_bytes_max))
        .option("kafka.fetch.max.bytes", max(64 * 1024 * 1024, record_bytes_max))
        .load()
    )
    query = (
        source.select("topic", "partition", "offset", "value")
        .mapInArrow(Step(settings, time.time_ns() // 1_000_000), _OUTPUT)
        .writeStream.format("kafka")
        .queryName("bettong micro-batch")
        .options(**kafka)
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
    return MicroBatch(query, log, stages, lambda ends: save(spark, settings, ends, log))
