"""Reads the facts about one processor's health from Redis and Kafka."""

from __future__ import annotations

from collections.abc import Mapping

from bettong.config.processor import ProcessorSettings
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import LogError, StoreError
from bettong.identifiers import TopicPartition, in_use
from bettong.inspection.health import Facts, facts_of
from bettong.inspection.overview import count_of
from bettong.metrics import LAG, OFFSET


def record_of(settings: ProcessorSettings, application: str) -> tuple[dict[str, str], str]:
    """The live record of the processor that has these settings, or why Redis cannot be read."""
    try:
        with RedisStore(settings.redis_connection, application) as store:
            return LiveMetrics(store).live().get(settings.instance, {}), ""
    except StoreError as error:
        return {}, str(error)


def facts_now(settings: ProcessorSettings, application: str, topics: Mapping[str, str]) -> Facts | None:
    """Its progress; None when Kafka or Redis does not answer. `topics`: its stages by their topics."""
    names = {stage: topic for topic, stage in topics.items()}
    try:
        with (
            RedisStore(settings.redis_connection, application) as store,
            LogAdmin(settings.kafka_connection) as admin,
        ):
            live = LiveMetrics(store).live()
            partitions = in_use(LiveMetrics(store).partitions(), settings.partitions)
            ends = in_use(admin.ends(list(topics)), settings.partitions)
    except (LogError, StoreError):
        return None
    offsets = {
        TopicPartition(names[stage], partition): int(record[OFFSET.name])
        for (stage, partition), record in partitions.items()
        if stage in names and OFFSET.name in record
    }
    reported = count_of(live.get(settings.instance, {}), LAG)
    return facts_of(speaks=settings.instance in live, ends=ends, offsets=offsets, reported=reported)
