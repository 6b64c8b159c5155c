"""Reads services' records from Redis, and the ends of logs from Kafka."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from bettong.closing import Closing
from bettong.config.connection_settings import KafkaConnection, RedisConnection
from bettong.config.service import LIVE_INTERVAL_MS
from bettong.earlier_ends import EarlierEnds
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.partitioning_log import kept_partitioning
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.edges.redis_store.membership import read_holders
from bettong.errors import LogError, StoreError
from bettong.identifiers import PartitionId, TopicPartition, in_use
from bettong.inspection.deployment import DeploymentAnswers, Inspection, Logs, Offsets, inspection
from bettong.inspection.overview import is_folded, partition_rows
from bettong.inspection.services import remote_rows
from bettong.topics import stage_of_topic, stage_topic

# A slower answer counts as none: people wait for it, and what they read shall be true within 2 s.
_ANSWER_WAIT_S_MAX = 1.5
_ATTEMPTS_S = 0.5  # for one more attempt after a restart has cut the connection
# So often reports are read again, until those of workers that keep up are there.
_REPORTS_AWAITED = 3


def inspect_remote(application: str, redis: RedisConnection, kafka: KafkaConnection | None) -> Inspection:
    """A deployment elsewhere; without `kafka`, lag is as the processor reports it. Raises StoreError."""
    answers = ask(application, redis, kafka)
    return inspection(application, remote_rows(answers.live), answers)


def ask(
    application: str,
    redis: RedisConnection,
    kafka: KafkaConnection | None,
    *,
    redis_may_be_away: bool = False,
) -> DeploymentAnswers:
    """The answers of Redis and Kafka now. Raises StoreError for a Redis that is away, unless it may be."""
    with LiveDeployment(application, redis, kafka) as live:
        return live.answers(redis_may_be_away=redis_may_be_away)


class LiveDeployment(Closing):
    """Reads the Redis and the Kafka of one deployment repeatedly, over the same connections.

    For one thread. A call takes milliseconds, and 7 s at most while neither answers. Under load, and where none came
    in the last 2 s, it awaits reports for 0.75 s more: see `answers`. `application`: its name.
    """

    def __init__(self, application: str, redis: RedisConnection, kafka: KafkaConnection | None) -> None:
        """Does not connect yet. Raises StoreError for an invalid URL of Redis."""
        self.application = application
        self._store = RedisStore(redis, application, answer_wait_s_max=_ANSWER_WAIT_S_MAX)
        self._kafka = kafka
        self._admin = LogAdmin(kafka, answer_wait_s_max=_ANSWER_WAIT_S_MAX) if kafka is not None else None
        self._earlier = EarlierEnds[PartitionId](LIVE_INTERVAL_MS / 1000)  # as the setting is by default

    def answers(self, *, redis_may_be_away: bool = False) -> DeploymentAnswers:
        """Their answers now. Raises StoreError for a Redis that is away, unless it may be.

        Where no earlier call tells up to where lag counts (see `earlier_ends`), and a log has records of which no
        report says yet that they are folded, waits until one does, for as long as a worker that keeps up takes.
        """
        ends_before = self._earlier.before(time.monotonic())
        found = self._answers_now(redis_may_be_away=redis_may_be_away)
        if ends_before is None and found.logs is not None:
            ends_before = found.logs.ends
            for _ in range(_REPORTS_AWAITED):
                if not _awaits_reports(found, ends_before):
                    break
                time.sleep(self._earlier.report_age_s_max / _REPORTS_AWAITED)
                found = self._answers_now(redis_may_be_away=redis_may_be_away)
        if found.logs is None:
            return found
        return replace(found, logs=replace(found.logs, ends_before=ends_before))

    def close(self) -> None:
        """Closes the connections."""
        self._store.close()
        if self._admin is not None:
            self._admin.close()

    def _answers_now(self, *, redis_may_be_away: bool) -> DeploymentAnswers:
        silent: dict[str, str] = {}
        answers = DeploymentAnswers()
        try:
            answers = self._stored_records()
        except StoreError as error:
            if not redis_may_be_away:
                raise
            silent["redis"] = str(error)
        logs: Logs | None = None
        if self._admin is not None and self._kafka is not None:
            try:
                logs, used = self._logs(self._admin, self._kafka)
                self._earlier.add(logs.ends, time.monotonic())
                if used is not None:
                    answers = replace(answers, partitions=in_use(answers.partitions, used))
            except LogError as error:
                self._admin.close()  # the next call connects again
                silent["kafka"] = str(error)
        return replace(answers, logs=logs, silent=silent)

    def _stored_records(self) -> DeploymentAnswers:
        metrics = LiveMetrics(self._store)
        holders = read_holders(self._store, attempts_s=_ATTEMPTS_S)
        return DeploymentAnswers(
            live=metrics.live(attempts_s=_ATTEMPTS_S),
            partitions=metrics.partitions(attempts_s=_ATTEMPTS_S),
            slots=holders.slots,
            incarnations=holders.incarnations,
        )

    def _logs(self, admin: LogAdmin, kafka: KafkaConnection) -> tuple[Logs, int | None]:
        """The ends of the partitions in use, and how many these are; None: all."""

        def by_stage(offsets: Mapping[TopicPartition, int]) -> Offsets:
            return {
                PartitionId(stage_of_topic(self.application, topic), partition): offset
                for (topic, partition), offset in offsets.items()
            }

        topics = admin.topics(stage_topic(self.application, ""))
        kept = kept_partitioning(admin, kafka, self.application)
        begins, ends = admin.beginnings(topics), admin.ends(topics)
        if kept is None:
            return Logs(by_stage(begins), by_stage(ends)), None
        used = kept.partitions
        return Logs(by_stage(in_use(begins, used)), by_stage(in_use(ends, used))), used


def _awaits_reports(found: DeploymentAnswers, ends: Offsets) -> bool:
    """Whether a worker may have folded more of the logs, which ended there, than its reports say yet."""
    if found.logs is None or not is_folded(found.live):
        return False
    rows = partition_rows(found.live, found.partitions, begins=found.logs.begins, ends=ends)
    return any(row.unfolded for row in rows)
