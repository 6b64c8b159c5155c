"""How many keys live, began, were deleted and expired: what a processor says of a partition, restarted or not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest

import bettong
from bettong import metrics
from bettong.application.plan import plan
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import program
from bettong_processor.reporting import metrics_of
from tests.samples.worker import data, tick, worker

SECOND_NS = 10**9


@dataclass
class Step:
    key: bettong.u32


@dataclass
class Steps:
    count: int = 0


def step(step: Step, steps: Steps) -> Step:
    steps.count += 1
    return step


def numbers(of: PartitionWorker) -> tuple[int, ...]:
    names = (metrics.KEYS, metrics.CREATED, metrics.DELETED, metrics.EXPIRED)
    return tuple(int(metrics_of(of)[each.name]) for each in names)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_each_state_that_began_lives_or_was_deleted_or_has_expired(*, is_restarted: bool) -> None:
    app = bettong.Application("steps")
    app.source("in", schema=Step, key="key").stateful(
        step, state=Steps, delete_when=lambda steps: steps.count == 2, ttl=timedelta(seconds=10)
    ).sink("out")
    (stage,) = plan(app).stages
    ready = program(stage, compiled=False)
    one = worker(ready)
    log = [
        (data("in/a", 1, [Step(1), Step(2)], ingest_ns=SECOND_NS), (2, 2, 0, 0)),
        (data("in/a", 2, [Step(1)], ingest_ns=2 * SECOND_NS), (1, 2, 1, 0)),
        (data("in/a", 3, [Step(1), Step(3), Step(3)], ingest_ns=3 * SECOND_NS), (2, 4, 2, 0)),
        (tick(12 * SECOND_NS), (1, 4, 2, 1)),
        (data("in/a", 4, [Step(2)], ingest_ns=13 * SECOND_NS), (1, 5, 2, 2)),
    ]
    for offset, (record, expected) in enumerate(log):
        if is_restarted:
            saved, one = one.snapshot(), worker(ready)
            one.restore(saved)
        one.fold(offset, record)
        assert numbers(one) == expected, offset
