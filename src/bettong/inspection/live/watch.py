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
from bettong.inspection.overview import Record
from bettong.topics import stage_of_topic, stage_topic

# An answer that takes longer is none: people wait for it, and what they read is to be true within 2 s.
_ANSWER_WAIT_S_MAX = 1.5
_ATTEMPTS_S = 0.5  # one more after a connection that a restart has cut
# Topics come with an application's start, and seldom go: so often they are asked for again.
_TOPICS_EVERY = 30


class DeploymentWatch(Closing):
    """Of one deployment, for one thread. Answers say which of Redis and Kafka is away."""

    def __init__(self, application: str, redis: RedisConnection, kafka: KafkaConnection | None) -> None:
        """Without `kafka` nobody is asked where logs end."""
        self._application = application
        self._store = RedisStore(redis, application, answer_wait_s_max=_ANSWER_WAIT_S_MAX)
        self._metrics = LiveMetrics(self._store)
        # It only reads: how long slots live is said by those that renew them.
        self._members = RedisMembership(self._store, ttl_ms=0)
        self._admin = LogAdmin(kafka, answer_wait_s_max=_ANSWER_WAIT_S_MAX) if kafka is not None else None
        self._topics: list[str] = []
        self._asked = 0

    def ask(self, *, redis_may_be_away: bool = True) -> DeploymentAnswers:
        """What Redis and Kafka say now. Raises StoreError for a Redis that is away, unless it may be."""
        silent: dict[str, str] = {}
        live: Mapping[str, Record] = {}
        partitions: Mapping[PartitionId, Record] = {}
        slots: Mapping[PartitionId, int] = {}
        logs: Logs | None = None
        try:
            live = self._metrics.live(attempts_s=_ATTEMPTS_S)
            partitions = self._metrics.partitions(attempts_s=_ATTEMPTS_S)
            slots = self._members.read_holders()
        except StoreError as error:
            if not redis_may_be_away:
                raise
            silent["redis"] = str(error)
        if self._admin is not None:
            try:
                logs = self._logs(self._admin)
            except LogError as error:
                silent["kafka"] = str(error)
                self._topics = []
        return DeploymentAnswers(live, partitions, logs, silent, slots)

    def close(self) -> None:
        """Closes the connections."""
        if self._admin is not None:
            self._admin.close()
        self._store.close()

    def _logs(self, admin: LogAdmin) -> Logs:
        if not self._topics or self._asked % _TOPICS_EVERY == 0:
            self._topics = admin.topics(stage_topic(self._application, ""))
        self._asked += 1
        return Logs(self._by_stage(admin.beginnings(self._topics)), self._by_stage(admin.ends(self._topics)))

    def _by_stage(self, offsets: Mapping[TopicPartition, int]) -> Offsets:
        return {
            PartitionId(stage_of_topic(self._application, topic), partition): offset
            for (topic, partition), offset in offsets.items()
        }
