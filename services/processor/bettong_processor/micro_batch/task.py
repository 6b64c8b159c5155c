"""A Spark task of the micro-batch schedule: folds the records of one partition, and returns their output records.

Runs in Spark's Python workers. A task that is retried, or runs twice, writes the same frames with the same sequence
numbers; every reader skips duplicates.
"""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from bettong.config.processor import ProcessorSettings
from bettong.edges.kafka_log import Record
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.edges.snapshot_stores import local_states, reference_store, snapshot_store
from bettong.edges.trace_export import exporting
from bettong.identifiers import PartitionId, TopicPartition
from bettong.logs import Logger, configure
from bettong.services import PROCESSOR
from bettong.snapshots.store import SnapshotStore
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import PartitionWorker
from bettong.worker.references.versions import ReferenceTables
from bettong_processor import interrupts
from bettong_processor.cpus import kept_cpus
from bettong_processor.crashes.guard import Fold, Guard
from bettong_processor.crashes.watch import Watch
from bettong_processor.guarding import guarded
from bettong_processor.micro_batch.partitions import Partitions
from bettong_processor.micro_batch.replay import Replay
from bettong_processor.micro_batch.uploads import Stores, Uploads
from bettong_processor.programs import programs
from bettong_processor.reporting import PartitionMetrics
from bettong_processor.restoring import Restoring, WorkerLimits
from bettong_processor.saved_snapshots import SavedSnapshot
from bettong_processor.stamping import StampedOutput, Stamping

OUTPUT = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("value", pa.binary()),
        ("times", pa.binary()),
        ("traceparent", pa.binary()),
    ]
)

# Output is passed to Spark in batches of about this size: large enough to amortise the cost of each, small compared
# with the memory of a worker.
PIECE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Step:
    """The function of `mapInArrow`: takes (topic, partition, offset, value, times, traceparent), returns OUTPUT.

    `log_id`: see `snapshot_stores`. `begun_ms`: when the query was started, Unix milliseconds.
    """

    settings: ProcessorSettings
    log_id: str
    begun_ms: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Folds the records of one task: of one partition of one topic, in order."""
        interrupts.ignore()
        process = process_of(self.settings, self.log_id)
        process.begin_task(self.begun_ms, task_attempt())
        begun: tuple[TopicPartition, PartitionWorker, Fold] | None = None
        piece = _Piece()
        for batch in batches:
            # Neither this nor `_Piece` may use `to_numpy` or `pa.array`, which import pandas if they can: each worker
            # would do so in its first task.
            topics, numbers, *columns = batch.columns
            for offset, value, *beside in zip(*(each.to_pylist() for each in columns), strict=True):
                if begun is None:
                    log = TopicPartition(topics[0].as_py(), numbers[0].as_py())
                    worker = process.partitions.begin(log, offset)
                    begun = log, worker, process.guard.of(worker)
                log, worker, fold = begun
                record = Record(*log, offset, value, *(each or b"" for each in beside))
                output = process.stamping.fold(worker, fold, record)
                for each in output.records:
                    if piece.add(each, output) >= PIECE_BYTES:
                        yield piece.take_batch()
        if piece.records:
            yield piece.take_batch()
        if begun is not None:
            _, worker, _ = begun
            process.partitions.finish(worker)
            process.report(worker, self.begun_ms)


@dataclass(slots=True)
class _Piece:
    records: list[OutputRecord] = field(default_factory=list)
    times: list[bytes] = field(default_factory=list)
    traceparents: list[bytes] = field(default_factory=list)
    size_bytes: int = 0

    def add(self, record: OutputRecord, beside: StampedOutput) -> int:
        self.records.append(record)
        self.times.append(beside.times)
        self.traceparents.append(beside.traceparent)
        self.size_bytes += len(record.value)
        return self.size_bytes

    def take_batch(self) -> pa.RecordBatch:
        records, self.records, self.size_bytes = self.records, [], 0
        times, self.times = self.times, []
        traceparents, self.traceparents = self.traceparents, []
        numbers = np.fromiter((each.partition for each in records), np.int32, len(records))
        arrays = [
            _binary_column([each.topic.encode() for each in records], OUTPUT.field("topic").type),
            pa.Array.from_buffers(
                OUTPUT.field("partition").type, len(records), [None, pa.py_buffer(numbers)]
            ),
            _binary_column([each.value for each in records], OUTPUT.field("value").type),
            _binary_column(times, OUTPUT.field("times").type),
            _binary_column(traceparents, OUTPUT.field("traceparent").type),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=OUTPUT)


def _binary_column(values: list[bytes], kind: pa.DataType) -> pa.Array:
    """A column of variable width, built without `pa.array`. Pieces are far below the 2 GiB limit of its offsets."""
    ends = np.zeros(len(values) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, values), np.int32, len(values)), out=ends[1:])
    return pa.Array.from_buffers(
        kind, len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))], null_count=0
    )


@dataclass(frozen=True, slots=True)
class WorkerResources:
    """The objects that a Python worker process of Spark keeps as long as it lives."""

    restoring: Restoring
    durable: SnapshotStore
    metrics: PartitionMetrics
    guard: Guard
    stamping: Stamping
    log: Logger
    opened: ExitStack


@dataclass(slots=True)
class WorkerProcess:
    """The objects that a Python worker process of Spark keeps between tasks over one log."""

    partitions: Partitions
    uploads: Uploads
    metrics: PartitionMetrics
    guard: Guard
    stamping: Stamping
    begun_ms: int = 0
    reported: dict[PartitionId, SavedSnapshot] = field(default_factory=dict)

    def begin_task(self, begun_ms: int, attempt: int) -> None:
        """Begins a task of the run that began at `begun_ms`. Reads new exclusions if there may be any.

        Within a run, only a retried task may meet records for which another task has appended an exclusion; a replay
        reads exclusions itself. Raises LogError.
        """
        if begun_ms != self.begun_ms or attempt:
            self.guard.exclusions.refresh()
            self.begun_ms = begun_ms

    def report(self, worker: PartitionWorker, begun_ms: int) -> None:
        """Writes a partition's live metrics, for the run that began at `begun_ms`. Never fails a task."""
        saved = self.uploads.saved(worker.id)
        # Only once: another process may have saved a newer snapshot since.
        news = saved if self.reported.get(worker.id) != saved else None
        if news is not None:
            self.reported[worker.id] = news
        self.metrics.write(worker.id, self.metrics.of(worker, news, self.uploads.fault(worker.id)), begun_ms)


def task_attempt() -> int:
    """How often Spark has tried this task before."""
    context = TaskContext.get()
    return context.attemptNumber() if context is not None else 0


@lru_cache(maxsize=1)
def process_of(settings: ProcessorSettings, log_id: str) -> WorkerProcess:
    """This process's workers over a log, which its first task makes and all later ones use."""
    shared = resources_of(settings)
    stores = Stores(
        local=local_states(settings.state_folder(shared.restoring.application), log_id),
        durable=shared.durable,
    )
    uploads = Uploads(
        stores, interval_s=settings.snapshot_interval_ms / 1000, clock=time.monotonic, log=shared.log
    )
    partitions = Partitions(
        shared.restoring,
        stores=stores,
        uploads=uploads,
        replay_log=Replay(settings.kafka_connection, frame_bytes_max=settings.frame_bytes_max),
        guard=shared.guard,
        log=shared.log,
    )
    return WorkerProcess(partitions, uploads, shared.metrics, shared.guard, shared.stamping)


@lru_cache(maxsize=1)
def resources_of(settings: ProcessorSettings) -> WorkerResources:
    """What this process needs over any log: its programs, connections, and threads."""
    log = configure(settings, "processor-worker")
    ready = programs(settings)
    application = ready.plan.application
    opened = ExitStack()
    traces = opened.enter_context(
        exporting(
            settings, PROCESSOR.name, application, log, instance=f"{socket.gethostname()}-{os.getpid()}"
        )
    )
    store = RedisStore(settings.redis_connection, application)
    metrics = PartitionMetrics(
        LiveMetrics(store), time.monotonic, log, settings.gap_alarm_s, kept_cpus().metrics()
    )
    guard = guarded(settings, application, metrics, log)
    Watch(guard.at_work, guard.reports, guard.limit_ms).start()
    return WorkerResources(
        Restoring(
            ready,
            WorkerLimits(settings.partitions, settings.frame_bytes_max, settings.measures),
            log,
            ReferenceTables(reference_store(settings.snapshots, application, store)),
        ),
        snapshot_store(settings.snapshots, application, store),
        metrics,
        guard,
        Stamping(measures=settings.measures, report=traces.report if traces is not None else None),
        log,
        opened,
    )
