"""Asks Redis what services say, and Kafka where logs end."""

from __future__ import annotations

from bettong.config.connection_settings import KafkaConnection, RedisConnection
from bettong.inspection.deployment import DeploymentAnswers, Inspection, inspection
from bettong.inspection.live.watch import DeploymentWatch
from bettong.inspection.services import remote_rows


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
    with DeploymentWatch(application, redis, kafka) as watch:
        return watch.ask(redis_may_be_away=redis_may_be_away)
