"""What commands of the lab say of their steps where nobody watches a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bettong.cli.lab.showing import showing_progress
from bettong.cli.main import app


def test_off_a_terminal_each_step_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with showing_progress("orders, repeat 1 of 3") as say:
        say("starting the application")
        assert capsys.readouterr().err == "orders, repeat 1 of 3: starting the application\n"
        say(f"installing into [namespace] {'x' * 200}")
    said = capsys.readouterr()
    assert said.err == f"orders, repeat 1 of 3: installing into [namespace] {'x' * 200}\n"
    assert said.out == ""


def test_a_run_says_its_steps(tmp_path: Path) -> None:
    load, application = tmp_path / "load.py", tmp_path / "app.py"
    load.write_text("")
    application.write_text("")
    file = tmp_path / "run.toml"
    file.write_text(
        f'name = "orders"\napplication = "{application}"\nload = "{load}"\nmessages = 10\nrepeats = 2\n'
    )
    ended = CliRunner().invoke(app, ["lab", "run", str(file), "--out", str(tmp_path / "out")])
    assert str(load) in str(ended.exception)
    assert ended.stderr.splitlines() == ["orders, repeat 1 of 2: making the load and its expected results"]
    assert ended.stdout == ""
