"""The folders of a run: locked while it lives, removed when nobody owns them."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bettong.errors import LocalError
from bettong.local.directories import Directories, sweep
from tests.waiting import eventually


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_temporary_folders_are_removed_and_kept_ones_stay(tmp_path: Path) -> None:
    temporary, kept = Directories(), Directories(tmp_path / "kept")
    assert temporary.root.is_dir()
    assert kept.state.parent.is_dir()
    temporary.remove()
    kept.remove()
    assert not temporary.root.exists()
    assert not temporary.state.parent.exists()
    assert not kept.state.parent.exists() or kept.state.parent == kept.root
    assert kept.root.is_dir()


def test_a_kept_folder_has_one_owner_at_a_time(tmp_path: Path) -> None:
    first = Directories(tmp_path / "kept")
    with pytest.raises(LocalError, match=r"another Bettong runs in .*kept"):
        Directories(tmp_path / "kept")
    first.remove()
    Directories(tmp_path / "kept").remove()


def test_folders_of_a_run_that_was_killed_are_swept_and_those_of_a_living_one_are_not(tmp_path: Path) -> None:
    code = f"""
import tempfile, time
tempfile.tempdir = {str(tmp_path)!r}
from bettong.local.directories import Directories
folders = Directories()
print(folders.root, folders.state.parent, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        places = [Path(text) for text in owner.stdout.readline().split()]
        sweep()
        assert all(place.is_dir() for place in places)
        owner.kill()
    eventually(lambda: owner.poll() is not None)
    sweep()
    assert not any(place.exists() for place in places)
