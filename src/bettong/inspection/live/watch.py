"""Looks at a deployment again and again, over connections that stay open."""

from __future__ import annotations

from collections.abc import Mapping

from bettong.closing import Closing
from bettong.config.connection_settings import KafkaConnection, RedisConnection
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.edges.redis_store.membership import RedisMembership
from bettong.errors import LogError, StoreError
from bettong.identifiers import PartitionId, TopicPartition
from bettong.inspection.deployment import DeploymentAnswers, Logs, Offsets
from bettong.topics import stage_of_topic, stage_topic

# An answer that takes longer is none: people wait for it, and what they read is to be true within 2 s.
_ANSWER_WAIT_S_MAX = 1.5
_ATTEMPTS_S = 0.5
# Topics come with an application's start, and seldom go: so often they are asked for again.
_TOPICS_EVERY = 30


class DeploymentWatch(Closing):
    """Of one deployment. For one thread. Raises nothing for a Redis or a Kafka that is away: answers say who is."""

    def __init__(self, application: str, redis: RedisConnection, kafka: KafkaConnection) -> None:
        self._application = application
        self._store = RedisStore(redis, application, answer_wait_s_max=_ANSWER_WAIT_S_MAX)
        self._metrics = LiveMetrics(self._store)
        # It only reads: how long slots live is said by those that renew them.
        self._members = RedisMembership(self._store, ttl_ms=0)
        self._admin = LogAdmin(kafka, answer_wait_s_max=_ANSWER_WAIT_S_MAX)
        self._topics: list[str] = []
        self._asked = 0

    def ask(self) -> DeploymentAnswers:
        """What Redis and Kafka say now."""
        silent: dict[str, str] = {}
        live: Mapping[str, Mapping[str, str]] = {}
        partitions: Mapping[PartitionId, Mapping[str, str]] = {}
        slots: Mapping[PartitionId, int] = {}
        logs: Logs | None = None
        try:
            live = self._metrics.live(attempts_s=_ATTEMPTS_S)
            partitions = self._metrics.partitions(attempts_s=_ATTEMPTS_S)
            slots = self._members.read_holders()
        except StoreError as error:
            silent["redis"] = str(error)
        try:
            logs = self._logs()
        except LogError as error:
            silent["kafka"] = str(error)
            self._topics = []
        return DeploymentAnswers(live, partitions, logs, silent, slots)

    def close(self) -> None:
        """Closes the connections."""
        self._admin.close()
        self._store.close()

    def _logs(self) -> Logs:
        if not self._topics or self._asked % _TOPICS_EVERY == 0:
            self._topics = self._admin.topics(stage_topic(self._application, ""))
        self._asked += 1
        return Logs(
            self._by_stage(self._admin.beginnings(self._topics)),
            self._by_stage(self._admin.ends(self._topics)),
        )

    def _by_stage(self, offsets: Mapping[TopicPartition, int]) -> Offsets:
        return {
            PartitionId(stage_of_topic(self._application, topic), partition): offset
            for (topic, partition), offset in offsets.items()
        }
