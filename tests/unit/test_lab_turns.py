"""`bettong lab run --against`: versions take turns, and are compared; and what ends it leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import bettong
from bettong.cli.exit_codes import BROKEN, USAGE
from bettong.cli.main import app
from bettong.lab.results import COMMITTED, read
from tests.looked_at import has_ended
from tests.samples.lab_versions import commit, git, repository, write
from tests.waiting import eventually


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in which we work, of the versions `old` and `new`: 100 and 200 messages/s."""
    found = repository(tmp_path / "tree")
    commit(found, {"speed": "200"}, tag="new")
    monkeypatch.chdir(found)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("TURNS", str(tmp_path / "turns"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    return found


def run(tree: Path, *words: str) -> Result:
    """In turns, into a folder beside the tree."""
    out = tree.parent / "out"
    return CliRunner().invoke(app, ["lab", "run", "run.toml", "--out", str(out), *words])


def is_clean(tree: Path) -> bool:
    return len(git(tree, "worktree", "list").splitlines()) == 1 and not list((tree.parent / "tmp").iterdir())


def test_versions_take_turns_and_each_leaves_a_folder_that_names_its_commit(tree: Path) -> None:
    ended = run(tree, "--against", "old", "--repeats", "4")
    assert ended.exit_code == 0, ended.output
    assert (tree.parent / "turns").read_text().split() == [
        "100",
        "200",
        "200",
        "100",
        "100",
        "200",
        "200",
        "100",
    ]
    before, after = sorted((tree.parent / "out").iterdir())
    assert before.name.endswith(f"-{git(tree, 'describe', '--always', 'old')}")
    assert after.name.endswith(f"-{git(tree, 'describe', '--always', 'new')}")
    for folder, tag in ((before, "old"), (after, "new")):
        assert read(folder).machine["commit"] == git(tree, "describe", "--always", tag)
        made = datetime.fromisoformat(read(folder).machine[COMMITTED])
        assert made.timestamp() == int(git(tree, "show", "--no-patch", "--format=%ct", f"{tag}^{{commit}}"))
    assert [round(value) for value in read(before).metrics[0].values] == [100] * 4
    assert [round(value) for value in read(after).metrics[0].values] == [200] * 4
    assert (before / "run.toml").read_text() == 'name = "steady"\nrepeats = 4\nof_another_version = 1\n'
    assert [row["repeat"] for row in pq.read_table(before / "series.parquet").to_pylist()] == [1, 2, 3, 4]
    assert "before: old, commit" in ended.output
    assert "after: this tree, commit" in ended.output
    assert is_clean(tree)


def test_it_prints_what_compare_does_and_ends_as_that_does(tree: Path) -> None:
    git(tree, "checkout", "--quiet", "old")
    ended = run(tree, "--against", "new", "--repeats", "4", "--json")
    assert ended.exit_code == BROKEN, ended.output
    folders = [str(each) for each in sorted((tree.parent / "out").iterdir())]
    compared = CliRunner().invoke(app, ["lab", "compare", *folders, "--json"])
    assert compared.exit_code == BROKEN
    assert json.loads(ended.stdout) == [{"run": "steady", **each} for each in json.loads(compared.stdout)]
    assert json.loads(compared.stdout)[0]["verdict"] == "worse"
    shown = CliRunner().invoke(app, ["lab", "compare", *folders]).stdout.splitlines()
    again = run(tree, "--against", "new", "--repeats", "4", "--out", str(tree.parent / "again")).stdout
    assert [line for line in again.splitlines() if line in shown] == shown


def test_it_repeats_as_often_as_the_run_file_says(tree: Path) -> None:
    assert run(tree, "--against", "old").exit_code == 0
    assert (tree.parent / "turns").read_text().split() == ["100", "200", "200", "100"]


def test_a_repeat_that_fails_names_its_version_and_why(tree: Path) -> None:
    commit(tree, {"wrong": "0"}, tag="wrong")
    ended = run(tree, "--against", "old")
    assert (
        str(ended.exception) == "this tree: `bettong lab run` ended with exit code 1: the results are wrong"
    )
    assert not (tree.parent / "out").exists()
    assert is_clean(tree)


def test_finished_pairs_are_kept_when_a_later_repeat_fails(tree: Path) -> None:
    commit(tree, {"wrong": "2"}, tag="wrong")
    ended = run(tree, "--against", "old", "--repeats", "4")
    assert "this tree: `bettong lab run` ended with exit code 1" in str(ended.exception)
    before, after = sorted((tree.parent / "out").iterdir())
    assert [round(value) for value in read(before).metrics[0].values] == [100]
    assert [round(value) for value in read(after).metrics[0].values] == [200]
    assert "steady: kept 1 of 4 repeats" in ended.output
    assert is_clean(tree)


def test_a_version_that_is_changed_meanwhile_is_no_measurement(tree: Path) -> None:
    write(tree, {"changes": "2"})
    before = git(tree, "describe", "--always")
    ended = run(tree, "--against", "old", "--repeats", "4")
    assert "this tree was changed while it was measured" in str(ended.exception)
    _, after = sorted((tree.parent / "out").iterdir())
    assert after.name.endswith(before), "what was measured before the change has the name of then"
    assert read(after).machine["commit"] == before


def test_of_several_files_each_keeps_the_pairs_that_it_has(tree: Path) -> None:
    commit(
        tree,
        {"wrong": "2", "other.toml": (tree / "run.toml").read_text().replace("steady", "other")},
        tag="x",
    )
    commit(tree, {"app.py": "# changed"}, tag="wrong")
    ended = run(tree, "other.toml", "--against", "x", "--repeats", "4")
    assert "the results are wrong" in str(ended.exception)
    assert "steady: kept 1 of 4 repeats" in ended.output
    assert "other: kept" not in ended.output


def test_what_prepares_a_worktree_needs_one(tree: Path) -> None:
    assert run(tree, "--prepare", "true").exit_code == USAGE
    ended = run(tree, "--prepare", "true", "--against", str(tree.parent / "tmp"))
    assert "is a folder: --prepare is for" in str(ended.exception)
    assert not (tree.parent / "turns").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_when_it_is_interrupted_the_run_ends_first_and_nothing_is_left(
    number: signal.Signals, tree: Path
) -> None:
    commit(tree, {"waits": ""}, tag="waits")
    git(tree, "checkout", "--quiet", "old")
    # Not the stand-in that lies in the working directory.
    call = (sys.executable, "-P", "-m", "bettong", "lab", "run", "run.toml", "--against", "waits")
    source = str(Path(bettong.__file__).parents[1])
    with subprocess.Popen(
        call, env={**os.environ, "PYTHONPATH": source}, stderr=subprocess.PIPE, start_new_session=True
    ) as started:
        waits = Path(os.environ["TURNS"] + ".waits")
        eventually(lambda: waits.exists() and waits.read_text())
        os.killpg(started.pid, number)
        assert started.wait(60) == 128 + number
    assert Path(os.environ["TURNS"] + ".ended").exists()
    assert has_ended(int(waits.read_text()))
    assert is_clean(tree)
