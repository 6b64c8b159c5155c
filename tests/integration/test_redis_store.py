"""The adapter to Redis with a real server: metrics, results, positions, and a server that fails or refuses."""

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from bettong.edges.redis_store import LiveMetrics, RedisSink, RedisSnapshots, RedisStore
from bettong.edges.redis_store.connection import Client
from bettong.errors import StoreError
from bettong.identifiers import PartitionId
from bettong.local.redis_server import RedisServer
from bettong.metrics import AGE_S, LAG, MESSAGES, PID, STATE, TTL_S
from tests.samples.snapshots import whole
from tests.waiting import eventually

CHECK = PartitionId("check", 0)
WHOLE = whole(7)
NOBODY = "redis://user:secret@127.0.0.1:1/0"

Name = Callable[..., str]


@pytest.fixture
def application(unique_name: Name) -> str:
    return unique_name()


@pytest.fixture
def store(redis_server: RedisServer, application: str) -> Iterator[RedisStore]:
    with RedisStore(redis_server.url, application) as store:
        yield store


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[Redis]:
    """What others may do to the server behind our back."""
    with Redis.from_url(redis_server.url) as client:
        yield client


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that a test may kill; it keeps its data."""
    with RedisServer(tmp_path, appendonly=True) as server:
        yield server


def test_redis_tells_the_time(store: RedisStore) -> None:
    before_ns = time.time_ns()
    redis_ns = store.time_ns()
    assert before_ns - 1_000_000_000 < redis_ns < time.time_ns() + 1_000_000_000


# Live metrics


def test_metrics_are_read_back_as_text_and_replace_those_before(store: RedisStore) -> None:
    live = LiveMetrics(store)
    live.write_live("sender-1", {STATE.name: "running", MESSAGES.name: 12, LAG.name: 1.5}, 60)
    live.write_live("sender-2", {STATE.name: "waiting"}, 60)
    live.write_live("sender-1", {STATE.name: "stopping", MESSAGES.name: 13}, 60)
    found = live.live()
    assert found["sender-1"].items() >= {STATE.name: "stopping", MESSAGES.name: "13"}.items()
    assert LAG.name not in found["sender-1"]
    assert found["sender-2"][STATE.name] == "waiting"
    for record in found.values():
        assert (record[TTL_S], 0 <= float(record[AGE_S]) < 10) == ("60", True)
        assert record[PID] == str(os.getpid())


def test_metrics_of_an_instance_that_does_not_write_go_by_themselves(store: RedisStore) -> None:
    live = LiveMetrics(store)
    live.write_live("dies", {STATE.name: "running"}, 0.05)
    live.write_live("lives", {STATE.name: "running"}, 60)
    eventually(lambda: list(live.live()) == ["lives"])
    live.write_live("dies", {STATE.name: "running"}, 60)
    assert sorted(live.live()) == ["dies", "lives"]


def test_metrics_of_partitions_stay_and_do_not_mix(store: RedisStore) -> None:
    live = LiveMetrics(store)
    live.write_partition(PartitionId("check", 1), {LAG.name: 5})
    live.write_partition(PartitionId("check", 11), {LAG.name: 6})
    live.write_partition(PartitionId("check", 1), {MESSAGES.name: 7})
    live.write_partition(PartitionId("empty", 0), {})
    assert live.partitions() == {
        ("check", 1): {LAG.name: "5", MESSAGES.name: "7"},
        ("check", 11): {LAG.name: "6"},
    }
    assert live.live() == {}


def test_what_others_have_written_among_live_metrics_takes_nothing_away(store: RedisStore) -> None:
    live = LiveMetrics(store)
    live.write_live("sender", {STATE.name: "running"}, 60)
    live.write_partition(PartitionId("check", 1), {LAG.name: 5})
    dated = {"gap": "a/b", "gap_since_s": "x", "gap_alarm_s": "y", "left_out": "c", "left_out_since_s": "z"}

    def write(client: Client) -> None:
        client.sadd(store.key("live"), b"\xff", "odd")
        client.hset(store.key("live", "odd"), mapping={b"\xff": b"\xff", TTL_S: "never"})
        client.expire(store.key("live", "odd"), 60)
        client.sadd(store.key("partitions"), "check", "check/x", b"\xff/1", "check/2")
        for name in ("check", "check/x"):
            client.hset(store.key("partition", name), "lag", 7)
        client.hset(store.key("partition", "check/2"), mapping=dated)

    store.ask("writing garbage", write)
    assert live.live()["sender"][STATE.name] == "running"
    assert live.live()["odd"]["\ufffd"] == "\ufffd"
    assert live.partitions()[PartitionId("check", 1)] == {LAG.name: "5"}
    assert set(live.partitions()) == {("check", 1), ("check", 2)}


def test_applications_do_not_see_each_other(redis_server: RedisServer, unique_name: Name) -> None:
    one, other = (RedisStore(redis_server.url, unique_name()) for _ in range(2))
    LiveMetrics(one).write_live("sender", {STATE.name: "running"}, 60)
    RedisSnapshots(one).save(CHECK, WHOLE, b"state")
    RedisSink(one).deliver("alerts", 0, messages=[b"a"], position=b"p", results_max=10)
    RedisSnapshots(other).clear()
    assert LiveMetrics(other).live() == {}
    assert RedisSnapshots(one).load(CHECK, WHOLE) == b"state"
    assert RedisSink(other).position("alerts", 0) is None
    assert RedisSink(other).results("alerts", newest=10) == []


# Results and positions


def test_results_are_kept_in_order_trimmed_and_reached_by_the_position(store: RedisStore) -> None:
    sink = RedisSink(store)
    assert sink.position("alerts", 0) is None
    sink.deliver("alerts", 0, messages=[b"a", b"", b"\xff\x00"], position=b"\x00one", results_max=4)
    sink.deliver("alerts", 1, messages=[b"d", b"e"], position=b"two", results_max=4)
    assert sink.results("alerts", newest=100) == [b"", b"\xff\x00", b"d", b"e"]
    assert sink.results("alerts", newest=1) == [b"e"]
    assert (sink.position("alerts", 0), sink.position("alerts", 1)) == (b"\x00one", b"two")


def test_a_delivery_tried_again_changes_nothing(store: RedisStore) -> None:
    sink = RedisSink(store)
    for _ in range(3):
        sink.deliver("alerts", 0, messages=[b"a", b"b"], position=b"one", results_max=10)
    assert sink.results("alerts", newest=10) == [b"a", b"b"]


def test_a_delivery_that_does_not_follow_the_stored_position_changes_nothing(store: RedisStore) -> None:
    sink = RedisSink(store)
    assert sink.deliver("alerts", 0, messages=[b"a"], position=b"one", results_max=10)
    assert not sink.deliver("alerts", 0, messages=[b"x"], position=b"two", results_max=10)
    assert not sink.deliver("alerts", 0, messages=[b"x"], position=b"three", before=b"two", results_max=10)
    assert (sink.position("alerts", 0), sink.results("alerts", newest=10)) == (b"one", [b"a"])
    assert sink.deliver("alerts", 1, messages=[b"b"], position=b"two", before=b"one", results_max=10), (
        "none stored"
    )


def test_many_results_at_once_and_none_at_all(store: RedisStore) -> None:
    sink = RedisSink(store)
    many = [b"%d" % number for number in range(25_001)]
    sink.deliver("alerts", 0, messages=many, position=b"one", results_max=20_000)
    assert sink.results("alerts", newest=50_000) == many[-20_000:]
    sink.deliver("alerts", 0, messages=[], position=b"two", before=b"one", results_max=20_000)
    sink.store_position("alerts", 0, b"three")
    assert sink.position("alerts", 0) == b"three"
    assert sink.results("alerts", newest=1) == many[-1:]


def test_a_delivery_that_fails_leaves_neither_results_nor_position(
    store: RedisStore, client: Redis, application: str
) -> None:
    sink = RedisSink(store)
    sink.deliver("alerts", 0, messages=[b"a"], position=b"one", results_max=10)
    client.delete(f"bettong:{application}:results:alerts")
    client.set(f"bettong:{application}:results:alerts", b"of somebody else")
    with pytest.raises(StoreError, match=r"alerts/0.*begin with bettong"):
        sink.deliver("alerts", 0, messages=[b"b"], position=b"two", before=b"one", results_max=10)
    assert sink.position("alerts", 0) == b"one"


# Snapshots, beyond the contract


def test_a_snapshot_larger_than_redis_takes_is_refused_at_once(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bettong.edges.redis_store.connection.VALUE_BYTES_MAX", 1000)
    with pytest.raises(
        StoreError, match=r"check/0 at 7: 1001 bytes, Redis takes at most 1000; keep .* elsewhere"
    ):
        RedisSnapshots(store).save(CHECK, WHOLE, bytes(1001))


def test_a_large_snapshot_passes(store: RedisStore) -> None:
    state = random.Random(1).randbytes(64 * 1024 * 1024)
    snapshots = RedisSnapshots(store)
    snapshots.save(CHECK, WHOLE, state)
    assert snapshots.load(CHECK, WHOLE) == state
    snapshots.clear()


def test_clearing_leaves_no_key_behind(store: RedisStore, client: Redis, application: str) -> None:
    for partition in range(5):
        RedisSnapshots(store).save(PartitionId("check", partition), WHOLE, b"state")
    RedisSnapshots(store).clear()
    assert list(client.scan_iter(f"bettong:{application}:*")) == []


# A server that is unavailable, hangs, or refuses


def test_waiting_says_so_without_the_password_and_ends_in_time() -> None:
    reported: list[str] = []
    began = time.monotonic()
    with pytest.raises(StoreError) as raised:
        RedisStore(NOBODY, "app").wait(1.5, reported.append)
    assert time.monotonic() - began < 10
    assert "redis://127.0.0.1:1/0 does not answer; is it running" in str(raised.value)
    assert reported
    assert not [line for line in (*reported, str(raised.value)) if "secret" in line]


def test_waiting_ends_when_the_server_answers(tmp_path: Path) -> None:
    server = RedisServer(tmp_path)
    reported: list[str] = []
    store = RedisStore(server.url, "app")

    def report(line: str) -> None:
        reported.append(line)
        server.launch()

    try:
        store.wait(60, report)
        assert LiveMetrics(store).live() == {}
    finally:
        store.close()
        server.stop()
    assert reported


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "http://127.0.0.1:1/0",
        "redis://user:sec/ret@127.0.0.1:1/0",
        "redis://127.0.0.1:many/0",
    ],
)
def test_a_url_that_is_none_is_refused_at_once_and_not_repeated(url: str) -> None:
    with pytest.raises(StoreError, match=r"redis://.*host:port") as raised:
        RedisStore(url, "app")
    assert "sec" not in str(raised.value)


def test_a_killed_server_is_an_error_in_time_and_all_is_there_when_it_is_back(
    own_server: RedisServer,
) -> None:
    with RedisStore(own_server.url, "app") as store:
        snapshots, sink, live = RedisSnapshots(store), RedisSink(store), LiveMetrics(store)
        snapshots.save(CHECK, WHOLE, b"state")
        sink.deliver("alerts", 0, messages=[b"a"], position=b"one", results_max=10)
        live.write_partition(CHECK, {LAG.name: 1})
        eventually(
            lambda: (
                b"alerts"
                in (own_server.directory / "appendonlydir").glob("*.incr.aof").__next__().read_bytes()
            )
        )
        own_server.kill()
        began = time.monotonic()
        with pytest.raises(StoreError, match="does not answer"):
            snapshots.save(CHECK, whole(8), b"state")
        with pytest.raises(StoreError, match="alerts/0"):
            sink.deliver("alerts", 0, messages=[b"b"], position=b"two", results_max=10)
        assert time.monotonic() - began < 30
        own_server.start()
        assert snapshots.increments(CHECK) == [WHOLE]
        assert (sink.position("alerts", 0), sink.results("alerts", newest=9)) == (b"one", [b"a"])
        assert live.partitions() == {("check", 0): {LAG.name: "1"}}


def test_a_server_that_hangs_is_an_error_in_time(own_server: RedisServer) -> None:
    with RedisStore(own_server.url, "app") as store, Redis.from_url(own_server.url) as client:
        RedisSink(store).deliver("alerts", 0, messages=[b"a"], position=b"one", results_max=10)
        client.client_pause(20_000)
        began = time.monotonic()
        with pytest.raises(StoreError, match="does not answer"):
            RedisSink(store).deliver("alerts", 0, messages=[b"b"], position=b"two", results_max=10)
        assert time.monotonic() - began < 15


def test_a_short_absence_is_not_noticed(own_server: RedisServer) -> None:
    with RedisStore(own_server.url, "app") as store, Redis.from_url(own_server.url) as client:
        sink = RedisSink(store)
        sink.deliver("alerts", 0, messages=[b"a"], position=b"one", results_max=10)
        client.client_kill_filter(_type="normal", skipme=True)
        sink.deliver("alerts", 0, messages=[b"b"], position=b"two", before=b"one", results_max=10)
        assert sink.results("alerts", newest=10) == [b"a", b"b"]


def test_a_wrong_password_is_an_error_at_once(own_server: RedisServer) -> None:
    with Redis.from_url(own_server.url) as client:
        client.config_set("requirepass", "right")
        reported: list[str] = []
        wrong = own_server.url.replace("redis://", "redis://:wrong@")
        with RedisStore(wrong, "app") as store:
            with pytest.raises(
                StoreError, match="refuses this user or password; correct BETTONG_REDIS"
            ) as raised:
                store.wait(30, reported.append)
            assert "wrong" not in str(raised.value).replace("wrong password", "").replace("WRONGPASS", "")
        assert reported == []
        with RedisStore(own_server.url.replace("redis://", "redis://:right@"), "app") as store:
            store.wait(30, reported.append)


def test_a_full_server_says_so(own_server: RedisServer) -> None:
    with RedisStore(own_server.url, "app") as store, Redis.from_url(own_server.url) as client:
        RedisSink(store).deliver("alerts", 0, messages=[b"a"], position=b"one", results_max=10)
        client.config_set("maxmemory", 1)
        with pytest.raises(StoreError, match=r"check/0 at 7.*is full; raise its maxmemory"):
            RedisSnapshots(store).save(CHECK, WHOLE, b"state")
        with pytest.raises(StoreError, match="is full"):
            RedisSink(store).deliver(
                "alerts", 0, messages=[b"b"], position=b"two", before=b"one", results_max=10
            )
        assert RedisSink(store).position("alerts", 0) == b"one"
        assert RedisSink(store).results("alerts", newest=10) == [b"a"]


def test_a_server_that_deletes_data_when_it_is_full_is_known_by_its_policy(own_server: RedisServer) -> None:
    with RedisStore(own_server.url, "app") as store, Redis.from_url(own_server.url) as client:
        assert store.eviction() == ""
        client.config_set("maxmemory-policy", "allkeys-lru")
        assert store.eviction() == "", "without a limit it is never full"
        client.config_set("maxmemory", 1 << 30)
        assert store.eviction() == "allkeys-lru"
        client.acl_setuser(
            "careful", enabled=True, nopass=True, keys=["*"], categories=["+@all", "-@dangerous"]
        )
        with RedisStore(own_server.url.replace("redis://", "redis://careful:any@"), "app") as careful:
            assert careful.eviction() == "", "unknown"
        client.config_set("maxmemory-policy", "noeviction")
        assert store.eviction() == ""
