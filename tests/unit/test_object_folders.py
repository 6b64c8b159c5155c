"""Folders on a server whose client is synchronous: made for the first object, whoever else makes them meanwhile."""

from pathlib import Path

import pytest

from bettong.edges.object_store import ObjectSnapshots
from bettong.errors import StoreError
from bettong.identifiers import PartitionId
from tests.samples.files_on_server import SCHEME, FilesOnServer
from tests.samples.snapshots import whole

CHECK = PartitionId("check", 0)


def test_another_writer_may_make_each_folder_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def made_by_another(self: FilesOnServer, path: str, **options: object) -> None:
        made.append(Path(path).name)
        Path(path).mkdir()
        raise OSError("Failure")  # paramiko's, without a number, for a folder that exists

    monkeypatch.setattr(FilesOnServer, "mkdir", made_by_another)
    store = ObjectSnapshots(f"{SCHEME}://{tmp_path}/snapshots", "app")
    for offset in (1, 2):
        store.save(CHECK, whole(offset), b"state")
    assert made == ["snapshots", "app", "check-0"], "each once"
    assert store.load(CHECK, whole(2)) == b"state"


def test_a_folder_that_cannot_be_made_is_an_error_that_names_the_url(tmp_path: Path) -> None:
    (tmp_path / "snapshots").touch()
    store = ObjectSnapshots(f"{SCHEME}://{tmp_path}/snapshots", "app")
    with pytest.raises(StoreError, match=rf"{SCHEME}://{tmp_path}/snapshots refused; is BETTONG_SNAPSHOTS"):
        store.save(CHECK, whole(1), b"state")
