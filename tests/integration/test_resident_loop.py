"""The loop of a resident slot: acquires, folds, saves, revokes, and is superseded. Real Kafka and Redis, no Spark."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bettong import metrics
from bettong.edges.kafka_log import LogAdmin, LogWriter
from bettong.edges.redis_store import RedisSnapshots, RedisStore
from bettong.edges.redis_store.membership import HeartbeatResponse, RedisMembership, Task
from bettong.errors import PoisonError, StoreError
from bettong.identifiers import PartitionId
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.queue_metrics import READ_AHEAD, UNACKNOWLEDGED
from bettong.snapshots.chain import Increment
from tests.integration.log_parts import FRAME_BYTES_MAX
from tests.integration.resident_slots import TTL_MS, Group, Slot, World
from tests.servers.freezing import frozen
from tests.waiting import eventually


@pytest.fixture
def world(kafka: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str]) -> Iterator[World]:
    one = World(unique_name("resident"), kafka.bootstrap, redis_server.url)
    yield one
    one.close()


def test_a_slot_folds_what_it_is_assigned_saves_it_and_drains_when_told_to_stop(world: World) -> None:
    world.feed(0, 20)
    slot = world.start(0)
    world.group.assign({0: [0, 1]})
    world.group.await_holders({0: 0, 1: 0})
    world.await_results(0)
    world.feed(0, 5)
    world.feed(1, 5)
    world.await_results(0)
    world.await_saved(1)
    world.feed(1, 1)
    world.group.assign({0: [0, 1]}, stop=True)
    assert slot.ended() is None
    assert world.group.holders() == {}
    folded = world.saved(1)
    assert len(world.results(1)) == folded, "what is folded is put out and saved, and nothing else"


class TimedMembership(RedisMembership):
    """Notes when each heartbeat goes out, in seconds."""

    sent_s: list[float]

    def send_heartbeat(self, *args: Any, **words: Any) -> HeartbeatResponse | None:
        self.sent_s.append(time.monotonic())
        return super().send_heartbeat(*args, **words)

    def least_gap_s(self) -> float:
        """Between the last ones."""
        return min((later - sooner for sooner, later in pairwise(self.sent_s[-6:])), default=0.0)


def test_a_slot_at_rest_sends_fewer_heartbeats_until_something_comes(world: World) -> None:
    world.group.membership = timed = TimedMembership(world.redis, ttl_ms=TTL_MS)
    timed.sent_s = []
    world.start(0)
    world.group.assign({0: [0, 1]})
    world.group.await_holders({0: 0, 1: 0})
    eventually(lambda: timed.least_gap_s() > 0.1, what="it rests")
    assert world.group.holders() == {0: 0, 1: 0}
    world.feed(0, 1)
    world.await_results(0)
    eventually(lambda: timed.least_gap_s() < 0.1, what="it is awake")


def test_a_new_task_sends_heartbeats_often_until_it_has_partitions_but_not_for_long(world: World) -> None:
    world.group.membership = timed = TimedMembership(world.redis, ttl_ms=TTL_MS)
    timed.sent_s = []
    world.start(0)
    eventually(lambda: len(timed.sent_s) > 6 and timed.least_gap_s() < 0.03, what="it waits for partitions")
    eventually(lambda: timed.least_gap_s() > 0.04, what="it no longer does")


def test_a_partition_moves_with_its_state_and_the_others_stay(world: World) -> None:
    for partition in range(4):
        world.feed(partition, 10)
    world.start(0, snapshot_s=60.0)
    world.start(1)
    world.group.assign({0: [0, 1, 2, 3]})
    world.group.await_holders(dict.fromkeys(range(4), 0))
    for partition in range(4):
        world.await_results(partition)
    assert world.saved(3) == 0, "nothing is due for a minute"
    world.group.assign({0: [0, 1], 1: [2, 3]})
    world.group.await_holders({0: 0, 1: 0, 2: 1, 3: 1})
    for partition in range(4):
        world.feed(partition, 10)
        world.await_results(partition)
    assert len(world.results(3)) == 20, "saved at the last frame: nothing was folded twice"
    assert len(world.results(0)) == 20


def test_what_a_lost_task_held_goes_on_from_its_snapshots(world: World) -> None:
    world.feed(0, 30)
    slot = world.start(0)
    world.start(1)
    world.group.assign({0: [0]})
    world.await_saved(0)
    world.feed(0, 10)
    world.kill(slot)
    world.group.assign({1: [0]})
    world.group.await_holders({0: 1})
    world.feed(0, 10)
    world.await_results(0)
    assert len(world.results(0)) <= 60, "not from the beginning"


def test_what_a_lost_task_held_goes_on_at_once_when_it_is_dismissed(world: World) -> None:
    """Its own time would be over after two minutes only."""
    group = world.group
    group.membership = RedisMembership(world.redis, ttl_ms=120_000, silent_ms=400)
    world.feed(0, 30)
    slot = world.start(0)
    world.start(1)
    group.assign({0: [0]})
    world.await_results(0)
    world.kill(slot)
    group.assign({1: [0]})
    world.feed(0, 10)
    (lost,) = eventually(lambda: group.membership.read_members(group.run, [0, 1]).silent)
    assert lost.slot == 0
    assert group.membership.dismiss_task(lost)
    group.await_holders({0: 1})
    world.await_results(0)


def test_the_next_task_of_a_slot_takes_over_at_once_and_the_old_one_ends(world: World) -> None:
    world.feed(0, 10)
    old = world.start(0)
    world.group.assign({0: [0]})
    world.await_results(0)
    world.start(0)
    assert old.ended() is None, "superseded, it ends without a fault"
    world.feed(0, 10)
    world.await_results(0)
    world.group.await_holders({0: 0})


def test_two_owners_at_once_only_cost_work(world: World, redis_server: RedisServer) -> None:
    """A slot that is thought dead and folds on: each of two groups says that its slot is the owner."""
    world.feed(0, 10)
    world.start(0)
    world.group.assign({0: [0]})
    world.await_results(0)
    with RedisStore(redis_server.url, f"{world.name}-other") as other:
        group = Group(other, world.stage.name)
        second = world.start(1, group=group)
        group.assign({1: [0]})
        group.await_holders({0: 1})
        world.feed(0, 30)
        world.await_results(0)
        eventually(lambda: len(world.results(0)) > 60, what="both have written")
        world.await_results(0)
        group.assign({}, stop=True)
        assert second.ended() is None
    world.kill(world.slots[0])
    third = world.start(2)
    world.group.assign({2: [0]})
    world.feed(0, 10)
    world.await_results(0)
    assert third.error is None, "their snapshots do for the next"


def test_a_message_that_cannot_be_processed_ends_the_task_and_what_came_before_is_out(world: World) -> None:
    world.feed(0, 10)
    world.feed(0, 1, value=0)
    slot = world.start(0)
    world.group.assign({0: [0]})
    error = slot.ended()
    assert isinstance(error, PoisonError)
    assert "offset 10" in str(error)
    assert len(world.taken(0)) == 10


def test_without_redis_a_slot_folds_on_what_it_holds_and_saves_it_later(
    kafka: KafkaBroker, unique_name: Callable[..., str], tmp_path: Path
) -> None:
    with RedisServer(tmp_path / "redis") as redis:
        world = World(unique_name("resident"), kafka.bootstrap, redis.url)
        world.feed(0, 10)
        slot = world.start(0)
        world.group.assign({0: [0]})
        world.await_saved(0)
        redis.kill()
        for _ in range(3):
            world.feed(0, 5)
            world.await_results(0)
        redis.start()
        # It comes back empty: nothing is assigned, and the slot says what it holds.
        eventually(lambda: world.group.holders() == {0: 0}, what="it claims its partition again")
        world.feed(0, 5)
        world.await_results(0)
        assert slot.error is None
        world.group.assign({0: [0]})
        world.close()


class Unforeseen(RedisMembership):
    """Fails, once it is told so, with what nobody thought of."""

    fails = False

    def send_heartbeat(
        self,
        task: Task,
        epoch: int,
        *,
        held: Iterable[PartitionId] = (),
        wanted: Iterable[PartitionId] = (),
        revoked: Iterable[PartitionId] = (),
    ) -> HeartbeatResponse | None:
        if self.fails:
            raise ZeroDivisionError
        return super().send_heartbeat(task, epoch, held=held, wanted=wanted, revoked=revoked)


def test_a_slot_whose_heartbeats_end_ends_with_the_reason(world: World) -> None:
    """It would fold for ever what others were assigned meanwhile, and never hear a stop."""
    world.group.membership = membership = Unforeseen(world.redis, ttl_ms=TTL_MS)
    world.feed(0, 10)
    slot = world.start(0)
    world.group.assign({0: [0]})
    world.await_results(0)
    membership.fails = True
    assert isinstance(slot.ended(), ZeroDivisionError)


class Away(RedisSnapshots):
    """A store that takes nothing until it is told so."""

    here = False

    def save(self, partition: PartitionId, increment: Increment, data: bytes) -> None:
        if not self.here:
            raise StoreError(f"{partition}: the bucket does not answer")
        super().save(partition, increment, data)


def test_a_store_that_is_away_holds_nothing_up_and_gets_what_it_lacks_later(world: World) -> None:
    world.store = away = Away(world.redis)
    world.feed(0, 10)
    world.start(0)
    world.start(1)
    world.group.assign({0: [0]})
    for _ in range(3):
        world.feed(0, 5)
        world.await_results(0)
    # A partition is revoked all the same: the next owner folds more again.
    world.group.assign({1: [0]})
    world.group.await_holders({0: 1})
    world.feed(0, 10)
    world.await_results(0)
    assert world.saved(0) == 0

    def record() -> dict[str, str]:
        return world.metrics.partitions().get(PartitionId(world.stage.name, 0), {})

    eventually(lambda: "the bucket does not answer" in record().get(metrics.SNAPSHOT_FAULT.name, ""))
    assert metrics.SNAPSHOT_SAVED.name not in record()
    away.here = True
    world.await_saved(0)
    eventually(lambda: record()[metrics.SNAPSHOT_FAULT.name] == "")
    eventually(
        lambda: int(record()[metrics.STATE_BYTES.name]) == int(record()[metrics.SNAPSHOT_BYTES.name]) > 0
    )
    assert abs(float(record()[metrics.SNAPSHOT_SAVED.name]) - time.time()) < 60
    assert 0 < float(record()[metrics.SNAPSHOT_PAUSE_MS.name]) < float(record()[metrics.SNAPSHOT_MS.name])


@pytest.mark.parametrize("size", [1, 200])
def test_a_slow_broker_stops_the_reading_and_memory_stays_bounded(
    world: World, own_broker: KafkaBroker, size: int
) -> None:
    """Results go to a broker that answers nothing for a while."""
    with writing_to(own_broker, world) as slot:
        with frozen(own_broker):
            world.feed(0, 200, size=size)
            stuck = eventually(Still(world.offset))
            assert 1 < stuck < 100, "no more than what 20 kB of results stand for"
            assert world.saved(0) == 1, "what is not durable is in no snapshot"

            def record() -> dict[str, str]:
                return world.metrics.partitions()[PartitionId(world.stage.name, 0)]

            eventually(lambda: float(record()[metrics.HELD.name]) > 1)
            assert 0 < int(record()[UNACKNOWLEDGED.name]) <= stuck
        world.await_saved(0)
        eventually(lambda: (record()[UNACKNOWLEDGED.name], record()[READ_AHEAD.name]) == ("0", "0"))
        world.group.assign({}, stop=True)
        assert slot.ended() is None


def test_a_slot_that_is_superseded_while_the_broker_is_away_ends_at_once(
    world: World, own_broker: KafkaBroker
) -> None:
    with writing_to(own_broker, world) as old, frozen(own_broker):
        world.feed(0, 200, size=200)
        eventually(Still(world.offset))
        world.start(0)
        assert old.ended() is None
    world.await_saved(0)


@contextmanager
def writing_to(broker: KafkaBroker, world: World) -> Iterator[Slot]:
    """A slot that has saved its first message. Its results, 20 kB under way at most, go to a broker that may stop."""
    world.output_bytes_max = 20_000
    with LogAdmin(broker.bootstrap) as admin:
        admin.create_topics([world.sink], partitions=1, replication=1, frame_bytes_max=FRAME_BYTES_MAX)
    with LogWriter(broker.bootstrap, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=1 << 24) as writer:
        slot = world.start(0, writer=writer)
        world.group.assign({0: [0]})
        world.feed(0, 1)
        world.await_saved(0)
        yield slot


class Still:
    """A value, once it has stayed the same for half a second."""

    def __init__(self, look: Callable[[], int]) -> None:
        self._look, self._value, self._since_s = look, -1, 0.0

    def __call__(self) -> int | None:
        value = self._look()
        if value != self._value:
            self._value, self._since_s = value, time.monotonic()
        return value if time.monotonic() - self._since_s > 0.5 and value > 1 else None


def test_metrics_report_lag_rate_and_latency(world: World) -> None:
    world.start(0)
    world.group.assign({0: [0]})
    world.feed(0, 50)

    def written() -> dict[str, str]:
        return world.metrics.partitions().get(PartitionId(world.stage.name, 0), {})

    eventually(lambda: written().get(metrics.OFFSET.name) == "50" and written().get(metrics.LAG.name) == "0")

    def measured() -> dict[str, str] | None:
        world.feed(0, 1)
        reported = written()
        return (
            reported
            if reported.get(metrics.LATENCY_P99.name) and float(reported[metrics.RATE.name] or 0)
            else None
        )

    reported = eventually(measured)
    assert 0 < float(reported[metrics.LATENCY_P50.name]) <= float(reported[metrics.LATENCY_MAX.name]) < 60_000
    # One message at a time, each waited for: within what two cores can do.
    assert 0 < float(reported[metrics.RATE.name]) < 10_000

    def quiet() -> bool:
        reported = written()
        return reported[metrics.RATE.name] == "0" and not reported[metrics.LATENCY_P99.name]

    eventually(quiet, what="a partition without messages has no latency")


def test_metrics_of_an_idle_partition_are_reported_again_after_redis_has_lost_them(world: World) -> None:
    world.start(0)
    world.group.assign({0: [0]})
    world.feed(0, 5)

    def is_reported() -> bool:
        record = world.metrics.partitions().get(PartitionId(world.stage.name, 0), {})
        return record.get(metrics.OFFSET.name) == "5"

    eventually(is_reported)
    record = world.redis.key("partition", f"{world.stage.name}/0")
    eventually(
        lambda: (
            world.redis.ask("losing a record", lambda client: client.delete(record)) and not is_reported()
        ),
        what="the record is gone",
    )
    eventually(is_reported, what="its offset is reported again, though nothing has changed")
