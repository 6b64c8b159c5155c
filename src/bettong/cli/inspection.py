"""What is known of a deployment at a moment: its services, how far its logs are folded, and what nobody can tell.

Facts from three sides: processes (of a suite on this machine), Redis (what services say), Kafka (where logs end). One
that does not answer takes away what only it knows, never the rest. `bettong status` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bettong.cli.overview import (
    Overview,
    PartitionRow,
    Record,
    StageSummary,
    overview,
    partition_rows,
    stages,
    stands_still,
)
from bettong.cli.service_rows import RUNNING, ProcessFacts, ServiceRow, local_rows, remote_rows
from bettong.connection_settings import KafkaConnection, RedisConnection
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import LogError, StoreError
from bettong.local.record import SuiteRecord
from bettong.metrics import STANDBY
from bettong.topics import stage_of_topic, stage_topic

# An answer that takes longer is none: people wait for it, and what they are told is to be true within 2 s.
_ANSWER_WAIT_S_MAX = 1.5
_ATTEMPTS_S = 0.5  # one more after a connection that a restart has cut

Offsets = Mapping[tuple[str, int], int]  # by (stage, partition)


@dataclass(frozen=True, slots=True)
class Logs:
    """Where the logs of the stages begin and end."""

    begins: Offsets
    ends: Offsets


@dataclass(frozen=True, slots=True)
class Inspection:
    """`unknown`: what does not answer, and so what is not known, in a line each."""

    application: str
    services: list[ServiceRow]
    overview: Overview
    stages: list[StageSummary]
    partitions: list[PartitionRow]
    unknown: list[str]

    @property
    def goes_on(self) -> bool:
        """Whether all services run, all answer, and no partition stands still."""
        runs = all(row.state in {RUNNING, STANDBY} for row in self.services)
        return runs and not self.unknown and not any(map(stands_still, self.partitions))


def inspect_suite(record: SuiteRecord) -> Inspection:
    """A suite on this machine. Raises nothing for a Kafka or a Redis that is away."""
    silent: dict[str, str] = {}
    live: Mapping[str, Record] = {}
    partitions: Mapping[tuple[str, int], Record] = {}
    logs: Logs | None = None
    try:
        live, partitions = _said(record.redis_connection, record.name)
    except StoreError as error:
        silent["redis"] = str(error)
    try:
        logs = _logs(record.kafka_connection, record.name)
    except LogError as error:
        silent["kafka"] = str(error)
    rows = local_rows(live, processes_of(record), silent)
    return _inspection(record.name, rows, live, partitions, logs, silent)


def inspect_remote(application: str, redis: RedisConnection, kafka: KafkaConnection | None) -> Inspection:
    """A deployment elsewhere; without `kafka`, lag is what the processor says. Raises StoreError."""
    silent: dict[str, str] = {}
    live, partitions = _said(redis, application)
    logs = None
    if kafka is not None:
        try:
            logs = _logs(kafka, application)
        except LogError as error:
            silent["kafka"] = str(error)
    return _inspection(application, remote_rows(live), live, partitions, logs, silent)


def processes_of(record: SuiteRecord) -> dict[str, ProcessFacts]:
    """The processes of a suite, looked at now."""
    return {
        name: ProcessFacts(
            each.pid,
            each.started_s,
            each.restarts,
            each.runs(),
            str(each.log),
            fault=each.fault,
            final_status=each.final_status,
        )
        for name, each in record.services.items()
    }


def _inspection(
    application: str,
    rows: list[ServiceRow],
    live: Mapping[str, Record],
    partitions: Mapping[tuple[str, int], Record],
    logs: Logs | None,
    silent: Mapping[str, str],
) -> Inspection:
    begins, ends = (logs.begins, logs.ends) if logs is not None else ({}, None)
    # What Kafka does not say now was said by it before: old metrics of lag are no better than a guess.
    told = partition_rows(live, partitions, begins=begins, ends=ends, lag_known="kafka" not in silent)
    return Inspection(
        application=application,
        services=rows,
        overview=overview(live, partitions, told),
        stages=stages(partitions),
        partitions=told,
        unknown=[f"{why}; what only it knows is left out" for why in silent.values()],
    )


def _said(
    redis: RedisConnection, application: str
) -> tuple[Mapping[str, Record], Mapping[tuple[str, int], Record]]:
    with RedisStore(redis, application, answer_wait_s_max=_ANSWER_WAIT_S_MAX) as store:
        metrics = LiveMetrics(store)
        return metrics.live(attempts_s=_ATTEMPTS_S), metrics.partitions(attempts_s=_ATTEMPTS_S)


def _logs(kafka: KafkaConnection, application: str) -> Logs:
    def by_stage(offsets: Offsets) -> Offsets:
        return {
            (stage_of_topic(application, topic), partition): offset
            for (topic, partition), offset in offsets.items()
        }

    with LogAdmin(kafka, answer_wait_s_max=_ANSWER_WAIT_S_MAX) as admin:
        topics = admin.topics(stage_topic(application, ""))
        return Logs(by_stage(admin.beginnings(topics)), by_stage(admin.ends(topics)))
