"""The contract of `SnapshotStore`, tested with Redis, directories, S3 and synchronous fsspec file systems."""

import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.edges.object_store import ObjectSnapshots
from bettong.edges.redis_store import RedisSnapshots, RedisStore
from bettong.edges.snapshot_stores import snapshot_store
from bettong.identifiers import PartitionId
from bettong.local.redis_server import RedisServer
from bettong.snapshots.chain import Increment
from bettong.snapshots.store import SnapshotStore
from tests.samples.files_on_server import SCHEME
from tests.samples.snapshots import whole
from tests.servers.s3 import BUCKET

CHECK_3 = PartitionId("check", 3)
CHECK = PartitionId("check", 0)
Name = Callable[..., str]
Another = Callable[[], SnapshotStore]


@pytest.fixture(params=["redis", "directory", "file:", "s3:", "fsspec without async"])
def another(request: pytest.FixtureRequest, tmp_path: Path, unique_name: Name) -> Another:
    """Creates stores of the same snapshots, as in several processes."""
    application = unique_name()
    if request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis_server")
        return lambda: RedisSnapshots(RedisStore(server.url, application))
    if request.param == "directory":
        return lambda: DirectorySnapshots(tmp_path / "snapshots")
    if request.param == "fsspec without async":
        url = f"{SCHEME}://{tmp_path}/a folder"
        return lambda: ObjectSnapshots(url, application)
    if request.param == "s3:":
        request.getfixturevalue("s3_server")
    url = f"s3://{BUCKET}/a/folder" if request.param == "s3:" else f"file://{tmp_path}/a folder"
    nowhere = RedisStore("redis://127.0.0.1:1/0", application)
    return lambda: snapshot_store(url, application, nowhere)


@pytest.fixture
def store(another: Another) -> SnapshotStore:
    return another()


def state(offset: int) -> bytes:
    """A state at an offset: determined by the offset, and long enough to be torn."""
    return b"%d;" % offset * 20_000


def test_a_partition_without_snapshots_has_none(store: SnapshotStore) -> None:
    assert store.increments(CHECK) == []
    assert store.load(CHECK, whole(10)) is None
    store.clear()


def test_what_is_saved_is_found_as_it_was_by_every_other(another: Another) -> None:
    anything = bytes(range(256)) * 1000
    first, second = whole(0), Increment(2**62, 0, 0)
    another().save(CHECK_3, first, b"")
    another().save(CHECK_3, second, anything)
    assert another().increments(CHECK_3) == [first, second]
    assert another().load(CHECK_3, first) == b""
    assert another().load(CHECK_3, second) == anything
    assert another().load(CHECK_3, Increment(2**62, 0, 1)) is None


def test_of_whole_states_the_newest_two_are_kept(store: SnapshotStore) -> None:
    for offset in (1, 5, 9, 10, 200):
        store.save(CHECK, whole(offset), state(offset))
    assert store.increments(CHECK) == [whole(10), whole(200)]


def test_what_the_chains_from_the_newest_two_roots_need_is_kept(store: SnapshotStore) -> None:
    saved = [
        Increment(*each) for each in ((10, 0, 10), (20, 10, 10), (30, 20, 20), (40, 30, 20), (50, 40, 40))
    ]
    for increment in saved:
        store.save(CHECK, increment, state(increment.offset))
    assert store.increments(CHECK) == saved[1:]
    assert [store.load(CHECK, each) for each in saved[1:]] == [state(each.offset) for each in saved[1:]]


def test_a_zombie_pushes_out_nothing_newer(store: SnapshotStore) -> None:
    for offset in (100, 200):
        store.save(CHECK, whole(offset), state(offset))
    for offset in (7, 99, 100, 200, 1):
        store.save(CHECK, whole(offset), state(offset))
    assert store.increments(CHECK) == [whole(100), whole(200)]
    assert store.load(CHECK, whole(100)) == state(100)


def test_an_increment_saved_again_replaces_what_may_have_been_damaged(store: SnapshotStore) -> None:
    store.save(CHECK, whole(5), b"damaged")
    store.save(CHECK, whole(5), state(5))
    assert store.load(CHECK, whole(5)) == state(5)


def test_stages_and_partitions_do_not_mix(store: SnapshotStore) -> None:
    named = [("a", 1), ("a", 11), ("a-1", 1), ("a_b", 1), ("A", 1), ("1-1", 1)]
    partitions = [PartitionId(*each) for each in named]
    for number, partition in enumerate(partitions):
        store.save(partition, whole(number), state(number))
    for number, partition in enumerate(partitions):
        assert store.increments(partition) == [whole(number)]
        assert store.load(partition, whole(number)) == state(number)


def test_clearing_leaves_nothing_and_saving_goes_on(store: SnapshotStore) -> None:
    for partition in range(3):
        store.save(PartitionId("check", partition), whole(1), state(1))
        store.save(PartitionId("count", partition), whole(2), state(2))
    store.clear()
    partitions = [PartitionId(stage, number) for stage in ("check", "count") for number in range(3)]
    assert [store.increments(each) for each in partitions] == [[]] * 6
    store.save(CHECK, whole(3), state(3))
    assert store.increments(CHECK) == [whole(3)]


@pytest.mark.parametrize("seed", [1, 2])
def test_owner_zombie_readers_and_a_cleaner_at_a_time_see_whole_increments_only(
    another: Another, seed: int
) -> None:
    """Whatever is found is complete, at any moment. The parameters print the seeds."""
    stop = threading.Event()
    faults: list[str] = []

    def reading() -> None:
        store = another()
        chance = random.Random(seed)
        while not stop.is_set():
            known = store.increments(CHECK)
            if known:
                increment = chance.choice(known)
                data = store.load(CHECK, increment)
                if data not in (None, state(increment.offset)):
                    faults.append(f"{increment}: {len(data or b'')} bytes")

    def saving(behind: int) -> None:
        store = another()
        for offset in range(1, 100):
            increment = whole(max(offset - behind, 1))
            store.save(CHECK, increment, state(increment.offset))

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
    last.save(CHECK, whole(500), state(500))
    last.save(CHECK, whole(501), state(501))
    assert last.increments(CHECK) == [whole(500), whole(501)]


def guarded(work: Callable[[], None], faults: list[str]) -> threading.Thread:
    """A thread whose error fails the test."""

    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test must fail with it
            faults.append(f"{type(error).__name__}: {error}")

    return threading.Thread(target=run)
