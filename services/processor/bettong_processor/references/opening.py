"""Makes the reference tables of an application, with their connections and loaders."""

import time
from collections.abc import Mapping

from pyspark.sql import SparkSession

from bettong.application.plan import Plan
from bettong.application.reference_source import ReferenceSource
from bettong.clocks import CheckedClock
from bettong.config.processor import ProcessorSettings
from bettong.edges.kafka_log import LogAdmin, LogWriter
from bettong.edges.redis_store import RedisStore
from bettong.edges.snapshot_stores import reference_store
from bettong.identifiers import in_use
from bettong.logs import Logger
from bettong.topics import stage_topic
from bettong_processor.references.kept import KeptTable
from bettong_processor.references.loading import Loads, loaded_bytes
from bettong_processor.references.naming import ANSWER_MS_MAX, BUFFER_BYTES_MAX, Naming


def kept_tables(
    settings: ProcessorSettings, planned: Plan, redis: RedisStore, loads: Loads, log: Logger
) -> list[KeptTable]:
    """The tables of all stages. Does not connect yet. `loads`: one object for the life of the process."""
    application = planned.application
    store = reference_store(settings.snapshots, application, redis)
    naming = Naming(
        application,
        settings.partitions,
        connect=lambda: LogWriter(
            settings.kafka_connection,
            frame_bytes_max=settings.frame_bytes_max,
            buffer_bytes_max=BUFFER_BYTES_MAX,
            delivery_timeout_ms=ANSWER_MS_MAX,
        ),
        clock=CheckedClock(time.time_ns, log),
        redis=redis,
    )

    def begins(stage: str) -> Mapping[int, int]:
        topic = stage_topic(application, stage)
        # A client for this thread only: other threads of the driver have their own.
        with LogAdmin(settings.kafka_connection) as admin:
            found = admin.beginnings([topic])
        return {each.partition: begin for each, begin in in_use(found, settings.partitions).items()}

    def kept(join: str, stage: str, source: ReferenceSource) -> KeptTable:
        return KeptTable(
            join,
            stage,
            source,
            load=lambda: loads.run_alone(
                join, lambda: loaded_bytes(join, source, SparkSession.builder.getOrCreate)
            ),
            store=store,
            name=naming.name,
            begins=begins,
            log=log,
        )

    return [
        kept(join, stage.name, source)
        for stage in planned.stages
        for join, source in stage.references.items()
    ]
