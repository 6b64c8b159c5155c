"""Runs the processor: application, topics, Spark's context, and the schedule until SIGTERM or SIGINT."""

import signal
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

from pyspark import SparkContext
from pyspark.sql import SparkSession

from bettong.application.plan import Plan, plan
from bettong.config.processor import ProcessorSettings, Schedule
from bettong.edges.application_file import load
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.metrics_endpoint import Identity, MetricsEndpoint
from bettong.edges.partitioning_log import prepare_topics
from bettong.edges.redis_store import LiveMetrics, RedisLead, RedisLogs, RedisStore
from bettong.edges.snapshot_stores import clear_local_states, local_states, log_id, prepare, snapshot_store
from bettong.edges.trace_export import require_exporter
from bettong.errors import BettongError
from bettong.identifiers import PartitionId, TopicPartition
from bettong.logs import Logger, configure
from bettong.metrics import SNAPSHOT_OFFSET
from bettong.services import PROCESSOR
from bettong.topics import stage_of_topic, stage_topic
from bettong_processor import resuming
from bettong_processor.application_code import ApplicationCode
from bettong_processor.changing_run import ChangingRun
from bettong_processor.java import Java
from bettong_processor.leading import TTL_MS, Leading
from bettong_processor.micro_batch import query as micro_batch
from bettong_processor.micro_batch.offsets import (
    clear_unfinished,
    forget,
    forget_earlier,
    is_behind,
    snapshot_offsets,
)
from bettong_processor.programs import programs
from bettong_processor.references.loading import Loads
from bettong_processor.references.lost import LostVersions
from bettong_processor.references.opening import kept_tables
from bettong_processor.references.reloading import Reloading, store_first
from bettong_processor.resident import driver as resident
from bettong_processor.restoring import WorkerLimits
from bettong_processor.supervision import Live, Run, Supervisor
from bettong_processor.warming import warm_up


def run(settings: ProcessorSettings, java: Java, code: ApplicationCode | None = None) -> None:
    """Runs until SIGTERM or SIGINT. When it cannot go on, raises a BettongError that names the remedy.

    `code`: the code that `settings` name, if it may be reloaded.
    """
    prepare(settings.snapshots)
    if settings.measures:
        require_exporter(settings.trace_endpoint, "BETTONG_TRACE_ENDPOINT")
    log = configure(settings, PROCESSOR.name)
    planned = plan(load(settings.application))
    admin, store = (
        LogAdmin(settings.kafka_connection),
        RedisStore(settings.redis_connection, planned.application),
    )
    metrics = LiveMetrics(store)
    live = Live(metrics, settings.instance, log, time.time, settings.live_interval_ms / 1000)
    identity = Identity(PROCESSOR.name, planned.application, settings.instance)
    with MetricsEndpoint(settings.metrics_listen, identity, metrics, log):
        try:
            _run(settings, java, planned, admin, store, live, log, code)
        except BettongError as error:
            live.report("stopping", str(error))  # for those who cannot see the exit code
            raise


def _run(
    settings: ProcessorSettings,
    java: Java,
    planned: Plan,
    admin: LogAdmin,
    store: RedisStore,
    live: Live,
    log: Logger,
    code: ApplicationCode | None = None,
) -> None:
    beside = ThreadPoolExecutor(1, thread_name_prefix="beside")
    # Compiles while Java starts: errors that only compiling finds are reported here, and workers load cached kernels.
    compiled = beside.submit(programs, settings)
    lead = RedisLead(store, ttl_ms=TTL_MS)
    with Leading(lead, settings.instance, clock=time.monotonic, log=log) as leading:
        begun_s = time.monotonic()
        context = java.context(planned.application)
        log.info("Spark has started", seconds=round(time.monotonic() - begun_s, 1))
        with ExitStack() as ending:  # called in reverse order, each even if another one fails
            ending.callback(log.info, "stopped")
            ending.callback(clear_local_states, settings.state_folder(planned.application))
            ending.callback(beside.shutdown, cancel_futures=True)
            ending.callback(java.stop)
            compiled.result()
            leading.ready()
            stands_by = leading.leader not in {"", settings.instance}
            if settings.schedule is Schedule.MICRO_BATCH or stands_by:
                # So that the first batch, or a takeover of the lead, need not wait for Python to start.
                beside.submit(warm_up, context, settings)

            loads, lost = Loads(), LostVersions()

            def start_with(settings: ProcessorSettings) -> Run:
                planned = programs(settings).plan
                tables = kept_tables(settings, planned, store, loads, log)
                store_first(
                    tables,
                    lost,
                    # A processor that has lost the lead stores nothing: the new leader may be storing.
                    is_stopping=lambda: supervisor.is_stopping() or not leading.leads,
                    waiting=partial(live.report, "waiting"),
                    poll_s=live.interval_s,
                )
                run = _start(context, settings, planned, admin, store, lead, log)
                return Reloading(run, tables, lost, clock=time.time, log=log) if tables else run

            changing = partial(ChangingRun, code, start_with, log) if code is not None else None
            supervisor = Supervisor(
                start=changing or partial(start_with, settings),
                admin=admin,
                store=store,
                lead=leading,
                live=live,
                log=log,
                java_ended=java.ended,
            )
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda _number, _frame: supervisor.stop())
            live.report("starting")
            supervisor.run()


def _start(
    context: SparkContext,
    settings: ProcessorSettings,
    planned: Plan,
    admin: LogAdmin,
    store: RedisStore,
    lead: RedisLead,
    log: Logger,
) -> Run:
    """Creates or checks the topics, and starts the schedule. Raises LogError, StoreError."""
    prepared = prepare_topics(
        admin,
        settings.kafka_connection,
        planned.application,
        planned.topics,
        partitions=settings.partitions,
        replication=settings.replication,
        frame_bytes_max=settings.frame_bytes_max,
    )
    topic_ids = admin.identities([stage_topic(planned.application, stage.name) for stage in planned.stages])
    _check(settings, planned, admin, store, topic_ids, log)
    folder = settings.checkpoint_of(planned.application)
    if settings.schedule is Schedule.RESIDENT:
        if forget(context, folder):
            log.info("the schedule has changed: the checkpoint is deleted, snapshots say where to go on")
        lead.folds(settings.instance)
        return resident.start_run(context, settings, planned, store, log)
    checkpoint = settings.checkpoint_of(planned.application, prepared.generation)
    first_offsets = _first_offsets(context, settings, planned, store, lead, checkpoint, log)
    return micro_batch.start(
        SparkSession.builder.getOrCreate(),
        settings,
        store,
        checkpoint=checkpoint,
        stages={stage_topic(planned.application, stage.name): stage.name for stage in planned.stages},
        first_offsets=first_offsets,
        log_id=log_id(topic_ids),
        log=log,
    )


def _first_offsets(
    context: SparkContext,
    settings: ProcessorSettings,
    planned: Plan,
    store: RedisStore,
    lead: RedisLead,
    checkpoint: str,
    log: Logger,
) -> dict[TopicPartition, int]:
    """Where a query without a checkpoint starts. Deletes those that others have left behind, and unfinished batches."""
    folder = settings.checkpoint_of(planned.application)
    last = lead.folded_last()
    if last not in {"", settings.instance} and forget(context, folder):
        log.info(
            "another processor has folded: the checkpoint is deleted, snapshots say where to go on", last=last
        )
    if forget_earlier(context, folder, checkpoint):
        log.info("checkpoints of before the repartitioning are deleted, snapshots say where to go on")
    lead.folds(settings.instance)
    snapshots = snapshot_store(settings.snapshots, planned.application, store)
    first_offsets = snapshot_offsets(snapshots, planned, settings.partitions)
    if is_behind(context, checkpoint, first_offsets) and forget(context, checkpoint):
        log.info("snapshots are newer than the checkpoint: it is deleted, they say where to go on")
    metrics = LiveMetrics(store)
    for (topic, partition), offset in first_offsets.items():
        id_ = PartitionId(stage_of_topic(planned.application, topic), partition)
        metrics.write_partition(id_, {SNAPSHOT_OFFSET.name: offset})
    if clear_unfinished(context, checkpoint):
        log.info("a batch had begun and was not committed: it is planned anew", checkpoint=checkpoint)
    return first_offsets


def _check(
    settings: ProcessorSettings,
    planned: Plan,
    admin: LogAdmin,
    store: RedisStore,
    topic_ids: Mapping[str, str],
    log: Logger,
) -> None:
    """Raises the errors that would end the schedule with the first records: see `resuming.check`."""
    application = planned.application
    stores = [snapshot_store(settings.snapshots, application, store)]
    if settings.schedule is Schedule.MICRO_BATCH:
        stores.insert(0, local_states(settings.state_folder(application), log_id(topic_ids)))
    ready = programs(settings)
    logs, begins = RedisLogs(store), admin.beginnings(topic_ids)
    limits = WorkerLimits(settings.partitions, settings.frame_bytes_max)
    for deadly in resuming.check(ready, limits, stores, begins, replaced=logs.replaced(topic_ids)):
        log.warning("saved states could not be checked at the start; workers will report them", fault=deadly)
    logs.store_ids(topic_ids)
    if policy := store.eviction():
        log.warning(
            "Redis deletes data when it is full, as a cache does: set its maxmemory-policy to noeviction",
            policy=policy,
        )
