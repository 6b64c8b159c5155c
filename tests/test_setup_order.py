"""In which order `make setup` does its steps, what it does beside them, and how it ends where one fails."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from deploy import bootstrap
from deploy.bootstrap import Setup, is_complete, set_up
from deploy.setup_plan import SetupError, SystemServer
from tests.samples.setup import GOOD, a_tree
from tests.waiting import eventually


def test_jars_come_beside_the_packages_and_archives_behind_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, done = threading.Event(), list[str]()

    def make(of: str) -> None:
        if of == "jars":
            began.set()
        elif of == "packages":  # which end only once the jars have begun
            assert began.wait(30)
        done.append(of)

    replace_steps(monkeypatch, make)
    tree = a_tree(tmp_path)
    set_up(tree, [], [replace(step, outputs=()) for step in tree.steps()])
    assert done[0] == "environment"
    assert done[-1] == "archives"
    assert sorted(done) == sorted(step.name for step in tree.steps())
    steps = [replace(step, outputs=()) for step in tree.steps()]
    assert is_complete(tree, [], steps)  # all have their stamps
    assert not is_complete(tree, [SystemServer("no-such-server", "none", "nothing")], steps)
    set_up(tree, [], steps)
    assert len(done) == len(steps)


def test_where_a_step_fails_what_goes_on_beside_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = a_tree(tmp_path)
    runs = tmp_path / "runs"

    def make(of: str) -> None:
        if of == "jars":
            script = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"
            Setup.run(asked[0], "jars", [sys.executable, "-c", script, str(runs)])
        elif of == "installer":
            eventually(runs.exists)
            raise SetupError("no installer")

    asked = replace_steps(monkeypatch, make)
    begun_s = time.monotonic()
    with pytest.raises(SetupError, match="no installer"):
        set_up(tree, [], [replace(step, attempts=1, outputs=()) for step in tree.steps()])
    assert time.monotonic() - begun_s < 30
    assert "jars" not in tree.stamps()


def test_what_cannot_be_installed_here_is_said_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = list[str]()
    replace_steps(monkeypatch, done.append)
    tree = a_tree(tmp_path)
    with pytest.raises(SetupError, match="a server is missing: run `sudo apt-get install -y needed`"):
        set_up(tree, [SystemServer("needed", "needed", "a server")], tree.steps())
    assert not done


def test_a_step_that_made_nothing_ends_the_setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_steps(monkeypatch, lambda _: None)
    tree = a_tree(tmp_path)
    with pytest.raises(
        SetupError, match=r"Python environment in \.venv: done, and .*bin/python is not there"
    ):
        set_up(tree, [], tree.steps())
    assert not tree.stamps()


def replace_steps(monkeypatch: pytest.MonkeyPatch, make: Callable[[str], None]) -> list[Setup]:
    """Each step of a setup is `make` of its name; returns who does them, once one is done."""
    asked = list[Setup]()

    def action(of: str) -> Callable[[Setup], None]:
        def do(setup: Setup) -> None:
            asked.append(setup)
            make(of)

        return do

    for name in ("environment", "installer", "packages", "protos", "projects", "jars", "archives"):
        monkeypatch.setattr(Setup, f"_make_{name}", action(name))
    monkeypatch.setattr(bootstrap, "inspect_machine", lambda: GOOD)
    return asked
