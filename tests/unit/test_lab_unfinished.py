"""Runs in turns: missing files are named before the first one; finished repeats are kept when a later one fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bettong.cli.main import app
from bettong.errors import LabError, SettingsError
from bettong.lab.measures import Measured
from bettong.lab.results import read
from bettong.lab.run import Repeat
from bettong.lab.spec import RunSpec

REPLAYED = """name = "replayed"
application = "app.py:APP"
messages = 10
[[load.sources]]
source = "items"
file = "quotes.parquet"
[[load.sources]]
source = "others"
file = "app.py"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with an application, a load, and the run files `one` and `two`."""
    monkeypatch.chdir(tmp_path)
    for name in ("app.py", "load.py"):
        Path(name).write_text("")
    for name in ("one", "two"):
        Path(f"{name}.toml").write_text(
            f'name = "{name}"\napplication = "app.py"\nload = "load.py"\nmessages = 10\n'
        )
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["lab", "run", *words])


@pytest.mark.parametrize(
    ("missing", "text"),
    [
        ("app.py", "two.toml: application = 'app.py': there is no such file"),
        ("load.py", "two.toml: load = 'load.py': there is no such file"),
    ],
)
def test_a_missing_file_is_named_before_anything_runs(missing: str, text: str, folder: Path) -> None:
    Path("other.py").write_text("")
    Path("one.toml").write_text(Path("one.toml").read_text().replace(missing, "other.py"))
    Path(missing).unlink()
    ended = run("one.toml", "two.toml")
    assert isinstance(ended.exception, SettingsError)
    assert str(ended.exception) == f"{text}; name it from the working directory, {folder}"
    assert ended.output == ""


def test_a_file_that_is_to_be_replayed_is_named_too(folder: Path) -> None:
    Path("replayed.toml").write_text(REPLAYED)
    ended = run("replayed.toml")
    assert str(ended.exception) == (
        "replayed.toml: load.sources[0].file = 'quotes.parquet': there is no such file; name it from the working"
        f" directory, {folder}"
    )


@pytest.mark.parametrize("fault", [LabError("the results are wrong"), KeyboardInterrupt()])
def test_finished_repeats_are_kept_when_a_later_one_fails(
    fault: BaseException, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = iter([1.0, 10.0, 2.0])

    def once(_: RunSpec, **__: object) -> Repeat:
        if (rate := next(rates, None)) is None:
            raise fault
        return Repeat([Measured("throughput", "messages/s", rate)])

    monkeypatch.setattr("bettong.cli.lab.runs.once", once)
    ended = run("one.toml", "two.toml", "--repeats", "5")
    assert ended.exit_code != 0
    one, two = sorted((folder / "lab-results").iterdir(), key=lambda each: each.name[-3:])
    assert [read(each).metrics[0].values for each in (one, two)] == [(1.0, 2.0), (10.0,)]
    assert "one: kept 2 of 5 repeats" in ended.output
    assert f"two: kept 1 of 5 repeats\nlab-results/{two.name}" in ended.output


def test_what_cannot_be_kept_does_not_hide_why_the_run_failed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = iter([1.0, 10.0])

    def once(_: RunSpec, **__: object) -> Repeat:
        if (rate := next(rates, None)) is None:
            (folder / "lab-results").write_text("in the way")
            raise LabError("the results are wrong")
        return Repeat([Measured("throughput", "messages/s", rate)])

    monkeypatch.setattr("bettong.cli.lab.runs.once", once)
    ended = run("one.toml", "two.toml", "--repeats", "5")
    assert str(ended.exception) == "the results are wrong"
    for name in ("one", "two"):
        assert f"{name}: 1 of 5 repeats are lost: lab-results cannot be written" in ended.output


def test_a_run_that_fails_at_once_leaves_no_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def once(_: RunSpec, **__: object) -> Repeat:
        raise LabError("the results are wrong")

    monkeypatch.setattr("bettong.cli.lab.runs.once", once)
    assert str(run("one.toml").exception) == "the results are wrong"
    assert not (folder / "lab-results").exists()
