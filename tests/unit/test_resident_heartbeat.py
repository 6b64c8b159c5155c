"""How often a slot of the resident schedule sends heartbeats."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import cast

import pytest
import structlog

from bettong.edges.redis_store.membership import HeartbeatResponse, RedisMembership, SlotAssignment, Task
from bettong.identifiers import PartitionId
from bettong_processor.resident.heartbeat import Heartbeat

EAGER_S, USUAL_S, REST_S = 0.005, 0.05, 0.15
EAGER_S_MAX = 3.0
OWN, OTHERS = PartitionId("s", 0), PartitionId("s", 1)
TASK = Task(run="r", slot=0, incarnation=1)
NOTHING: frozenset[PartitionId] = frozenset()


@dataclass
class Responses:
    """A membership whose next response is known."""

    assignment: SlotAssignment | None = None
    acquired: frozenset[PartitionId] = NOTHING
    lost: frozenset[PartitionId] = NOTHING

    def send_heartbeat(self, *_: object, **__: object) -> HeartbeatResponse:
        response = HeartbeatResponse(self.assignment, self.lost, self.acquired, redis_ns=1)
        self.assignment, self.acquired, self.lost = None, NOTHING, NOTHING
        return response


@dataclass
class Clock:
    """Seconds, that pass when a test says so."""

    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


def pause_s(heartbeat: Heartbeat) -> float:
    return heartbeat._send_heartbeat(heartbeat._desired.held, NOTHING, set())


def test_a_slot_that_waits_for_a_partition_is_eager_for_a_while_after_each_assignment(clock: Clock) -> None:
    responses = Responses(SlotAssignment(1, {OWN: 0}))
    heartbeat = Heartbeat(cast("RedisMembership", responses), TASK, structlog.get_logger())
    assert pause_s(heartbeat) == EAGER_S
    clock.now_s += EAGER_S_MAX - 0.1
    assert pause_s(heartbeat) == EAGER_S
    clock.now_s += 0.2
    assert pause_s(heartbeat) == USUAL_S, "the other slot does not let go"
    responses.assignment = SlotAssignment(2, {OWN: 0})
    assert pause_s(heartbeat) == USUAL_S, "nothing has changed for this slot"
    responses.assignment = SlotAssignment(3, {OWN: 0, OTHERS: 0})
    assert pause_s(heartbeat) == EAGER_S
    responses.acquired = frozenset({OWN, OTHERS})
    assert pause_s(heartbeat) == USUAL_S


def test_a_slot_that_lost_all_partitions_is_not_eager(clock: Clock) -> None:
    responses = Responses(SlotAssignment(1, {OWN: 0}), acquired=frozenset({OWN}))
    heartbeat = Heartbeat(cast("RedisMembership", responses), TASK, structlog.get_logger())
    assert pause_s(heartbeat) == USUAL_S
    clock.now_s += EAGER_S_MAX + 0.1
    responses.assignment = SlotAssignment(2, {OWN: 1})
    assert pause_s(heartbeat) == USUAL_S
    heartbeat.rest(at_rest=True)
    assert pause_s(heartbeat) == REST_S
