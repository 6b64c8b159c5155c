"""How often a resident slot saves its partitions. Real Kafka and Redis, no Spark."""

import time
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from threading import Event

import pytest

from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.snapshots.chain import Increment
from bettong.worker.partition import PartitionWorker
from bettong_processor.resident.snapshot_pacing import next_snapshot_s
from tests.integration.resident_slots import World
from tests.waiting import eventually

_LONG_S = 0.05


@pytest.mark.parametrize(
    ("interval_s", "pauses_s", "wanted_s"),
    [
        pytest.param(1.0, [0.001] * 16, 1.0, id="quick ones keep the interval"),
        pytest.param(1.0, [0.1, 0.2], 3.0, id="slow ones take a tenth of the time together"),
        pytest.param(1.0, [5.0], 10.0, id="a recovery never folds more than ten intervals again"),
        pytest.param(0.0, [5.0], 0.0, id="no interval"),
        pytest.param(1.0, [], 1.0, id="no partition"),
    ],
)
def test_the_next_snapshot(interval_s: float, pauses_s: list[float], wanted_s: float) -> None:
    assert next_snapshot_s(interval_s, pauses_s) == pytest.approx(wanted_s)


def test_snapshots_that_take_long_are_made_less_often(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun_s: list[float] = []
    make = PartitionWorker.increment

    def increment(worker: PartitionWorker) -> tuple[Increment, bytes]:
        begun_s.append(time.monotonic())
        Event().wait(_LONG_S)
        return make(worker)

    monkeypatch.setattr(PartitionWorker, "increment", increment)
    with closing(World(unique_name("resident"), kafka.bootstrap, redis_server.url)) as world:
        world.start(0, snapshot_s=0.1)
        world.group.assign({0: [0]})

        def are_five() -> bool:
            world.feed(0, 1)
            return len(begun_s) > 4

        eventually(are_five)
        world.await_results(0)
        world.await_saved(0)
    # The second follows in 0.1 s: one alone may be slow by chance.
    assert min(later - sooner for sooner, later in pairwise(begun_s[1:5])) >= 10 * _LONG_S
