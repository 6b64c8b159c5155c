"""The lag that a receiver reports after it could not ask for it."""

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import cast

import pytest
import structlog

from bettong import metrics
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.redis_store import LiveMetrics
from bettong.errors import LogUnavailableError
from bettong.identifiers import TopicPartition
from bettong_receiver.delivery.tasks import SinkTasks
from bettong_receiver.reporting import Reporter
from bettong_receiver.room import Room
from bettong_receiver.status import RUNNING, ReceiverStatus

LOG = TopicPartition("shop.sink.results", 0)
TASKS = cast("SinkTasks", SimpleNamespace(offsets=lambda: {LOG: 4}, destination_offsets=dict))


class Admin:
    """Fails once. Notes the state at each question, and ends the asking at the third."""

    def __init__(self, status: ReceiverStatus) -> None:
        self.states: list[object] = []
        self._status = status

    def ends(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """See LogAdmin."""
        assert set(topics) == {LOG.topic}
        self.states.append(self._status.metrics()[metrics.STATE.name])
        if len(self.states) == 1:
            raise LogUnavailableError("away")
        if len(self.states) == 3:
            raise asyncio.CancelledError
        return {LOG: 7}

    def close(self) -> None:
        """See LogAdmin."""


def test_a_receiver_waits_for_kafka_and_then_measures_its_lag_again() -> None:
    async def measure() -> list[object]:
        status = ReceiverStatus(lambda: 1.0, structlog.get_logger())
        status.set_state(RUNNING)
        admin = Admin(status)
        reporter = Reporter(
            cast("LiveMetrics", None),
            cast("LogAdmin", admin),
            status,
            structlog.get_logger(),
            instance="receiver",
            interval_s=1.0,
            tasks=TASKS,
            room=Room(readers_max=9, bytes_max=1, stall_s=1.0, clock_s=lambda: 1.0),
            topics={"results": LOG.topic},
            extra=dict,
        )
        try:
            with pytest.raises(asyncio.CancelledError):
                await reporter.follow_lag()
        finally:
            reporter.close()
        return admin.states

    assert asyncio.run(asyncio.wait_for(measure(), 60)) == ["running", "waiting", "running"]
