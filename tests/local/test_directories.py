"""The folders of a run: locked while it lives, removed when nobody owns them."""

import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bettong.errors import LocalError
from bettong.local.background import keep_log
from bettong.local.directories import Directories, claim, remove_suite, sweep
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


def test_a_folder_that_holds_what_is_not_a_suites_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    mine.chmod(0o755)
    (mine / "thesis.txt").write_text("years of work")
    (mine / "lock").touch()  # other programs lock their folders too
    for take in (Directories, claim):
        with pytest.raises(LocalError, match=r"mine holds .*thesis.txt.* empty folder"):
            take(mine)
    with pytest.raises(LocalError, match="is no folder of a suite"):
        remove_suite(mine)
    assert sorted(path.name for path in mine.iterdir()) == ["lock", "thesis.txt"]
    assert stat.S_IMODE(mine.stat().st_mode) == 0o755


def test_a_suites_folder_is_its_owners_alone(tmp_path: Path) -> None:
    for name in ("new", "empty", "older"):
        directory = tmp_path / name
        if name != "new":
            directory.mkdir(mode=0o755)
        if name == "older":
            (directory / ".bettong-suite").touch()
        claim(directory)
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700, name


def test_a_suites_folder_is_removed_and_what_else_lies_in_it_stays(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    claim(kept)
    (kept / "kafka" / "logs").mkdir(parents=True)
    (kept / "suite.json").write_text("{}")
    Directories(kept).remove()
    (kept / "notes.txt").write_text("mine")
    assert remove_suite(kept) == [kept / "notes.txt"]
    assert [path.name for path in kept.iterdir()] == ["notes.txt"]

    claim(tmp_path / "other")
    assert remove_suite(tmp_path / "other") == []
    assert not (tmp_path / "other").exists()


def test_a_folder_that_another_process_uses_is_not_removed(tmp_path: Path) -> None:
    """Such as a suite that starts, or `bettong repartition`."""
    kept = tmp_path / "kept"
    user = Directories(kept)
    (kept / "kafka").mkdir()
    with pytest.raises(LocalError, match=r"another Bettong runs in .*kept: wait until it has ended"):
        remove_suite(kept)
    assert (kept / "kafka").is_dir()
    user.remove()
    assert remove_suite(kept) == []


def test_what_a_run_announced_there_before_it_was_killed_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "suite.json").write_text("{}")
    claim(tmp_path / "here")


def test_a_folder_that_cannot_be_made_is_an_error_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for take in (Directories, claim):
        with pytest.raises(LocalError, match=r"file/below cannot be used: .*; choose another folder"):
            take(tmp_path / "file" / "below")


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
        folders = [Path(text) for text in owner.stdout.readline().split()]
        sweep()
        assert all(place.is_dir() for place in folders)
        owner.kill()
    eventually(lambda: owner.poll() is not None)
    sweep()
    assert not any(place.exists() for place in folders)


def test_a_link_with_the_name_of_a_run_is_left_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").touch()
    link = tmp_path / "bettong-run-x"
    link.symlink_to(elsewhere)
    sweep()
    assert link.is_symlink()
    assert [path.name for path in elsewhere.iterdir()] == ["mine"]


def test_the_logs_of_the_last_runs_are_kept(tmp_path: Path) -> None:
    log = tmp_path / "suite.log"
    for run in range(9):
        keep_log(log)
        assert not log.exists()
        log.write_text(f"run {run}")
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"suite.log": "run 8"} | {f"suite.log.{back}": f"run {8 - back}" for back in range(1, 6)}


def test_a_folder_is_one_applications_until_it_is_removed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    for _ in range(2):
        first = Directories(kept)
        first.reserve("totals")
        first.remove()
    other = Directories(kept)
    with pytest.raises(
        LocalError, match=r"kept holds application 'totals': give 'clicks' a folder .*--dir DIR"
    ):
        other.reserve("clicks")
    other.remove()
    remove_suite(kept)
    anew = Directories(kept)
    anew.reserve("clicks")
    anew.remove()


def test_a_folder_whose_application_is_not_known_is_taken_over(tmp_path: Path) -> None:
    """As older versions left it."""
    claim(tmp_path / "kept")
    old = Directories(tmp_path / "kept")
    old.reserve("totals")
    old.remove()
    assert (tmp_path / "kept" / ".bettong-suite").read_text() == "totals\n"
