"""The Spark task of a slot: connects to Kafka and Redis, and runs the slot's loop until it is asked to stop."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from pyspark import TaskContext

from bettong.clocks import CheckedClock
from bettong.config.processor import ProcessorSettings
from bettong.edges.kafka_log import LogReader, LogWriter
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.edges.redis_store.membership import RedisMembership, Task
from bettong.edges.snapshot_stores import reference_store, snapshot_store
from bettong.edges.trace_export import exporting
from bettong.logs import configure
from bettong.services import PROCESSOR
from bettong.threads import take_turns_often
from bettong.topics import stage_topic
from bettong.worker.references.versions import ReferenceTables
from bettong_processor import interrupts
from bettong_processor.cpus import kept_cpus
from bettong_processor.crashes.watch import Watch
from bettong_processor.guarding import guarded
from bettong_processor.programs import programs
from bettong_processor.reporting import PartitionMetrics
from bettong_processor.resident.heartbeat import Heartbeat
from bettong_processor.resident.loop import OUTPUT_BYTES_MAX, Intervals, Loop
from bettong_processor.restoring import Restoring, WorkerLimits
from bettong_processor.stamping import Stamping

# A slot without heartbeats for this long counts as dead, and its partitions are reassigned. Some forty heartbeats: a
# busy machine must not look like a dead one.
TTL_MS = 2_000


@dataclass(frozen=True, slots=True)
class SlotTask:
    """The function of `mapPartitions`, over one slot's number. `begun_us`: begin of the run, by Redis' clock."""

    settings: ProcessorSettings
    run: str
    begun_us: int

    def incarnation(self, attempt: int) -> int:
        """The incarnation of a task, from its `taskAttemptId`, which grows with each task that Spark launches.

        It exceeds those of all earlier runs, since no run launches a task every microsecond.
        """
        return self.begun_us + attempt

    def attempt(self, incarnation: int) -> int:
        """The inverse of `incarnation`."""
        return incarnation - self.begun_us

    def __call__(self, slots: Iterable[int]) -> Iterator[int]:
        """Folds until the driver stops it, or another task runs in its slot."""
        interrupts.ignore()
        for slot in slots:
            self._fold_slot(slot)
            yield slot

    def _fold_slot(self, slot: int) -> None:
        settings = self.settings
        log = configure(settings, "processor-worker").bind(slot=slot)
        take_turns_often()  # threads of the Kafka client wait for the GIL during a fold
        ready = programs(settings)
        instance = f"{settings.instance}/{slot}"
        with (
            exporting(settings, PROCESSOR.name, ready.plan.application, log, instance=instance) as traces,
            RedisStore(settings.redis_connection, ready.plan.application) as redis,
            LogWriter(
                settings.kafka_connection,
                frame_bytes_max=settings.frame_bytes_max,
                buffer_bytes_max=2 * OUTPUT_BYTES_MAX,
            ) as writer,
            LogReader(
                settings.kafka_connection,
                {},
                frame_bytes_max=settings.frame_bytes_max,
                counts_ahead=True,
                on_wait=lambda what: log.warning("waiting", reason=what),
            ) as reader,
        ):
            reader.look_up(stage_topic(ready.plan.application, stage) for stage in ready.stages)
            membership = RedisMembership(redis, ttl_ms=TTL_MS)
            metrics = PartitionMetrics(
                LiveMetrics(redis), time.monotonic, log, settings.gap_alarm_s, kept_cpus().metrics()
            )
            guard = guarded(settings, ready.plan.application, metrics, log)
            attempt = cast("TaskContext", TaskContext.get()).taskAttemptId()  # only Spark runs this
            task = Task(run=self.run, slot=slot, incarnation=self.incarnation(attempt))
            with (
                Watch(guard.at_work, guard.reports, guard.limit_ms),
                Heartbeat(membership, task, log) as heartbeat,
            ):
                Loop(
                    Restoring(
                        ready,
                        WorkerLimits(settings.partitions, settings.frame_bytes_max, settings.measures),
                        log,
                        ReferenceTables(reference_store(settings.snapshots, ready.plan.application, redis)),
                    ),
                    snapshot_store(settings.snapshots, ready.plan.application, redis),
                    heartbeat=heartbeat,
                    reader=reader,
                    writer=writer,
                    metrics=metrics,
                    guard=guard,
                    intervals=Intervals(
                        settings.snapshot_interval_ms / 1000, settings.live_interval_ms / 1000
                    ),
                    clock=CheckedClock(time.time_ns, log),
                    log=log,
                    stamping=Stamping(
                        measures=settings.measures, report=traces.report if traces is not None else None
                    ),
                ).fold_until_stopped()
