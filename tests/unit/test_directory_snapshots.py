"""Cases of the directory store only: leftover files, and disk errors."""

from pathlib import Path

import pytest

from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.errors import StoreError
from bettong.identifiers import PartitionId
from bettong.snapshots.chain import Increment
from tests.samples.snapshots import whole

CHECK = PartitionId("check", 0)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_leftovers_of_killed_writers_of_older_increments_are_removed(tmp_path: Path) -> None:
    store = DirectorySnapshots(tmp_path)
    store.save(CHECK, whole(10), b"ten")
    folder = tmp_path / "check-0"
    for left in (".saving-5-0-5-abc", ".saving-15-0-15-abc", ".saving-30-0-30-abc"):
        (folder / left).write_bytes(b"half")
    store.save(CHECK, whole(20), b"twenty")
    assert names(folder) == [".saving-15-0-15-abc", ".saving-30-0-30-abc", "10-0-10", "20-0-20"]
    store.save(CHECK, whole(25), b"twenty-five")
    assert names(folder) == [".saving-30-0-30-abc", "20-0-20", "25-0-25"]
    assert store.load(CHECK, whole(25)) == b"twenty-five"


def test_files_that_are_no_snapshots_are_left_alone(tmp_path: Path) -> None:
    store = DirectorySnapshots(tmp_path)
    store.save(CHECK, whole(10), b"ten")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "10-0-10").write_bytes(b"")
    (tmp_path / "check-0" / "README").write_bytes(b"")
    store.save(CHECK, whole(20), b"twenty")
    store.clear()
    assert names(tmp_path / "check-0") == ["README"]
    assert names(tmp_path / "notes") == ["10-0-10"]
    assert store.increments(CHECK) == []


def test_a_file_is_synced_before_it_gets_its_name(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    store = DirectorySnapshots(tmp_path, sync=lambda _: seen.append(store_names()))

    def store_names() -> list[str]:
        return [name for name in names(tmp_path / "check-0") if Increment.parse(name)]

    store.save(CHECK, whole(10), b"ten")
    store.save(CHECK, whole(20), b"twenty")
    assert seen == [[], ["10-0-10"]]


def test_a_disk_error_is_reported_and_leaves_no_partial_file(tmp_path: Path) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    DirectorySnapshots(tmp_path).save(CHECK, whole(10), b"ten")
    with pytest.raises(StoreError, match="No space left"):
        DirectorySnapshots(tmp_path, sync=full).save(CHECK, whole(20), b"twenty")
    assert names(tmp_path / "check-0") == ["10-0-10"]
    (tmp_path / "file").write_bytes(b"")
    blocked = DirectorySnapshots(tmp_path / "file")
    with pytest.raises(StoreError, match=r"file.*writable"):
        blocked.save(CHECK, whole(10), b"ten")
    with pytest.raises(StoreError, match=r"file.*writable"):
        blocked.load(CHECK, whole(10))
    with pytest.raises(StoreError, match=r"file.*writable"):
        blocked.increments(CHECK)


@pytest.mark.parametrize("name", ["marks-feed-1", "feed-1"])
def test_clear_skips_a_file_with_the_name_of_a_folder(tmp_path: Path, name: str) -> None:
    store = DirectorySnapshots(tmp_path)
    (tmp_path / name).touch()
    store.save(PartitionId("feed-1", 0), Increment(5, 0, 5), b"x")
    store.clear()
    assert store.increments(PartitionId("feed-1", 0)) == []
    assert (tmp_path / name).exists()
