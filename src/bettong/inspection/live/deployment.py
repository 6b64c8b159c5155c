"""Asks Redis what services say, and Kafka where logs end."""

from __future__ import annotations

from collections.abc import Mapping

from bettong.config.connection_settings import KafkaConnection, RedisConnection
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.partitioning_log import kept_partitioning
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import LogError, StoreError
from bettong.identifiers import PartitionId, TopicPartition, in_use
from bettong.inspection.deployment import DeploymentAnswers, Inspection, Logs, Offsets, inspection
from bettong.inspection.overview import Record
from bettong.inspection.services import remote_rows
from bettong.topics import stage_of_topic, stage_topic

# An answer that takes longer is none: people wait for it, and what they read is to be true within 2 s.
_ANSWER_WAIT_S_MAX = 1.5
_ATTEMPTS_S = 0.5  # one more after a connection that a restart has cut


def inspect_remote(application: str, redis: RedisConnection, kafka: KafkaConnection | None) -> Inspection:
    """A deployment elsewhere; without `kafka`, lag is what the processor says. Raises StoreError."""
    answers = ask(application, redis, kafka)
    return inspection(application, remote_rows(answers.live), answers)


def ask(
    application: str,
    redis: RedisConnection,
    kafka: KafkaConnection | None,
    *,
    redis_may_be_away: bool = False,
) -> DeploymentAnswers:
    """What Redis and Kafka say now. Raises StoreError for a Redis that is away, unless it may be."""
    silent: dict[str, str] = {}
    live: Mapping[str, Record] = {}
    partitions: Mapping[PartitionId, Record] = {}
    logs: Logs | None = None
    try:
        live, partitions = _said(redis, application)
    except StoreError as error:
        if not redis_may_be_away:
            raise
        silent["redis"] = str(error)
    if kafka is not None:
        try:
            logs, used = _logs(kafka, application)
            partitions = in_use(partitions, used) if used is not None else partitions
        except LogError as error:
            silent["kafka"] = str(error)
    return DeploymentAnswers(live, partitions, logs, silent)


def _said(
    redis: RedisConnection, application: str
) -> tuple[Mapping[str, Record], Mapping[PartitionId, Record]]:
    with RedisStore(redis, application, answer_wait_s_max=_ANSWER_WAIT_S_MAX) as store:
        metrics = LiveMetrics(store)
        return metrics.live(attempts_s=_ATTEMPTS_S), metrics.partitions(attempts_s=_ATTEMPTS_S)


def _logs(kafka: KafkaConnection, application: str) -> tuple[Logs, int | None]:
    """Of the partitions that are in use, and how many these are; None: all."""

    def by_stage(offsets: Mapping[TopicPartition, int]) -> Offsets:
        return {
            PartitionId(stage_of_topic(application, topic), partition): offset
            for (topic, partition), offset in offsets.items()
        }

    with LogAdmin(kafka, answer_wait_s_max=_ANSWER_WAIT_S_MAX) as admin:
        topics = admin.topics(stage_topic(application, ""))
        kept = kept_partitioning(admin, kafka, application)
        begins, ends = admin.beginnings(topics), admin.ends(topics)
        if kept is None:
            return Logs(by_stage(begins), by_stage(ends)), None
        used = kept.partitions
        return Logs(by_stage(in_use(begins, used)), by_stage(in_use(ends, used))), used
