"""Polls a deployment and its dead letters."""

from __future__ import annotations

from typing import Protocol

from bettong.closing import Closing
from bettong.config.connection_settings import KafkaConnection, RedisConnection
from bettong.inspection.deployment import DeploymentAnswers, Inspection, inspection
from bettong.inspection.live.dead_letter_tail import DeadLetterTail
from bettong.inspection.live.deployment import LiveDeployment
from bettong.inspection.reason_counts import ReasonCounts
from bettong.inspection.services import remote_rows


class DeploymentWatch(Protocol):
    """The source of data for live displays of a deployment. For one thread."""

    def inspect(self) -> Inspection:
        """Its inspection now. Blocks for 8 s at most. Raises BettongError when nothing runs."""

    def reasons(self, seconds: float) -> ReasonCounts | None:
        """Dead letters by reason, after reading for about `seconds`; None where its Kafka is unknown.

        Raises LogError.
        """

    def close(self) -> None:
        """Closes the connections."""


class LiveWatch(Closing):
    """A `DeploymentWatch` of one application at its Redis and, if it is known, its Kafka."""

    def __init__(
        self,
        application: str,
        redis: RedisConnection,
        kafka: KafkaConnection | None,
        *,
        frame_bytes_max: int,
    ) -> None:
        """Does not connect yet. Raises StoreError for an invalid URL of Redis."""
        self._application = application
        self._live = LiveDeployment(application, redis, kafka)
        self._tail = (
            DeadLetterTail(kafka, application, frame_bytes_max=frame_bytes_max) if kafka is not None else None
        )

    def answers(self) -> DeploymentAnswers:
        """The answers of Redis and Kafka, or that they are away."""
        return self._live.answers(redis_may_be_away=True)

    def inspect(self) -> Inspection:
        """See DeploymentWatch. Raises nothing for a Redis or a Kafka that is away."""
        answers = self.answers()
        return inspection(self._application, remote_rows(answers.live, answers.silent), answers)

    def reasons(self, seconds: float) -> ReasonCounts | None:
        """See DeploymentWatch."""
        return self._tail.count(seconds) if self._tail is not None else None

    def close(self) -> None:
        """See DeploymentWatch."""
        self._live.close()
        if self._tail is not None:
            self._tail.close()
