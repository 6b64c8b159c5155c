"""The micro-batch schedule: one Structured Streaming query for all stages.

    Kafka source (every stage topic, one task a partition) -> mapInArrow(Step) -> Kafka sink

Spark's checkpoint holds only the offsets; the partition workers find the states that belong to them.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from py4j.protocol import Py4JError
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from bettong.clocks import CheckedClock
from bettong.config.processor import ProcessorSettings
from bettong.edges.kafka_log import TIMES_HEADER, TRACE_HEADER, LogWriter
from bettong.edges.kafka_log.spark_options import spark_options
from bettong.edges.redis_store import RedisStore
from bettong.frames.frame import ENVELOPE_BYTES_MAX
from bettong.identifiers import TopicPartition
from bettong.logs import Logger
from bettong_processor.micro_batch.arrow_maps import map_in_arrow
from bettong_processor.micro_batch.offsets import starting_offsets
from bettong_processor.micro_batch.progress import durations_of, ends_of, metrics_of
from bettong_processor.micro_batch.saving import Ends, save
from bettong_processor.micro_batch.task import Step
from bettong_processor.micro_batch.ticking import BUFFER_BYTES_MAX, Ticking
from bettong_processor.micro_batch.unsaved import Unsaved
from bettong_processor.programs import programs
from bettong_processor.progress import Progress

_FETCH_WAIT_MS = 20
_OUTPUT = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("value", BinaryType()),
        StructField("times", BinaryType()),
        StructField("traceparent", BinaryType()),
    ]
)
# The columns beside a record's value, and the headers that hold them.
_BESIDE = {"times": TIMES_HEADER, "traceparent": TRACE_HEADER}
_POLL_S = 0.02
# Between two polls for unsaved states of idle partitions. A poll calls Java; all due states cost one small Spark job.
_REST_POLL_S = 0.5
# Such a job may delay a batch: the pause after it is at least this many times its duration.
_REST_PER_SAVE = 4


class MicroBatch:
    """A `supervision.Run`: the running query, and threads that write TICKs and save states of idle partitions."""

    def __init__(
        self,
        query: StreamingQuery,
        progress: Progress,
        ticking: Ticking,
        unsaved: Unsaved,
        save: Callable[[Ends], Ends],
        log: Logger,
    ) -> None:
        self._query = query
        self._progress = progress
        self._ticking = ticking
        self._unsaved = unsaved
        self._save = save
        self._log = log
        self._stopping = threading.Event()
        progress.start()
        ticking.start()
        self._saving = InheritableThread(target=self._save_rest, name="saving", daemon=True)
        self._saving.start()

    @property
    def name(self) -> str:
        """See Run."""
        return f"micro-batch {self._query.id}"

    def waits_for(self) -> str:
        """See Run."""
        return self._progress.waits_for()

    def metrics(self) -> Mapping[str, str | float]:
        """See Run."""
        progress = self._query.lastProgress
        self._log.debug("progress", **durations_of(progress))
        return {**metrics_of(progress), **self._progress.metrics()}

    def ended(self, wait_s: float) -> bool:
        """See Run."""
        return bool(self._query.awaitTermination(timeout=max(_POLL_S, wait_s)))  # type: ignore[arg-type] # takes parts of seconds

    def leave(self) -> None:
        """See Run. A call to Java may have failed although the query runs: its name would refuse the next one."""
        self._stop_threads()
        with suppress(PySparkException, Py4JError, ConnectionError):  # without Java there is no query
            if self._query.isActive:
                self._query.stop()

    def stop(self, wait_s: float) -> None:
        """See Run."""
        deadline = time.monotonic() + wait_s
        self._stop_threads()
        # Under load one batch follows another without a pause: a new batch id shows that the running one has ended.
        before = _batch_of(self._query.lastProgress)
        while (
            self._query.status["isTriggerActive"]
            and _batch_of(self._query.lastProgress) == before
            and time.monotonic() < deadline
        ):
            time.sleep(_POLL_S)
        self._query.stop()
        if ends := ends_of(self._query.lastProgress):
            self._save(ends)

    def _stop_threads(self) -> None:
        self._stopping.set()
        self._ticking.stop()
        self._progress.stop()

    def _save_rest(self) -> None:
        """Saves the states of idle partitions until the run ends."""
        pause_s = _REST_POLL_S
        try:
            while not self._stopping.wait(pause_s):
                begun_s = time.monotonic()
                due = self._unsaved.due(ends_of(self._query.lastProgress), begun_s)
                if due:
                    self._unsaved.note_attempt(due, self._save(due), time.monotonic())
                pause_s = max(_REST_POLL_S, _REST_PER_SAVE * (time.monotonic() - begun_s))
        except (PySparkException, Py4JError, ConnectionError) as error:
            # Java has ended or is ending, which the thread that awaits the query reports.
            self._log.debug("idle partitions are no longer snapshotted", fault=str(error))


def _batch_of(progress: Mapping[str, Any] | None) -> object:
    """The id of the batch that ended last; None before the first."""
    return progress["batchId"] if progress else None


def start(
    spark: SparkSession,
    settings: ProcessorSettings,
    store: RedisStore,
    *,
    checkpoint: str,
    stages: Mapping[str, str],
    first_offsets: Mapping[TopicPartition, int],
    log_id: str,
    log: Logger,
) -> MicroBatch:
    """Starts the query: from `checkpoint` if it exists, else from `first_offsets`, else from the beginning.

    `stages`: by their topics. `log_id`: see `snapshot_stores`.
    """
    topics = tuple(stages)
    kafka = spark_options(settings.kafka_connection)
    record_bytes_max = settings.frame_bytes_max + 2 * ENVELOPE_BYTES_MAX
    source = (
        spark.readStream.format("kafka")
        .options(**kafka)
        # After a repartitioning, topics may have more partitions, which are not in use.
        .option("assign", json.dumps({topic: list(range(settings.partitions)) for topic in topics}))
        .option("startingOffsets", starting_offsets(topics, settings.partitions, first_offsets))
        .option("failOnDataLoss", "true")
        .option("maxOffsetsPerTrigger", settings.batch_frames_max)
        # A consumer in Spark's cache may have a pending fetch from the end of the last batch, for whose response the
        # next batch waits. Kafka's default, half a second, would be most of a micro-batch.
        .option("kafka.fetch.max.wait.ms", _FETCH_WAIT_MS)
        # A cached consumer also holds a prefetched response: with 8 MiB each, 16 consumers fill half of Java's heap.
        .option("kafka.max.partition.fetch.bytes", max(2 * 1024 * 1024, record_bytes_max))
        .option("kafka.fetch.max.bytes", max(64 * 1024 * 1024, record_bytes_max))
        .option("includeHeaders", "true")
        .load()
    )
    records = source.select("topic", "partition", "offset", "value", *map(_beside, _BESIDE))
    output = map_in_arrow(records, Step(settings, log_id, time.time_ns() // 1_000_000), _OUTPUT)
    query = (
        output.select("topic", "partition", "value", _headers())
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
    progress = Progress.of(settings, store, stages, log, committed=lambda: ends_of(query.lastProgress))
    unsaved = Unsaved(settings.snapshot_interval_ms / 1000, dict(first_offsets))
    ticking = _ticking(settings, store, stages, progress, log)
    saving = partial(save, spark, settings, log_id, log=log)
    return MicroBatch(query, progress, ticking, unsaved, saving, log)


def _beside(name: str) -> Column:
    """The header that `LogWriter` writes as a record's `times` or `traceparent`; null if the record has none."""
    ours = sql.filter("headers", lambda header: header["key"] == _BESIDE[name])
    return sql.get(ours, sql.lit(0)).getField("value").alias(name)


def _headers() -> Column:
    """A record's headers: its `times` and `traceparent`, unless empty."""
    headers = [
        sql.struct(sql.lit(key).alias("key"), sql.col(name).alias("value")) for name, key in _BESIDE.items()
    ]
    return sql.filter(sql.array(*headers), lambda header: sql.length(header["value"]) > 0).alias("headers")


def _ticking(
    settings: ProcessorSettings,
    store: RedisStore,
    stages: Mapping[str, str],
    progress: Progress,
    log: Logger,
) -> Ticking:
    ready = programs(settings).stages
    return Ticking(
        {topic: stage for topic, stage in stages.items() if ready[stage].is_ever_due()},
        progress.idle,
        awaited={topic for topic, stage in stages.items() if ready[stage].stage.is_awaited},
        clock=CheckedClock(time.time_ns, log),
        redis=store,
        connect=lambda: LogWriter(
            settings.kafka_connection,
            frame_bytes_max=settings.frame_bytes_max,
            buffer_bytes_max=BUFFER_BYTES_MAX,
        ),
        log=log,
    )
