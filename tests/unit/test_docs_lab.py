"""docs/lab.md: its load is right for the application that `bettong init` makes, its run files are those of the tree."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from bettong.cli.init import files
from bettong.edges.application_file import load as load_application
from bettong.frames.text import json_line
from bettong.lab import spec
from bettong.lab.load import LabLoad, LoadPart, SinkResults, make_load
from bettong.lab.table_load import load_of
from bettong.schema.schema import schema_of
from bettong.schema.tables import batch_of
from bettong.testing import frame, run
from tests.samples.page_code import blocks

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / "docs" / "lab.md"
STEADY, TABLE, OWN = blocks(LAB, "toml")[:3]
CODE, COMPUTED = blocks(LAB, "python")
MESSAGES = 250


@pytest.fixture
def load(tmp_path: Path) -> LabLoad:
    """That of the page, in a file."""
    (tmp_path / "load.py").write_text(CODE)
    return make_load(str(tmp_path / "load.py"), MESSAGES, 1)


def results_of(parts: Iterator[LoadPart], folder: Path) -> list[bytes]:
    """What the application makes of these, as a subscriber gets it. The columns are those of the source's schema."""
    (folder / "app.py").write_text(files("totals", "0.1")["app.py"])
    app = load_application(str(folder / "app.py"))
    (source,) = app.sources
    assert source.schema is not None
    frames = [
        frame(
            part.source,
            *map(source.schema.make, *batch_of(source.schema.arrow, dict(part.columns)).to_pydict().values()),
        )
        for part in parts
    ]
    found = run(app, frames, partitions=2).outputs["totals"]
    return [json_line(schema_of(type(each)), each) for each in found]


def test_the_load_of_the_page_expects_what_the_application_gives(load: LabLoad, tmp_path: Path) -> None:
    parts = [*load.first(), *(part for parts in load.rounds() for part in parts)]
    assert sum(part.messages for part in parts[len(load.first()) :]) == MESSAGES
    found = results_of(iter(parts), tmp_path)
    assert load.result_bytes() == {"totals": sum(map(len, found))}
    assert load.wrong({"totals": SinkResults.of(found)}) == ""
    for wrong in (found[:-1], [*found, found[0]], [*found[:-1], found[-1].replace(b".0", b".5")]):
        assert load.wrong({"totals": SinkResults.of(wrong)})


def test_loads_whose_answer_is_computed_are_those_of_the_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app.py").write_text(files("totals", "0.1")["app.py"])
    (tmp_path / "load.py").write_text(COMPUTED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "app", raising=False)
    (tmp_path / "run.toml").write_text(TABLE)
    run_of_table = spec.read(tmp_path / "run.toml").model_copy(update={"steps": [], "messages": MESSAGES})
    for made in (load_of(run_of_table), make_load("load.py", MESSAGES, 1)):
        results = results_of(iter(next(made.rounds())), tmp_path)
        assert len(results) == MESSAGES
        assert made.result_bytes() == {"totals": len(SinkResults.of(results))}
        assert made.wrong({"totals": SinkResults.of(results)}) == ""
    monkeypatch.delitem(sys.modules, "app", raising=False)


def test_the_run_files_of_the_page_are_right(tmp_path: Path) -> None:
    assert tomllib.loads(STEADY) == tomllib.loads(
        (ROOT / STEADY.splitlines()[0].removeprefix("# ")).read_text()
    )
    (tmp_path / "run.toml").write_text(OWN)
    own = spec.read(tmp_path / "run.toml")
    assert (own.application, own.load) == ("app.py", "load.py")
