"""Versions that are measured in turns: where they come from, what runs in them, and that nothing of them is left."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

import bettong
from bettong.errors import LabError
from bettong.lab.versions.checkouts import other, run_file, run_to_end, this_tree
from bettong.local.processes import Command
from tests.samples.lab_versions import FILES, commit, git, repository, write


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in which we work; its only commit is `old`."""
    found = repository(tmp_path / "tree")
    monkeypatch.chdir(found)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return found


def refused(asked: str, prepare: str | None = None) -> str:
    """Why there is no such version."""
    with pytest.raises(LabError) as raised, other(asked, this_tree(), prepare):
        pass
    return str(raised.value)


def worktrees(tree: Path) -> int:
    return len(git(tree, "worktree", "list").splitlines())


def test_a_commit_is_checked_out_while_it_is_measured_and_then_gone(tree: Path) -> None:
    commit(tree, {"speed": "200"}, tag="new")
    for name, speed in (("old", "100"), ("new", "200"), (git(tree, "rev-parse", "--short", "old"), "100")):
        with other(name, this_tree(), None) as found:
            assert (found.folder / "speed").read_text() == speed
            assert found.folder != tree
            assert found.commit == git(tree, "describe", "--always", f"{name}^{{commit}}", "--abbrev=7")[:7]
            assert found.python == sys.executable
            assert worktrees(tree) == 2
        assert not found.root.exists()
        assert worktrees(tree) == 1


def test_a_run_in_a_folder_of_the_repository_is_in_that_folder_of_the_commit(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(tree, {f"deep/er/{name}": text for name, text in FILES.items()}, tag="deep")
    monkeypatch.chdir(tree / "deep" / "er")
    with other("deep", this_tree(), None) as found:
        assert found.folder == found.root / "deep" / "er"
        assert run_file(Path("run.toml"), found, this_tree()) == found.folder / "run.toml"
        assert run_file(tree / "run.toml", found, this_tree()) == found.root / "run.toml"
    assert "old has no folder deep/er" in refused("old")


def test_a_worktree_is_prepared_by_a_command_whose_python_is_ours(tree: Path) -> None:
    code = "import sys; open('prepared', 'w').write(sys.prefix)"
    with other("old", this_tree(), f"python -c {shlex.quote(code)}") as found:
        assert (found.folder / "prepared").read_text() == sys.prefix
    assert "exit code 3: not today" in refused("old", "sh -c 'echo not today; exit 3'")
    assert worktrees(tree) == 1


@pytest.mark.parametrize("in_git", [True, False], ids=["worktree", "folder"])
def test_a_folder_is_measured_as_it_is_on_the_environment_that_it_has(
    *, in_git: bool, tree: Path, tmp_path: Path
) -> None:
    if in_git:
        git(tree, "worktree", "add", "--quiet", str(tmp_path / "by hand"), "old")
    write(tmp_path / "by hand", {**FILES, "speed": "300"})
    python = tmp_path / "by hand" / ".venv" / "bin" / "python"
    with other("../by hand", this_tree(), None) as found:
        assert found.python == sys.executable
    write(python.parent, {"python": f'#!/bin/sh\nexec {sys.executable} "$@"\n'})
    python.chmod(0o755)
    with other("../by hand", this_tree(), None) as found:
        assert found.python == str(python)
        assert (found.folder / "speed").read_text() == "300"
        assert str(found).endswith(f"on {python}")
        assert in_git == ("commit unknown" not in str(found))
    assert python.exists()


def test_a_link_to_our_environment_is_ours(tree: Path, tmp_path: Path) -> None:
    write(tmp_path / "linked", FILES)
    (tmp_path / "linked" / ".venv").symlink_to(sys.prefix)
    with other(str(tmp_path / "linked"), this_tree(), None) as found:
        assert found.python == sys.executable


def test_paths_of_python_that_lead_into_this_tree_lead_into_the_version(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(tree, {"src/mine.py": "VERSION = 'with src'"}, tag="with-src")
    write(tree, {"src/mine.py": "VERSION = 'of this tree'", "new/other.py": ""})
    monkeypatch.setenv("PYTHONPATH", f"{tree / 'src'}:{tmp_path}")
    monkeypatch.syspath_prepend(tree / "src")
    with other("with-src", this_tree(), None) as found:
        assert found.environment == {"PYTHONPATH": f"{found.root / 'src'}:{tmp_path}"}
    monkeypatch.delenv("PYTHONPATH")
    with other("with-src", this_tree(), None) as found:
        words = (found.python, "-c", "import mine; print(mine.VERSION)")
        ended = run_to_end(Command("mine", words, tmp_path / "log", found.environment, found.folder))
        assert ended.tail() == ["with src"]
    assert "old has no src, from which this Python takes modules" in refused("old")


def test_a_tree_whose_bettong_does_not_start_is_refused(tree: Path) -> None:
    commit(tree, {"bettong/lab/run.py": "import no_such_module"}, tag="broken")
    said = refused("broken")
    assert "Bettong does not start there (ModuleNotFoundError: No module named 'no_such_module')" in said
    assert "--prepare" in said


def test_a_version_that_would_run_our_bettong_and_not_its_own_is_refused(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tree, "rm", "-r", "--quiet", "bettong")
    commit(tree, {"src/bettong/__init__.py": ""}, tag="without")
    monkeypatch.setattr(bettong, "__file__", str(tree / "src" / "bettong" / "__init__.py"))
    assert "without would run Bettong of" in refused("without")


def test_what_is_no_version_is_refused_by_name(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refused("no-such") == f"no-such is no commit, branch or tag of {tree}, and no folder"
    assert refused("--all").startswith("--all is no commit")
    assert "lies in this tree" in refused("bettong")
    write(tmp_path / "no git", FILES)
    monkeypatch.chdir(tmp_path / "no git")
    assert "is no commit" in refused("old")


def test_what_is_not_committed_is_said(tree: Path) -> None:
    assert str(this_tree()) == f"this tree, commit {git(tree, 'describe', '--always')}"
    write(tree, {"app.py": "changed", "a new one.py": "", "b.py": "", "c.py": ""})
    said = str(this_tree())
    assert "-dirty, with uncommitted changes (" in said
    assert "app.py" in said
    assert said.endswith("and 1 more)")


def test_a_run_file_that_one_version_lacks_or_that_both_would_share_is_refused(
    tree: Path, tmp_path: Path
) -> None:
    here = this_tree()
    write(tree, {"new.toml": "", "app.toml": FILES["run.toml"].replace("app.py", "new.py:app"), "new.py": ""})
    shared = FILES["run.toml"].replace('"load.py"', f'"{tree}/load.py"')
    write(tmp_path, {"outside.toml": FILES["run.toml"], "shared.toml": shared})
    with other("old", here, None) as old:
        with pytest.raises(
            LabError, match=r"new\.toml is not in old: commit it there, or name a file outside of"
        ):
            run_file(Path("new.toml"), old, here)
        outside = tmp_path / "outside.toml"
        assert [run_file(outside, each, here) for each in (old, here)] == [outside, outside]
        with pytest.raises(LabError, match=r"its load .* from the working directory|both versions would use"):
            run_file(tmp_path / "shared.toml", old, here)
        commit(tree, {}, tag="now")
    with other("now", here, None) as now:
        assert run_file(Path("app.toml"), now, here).is_file()
        (now.folder / "new.py").unlink()
        with pytest.raises(LabError, match=r"app\.toml: its application new\.py is not in now"):
            run_file(Path("app.toml"), now, here)
