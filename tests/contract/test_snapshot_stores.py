"""The contract of `SnapshotStore`, kept by every store: the same tests against Redis and against a directory."""

import os
import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bettong.edges.redis_store import RedisSnapshots, RedisStore
from bettong.local.redis_server import RedisServer
from bettong.snapshots.directory import DirectorySnapshots
from bettong.snapshots.store import SNAPSHOTS_KEPT, SnapshotStore

Name = Callable[..., str]
Another = Callable[[], SnapshotStore]


@pytest.fixture(params=["redis", "directory", "synced directory"])
def another(request: pytest.FixtureRequest, tmp_path: Path, unique_name: Name) -> Another:
    """Makes stores over the same snapshots, as several processes would have."""
    if request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis_server")
        application = unique_name()
        return lambda: RedisSnapshots(RedisStore(server.url, application))
    sync = os.fsync if request.param == "synced directory" else None
    return lambda: DirectorySnapshots(tmp_path / "snapshots", sync=sync)


@pytest.fixture
def store(another: Another) -> SnapshotStore:
    return another()


def state(offset: int) -> bytes:
    """What a fold would have at an offset: told by the offset alone, and long enough to be torn."""
    return b"%d;" % offset * 20_000


def test_a_partition_without_snapshots_has_none(store: SnapshotStore) -> None:
    assert store.newest("check", 0) is None
    assert store.newest("check", 0, at_most=10) is None
    assert store.offsets("check", 0) == []
    store.clear()


def test_what_is_saved_is_found_as_it_was_by_every_other(another: Another) -> None:
    anything = bytes(range(256)) * 1000
    another().save("check", 3, 0, b"")
    another().save("check", 3, 2**62, anything)
    assert another().newest("check", 3) == (2**62, anything)
    assert another().newest("check", 3, at_most=2**62 - 1) == (0, b"")
    assert another().offsets("check", 3) == [0, 2**62]


def test_the_newest_two_are_kept(store: SnapshotStore) -> None:
    for offset in (1, 5, 9, 10, 200):
        store.save("check", 0, offset, state(offset))
    assert store.offsets("check", 0) == [10, 200]
    assert len(store.offsets("check", 0)) == SNAPSHOTS_KEPT


@pytest.mark.parametrize(
    ("at_most", "found"), [(None, 20), (99, 20), (20, 20), (19, 10), (10, 10), (9, None), (0, None)]
)
def test_the_newest_that_is_not_above_a_limit_is_found(
    store: SnapshotStore, at_most: int | None, found: int | None
) -> None:
    for offset in (10, 20):
        store.save("check", 0, offset, state(offset))
    expected = None if found is None else (found, state(found))
    assert store.newest("check", 0, at_most=at_most) == expected


def test_a_zombie_pushes_out_nothing_newer(store: SnapshotStore) -> None:
    for offset in (100, 200):
        store.save("check", 0, offset, state(offset))
    for offset in (7, 99, 100, 200, 1):
        store.save("check", 0, offset, state(offset))
    assert store.offsets("check", 0) == [100, 200]
    assert store.newest("check", 0) == (200, state(200))
    assert store.newest("check", 0, at_most=199) == (100, state(100))


def test_an_offset_saved_again_replaces_what_may_have_been_damaged(store: SnapshotStore) -> None:
    store.save("check", 0, 5, b"damaged")
    store.save("check", 0, 5, state(5))
    assert store.newest("check", 0) == (5, state(5))


def test_stages_and_partitions_do_not_mix(store: SnapshotStore) -> None:
    places = [("a", 1), ("a", 11), ("a-1", 1), ("a.b", 1), ("a_b", 1), ("A", 1), ("1-1", 1)]
    for number, (stage, partition) in enumerate(places):
        store.save(stage, partition, number, state(number))
    for number, (stage, partition) in enumerate(places):
        assert store.offsets(stage, partition) == [number]
        assert store.newest(stage, partition) == (number, state(number))


def test_clearing_leaves_nothing_and_saving_goes_on(store: SnapshotStore) -> None:
    for partition in range(3):
        store.save("check", partition, 1, state(1))
        store.save("count", partition, 2, state(2))
    store.clear()
    assert [store.newest(stage, partition) for stage in ("check", "count") for partition in range(3)] == [
        None
    ] * 6
    store.save("check", 0, 3, state(3))
    assert store.offsets("check", 0) == [3]


@pytest.mark.parametrize("seed", [1, 2])
def test_owner_zombie_readers_and_a_cleaner_at_a_time_see_whole_snapshots_only(
    another: Another, seed: int
) -> None:
    """Seeds as printed by the parameters. What is found is whole, and fits the question, at any moment."""
    stop = threading.Event()
    faults: list[str] = []

    def reading() -> None:
        store = another()
        chance = random.Random(seed)
        while not stop.is_set():
            at_most = chance.choice([None, chance.randrange(1, 200)])
            found = store.newest("check", 0, at_most=at_most)
            if found is not None:
                offset, data = found
                if data != state(offset) or (at_most is not None and offset > at_most):
                    faults.append(f"at most {at_most}: found {offset} with {len(data)} bytes")

    def saving(behind: int) -> None:
        store = another()
        for offset in range(1, 200):
            store.save("check", 0, max(offset - behind, 1), state(max(offset - behind, 1)))

    def cleaning() -> None:
        store = another()
        for _ in range(5):
            store.clear()

    readers = [guarded(reading, faults) for _ in range(2)]
    writers = [
        guarded(lambda: saving(0), faults),
        guarded(lambda: saving(30), faults),
        guarded(cleaning, faults),
    ]
    for thread in (*readers, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in readers:
        thread.join()
    assert faults == []
    last = another()
    last.save("check", 0, 500, state(500))
    last.save("check", 0, 501, state(501))
    assert last.offsets("check", 0) == [500, 501]


def guarded(work: Callable[[], None], faults: list[str]) -> threading.Thread:
    """A thread whose failure is a fault."""

    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test must fail with it
            faults.append(f"{type(error).__name__}: {error}")

    return threading.Thread(target=run)
