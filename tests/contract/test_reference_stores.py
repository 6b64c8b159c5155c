"""The contract of `NamedBytes`, and what `ReferenceStore` makes of it: Redis, directories, S3, fsspec without async."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.edges.directory_versions import DirectoryVersions
from bettong.edges.object_store import ObjectVersions
from bettong.edges.redis_store import RedisStore, RedisVersions
from bettong.edges.snapshot_stores import reference_store, snapshot_store
from bettong.errors import StoreError
from bettong.identifiers import PartitionId, ReferenceVersion
from bettong.local.redis_server import RedisServer
from bettong.snapshots.references import NamedBytes, ReferenceStore
from tests.samples.files_on_server import SCHEME
from tests.samples.snapshots import whole
from tests.servers.s3 import BUCKET

SERIES = "prices-0123456789abcdef-0"
Name = Callable[..., str]
Another = Callable[[], NamedBytes]


@pytest.fixture(params=["redis", "directory", "s3:", "fsspec without async"])
def another(request: pytest.FixtureRequest, tmp_path: Path, unique_name: Name) -> Another:
    """Creates stores of the same data, as in several processes."""
    application = unique_name()
    if request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis_server")
        return lambda: RedisVersions(RedisStore(server.url, application))
    if request.param == "directory":
        return lambda: DirectoryVersions(tmp_path / "snapshots")
    if request.param == "s3:":
        request.getfixturevalue("s3_server")
        return lambda: ObjectVersions(f"s3://{BUCKET}/a/folder", application)
    url = f"{SCHEME}://{tmp_path}/a folder"
    return lambda: ObjectVersions(url, application)


def version(number: int, series: str = SERIES) -> ReferenceVersion:
    return ReferenceVersion(series, number, bytes([number]) * 32)


def test_what_is_put_is_found_as_it_was_by_every_other(another: Another) -> None:
    anything = bytes(range(256)) * 1000
    assert (another().names(SERIES), another().get(SERIES, "1-a")) == ([], None)
    another().put(SERIES, "1-a", anything)
    another().put(SERIES, "1-a.offsets", b"")
    another().put("other", "1-a", b"other")
    assert sorted(another().names(SERIES)) == ["1-a", "1-a.offsets"]
    assert (another().get(SERIES, "1-a"), another().get(SERIES, "1-a.offsets")) == (anything, b"")
    another().put(SERIES, "1-a", b"again")
    assert another().get(SERIES, "1-a") == b"again"
    for _ in range(2):
        another().remove(SERIES, "1-a")
    assert another().names(SERIES) == ["1-a.offsets"]
    assert another().get("other", "1-a") == b"other"


def test_versions_are_found_in_the_order_of_their_numbers(another: Another) -> None:
    store = ReferenceStore(another())
    for number in (10, 2, 1):
        store.save(version(number), b"%d" % number)
    store.note_offsets(version(2), "s", {0: 17, 3: 2**40})
    another().put(SERIES, "no version", b"")
    other = ReferenceStore(another())
    assert other.versions(SERIES) == [version(1), version(2), version(10)]
    assert [other.load(version(number)) for number in (1, 2, 3)] == [b"1", b"2", None]
    assert [other.offsets(version(number), "s") for number in (1, 2)] == [None, {0: 17, 3: 2**40}]
    other.remove(version(2))
    assert store.versions(SERIES) == [version(1), version(10)]
    assert sorted(another().names(SERIES)) == sorted([version(1).name, version(10).name, "no version"])


@pytest.mark.parametrize(
    "noted", [b"", b"[]", b"7", b'{"a": 1}', b'{"0": null}', b'{"stage": "s", "offsets": 7}', b"\xff"]
)
def test_offsets_that_cannot_be_read_are_none(noted: bytes, tmp_path: Path) -> None:
    kept = DirectoryVersions(tmp_path)
    kept.put(SERIES, f"{version(2).name}.offsets", noted)
    assert ReferenceStore(kept).offsets(version(2), "s") is None


def test_offsets_in_the_log_of_another_stage_are_none(tmp_path: Path) -> None:
    store = ReferenceStore(DirectoryVersions(tmp_path))
    store.note_offsets(version(2), "s", {0: 17})
    assert (store.offsets(version(2), "s"), store.offsets(version(2), "another")) == ({0: 17}, None)


@pytest.mark.parametrize("place", ["redis", "file:", "s3:"])
def test_versions_lie_beside_the_snapshots_and_outlive_their_end(
    place: str, tmp_path: Path, unique_name: Name, request: pytest.FixtureRequest
) -> None:
    server: RedisServer = request.getfixturevalue("redis_server")
    application, redis = unique_name(), RedisStore(server.url, unique_name())
    if place == "s3:":
        request.getfixturevalue("s3_server")
    url = {"redis": "redis", "file:": f"file://{tmp_path}/a folder", "s3:": f"s3://{BUCKET}/b"}[place]
    snapshots, references = snapshot_store(url, application, redis), reference_store(url, application, redis)
    references.save(version(1), b"rows")
    snapshots.save(PartitionId("references", 0), whole(7), b"state")
    snapshots.clear()
    assert references.load(version(1)) == b"rows"
    assert snapshots.increments(PartitionId("references", 0)) == []


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path: Path) -> None:
    kept = DirectoryVersions(tmp_path)
    kept.put(SERIES, "1-a", b"rows")
    left = tmp_path / "references" / SERIES / ".saving-x"
    left.write_bytes(b"ro")
    assert kept.names(SERIES) == ["1-a"]
    kept.put(SERIES, "2-b", b"rows")
    assert not left.exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "references").write_text("a file")
    kept = DirectoryVersions(tmp_path)
    for command in (
        lambda: kept.put(SERIES, "1-a", b""),
        lambda: kept.get(SERIES, "1-a"),
        lambda: kept.names(SERIES),
    ):
        with pytest.raises(StoreError, match=f"reference tables in {tmp_path}/references"):
            command()


def test_a_directory_of_snapshots_is_written_as_before(tmp_path: Path) -> None:
    store = DirectorySnapshots(tmp_path)
    store.save(PartitionId("check", 0), whole(7), b"state")
    assert [each.name for each in (tmp_path / "check-0").iterdir()] == [whole(7).name]
