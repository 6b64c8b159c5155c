"""docs/lab.md: its load is right for the application that `bettong init` makes, its run files are those of the tree."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from bettong.cli.init import files
from bettong.edges.application_file import load as load_application
from bettong.frames.text import json_line
from bettong.lab import spec
from bettong.lab.load import LabLoad, LoadPart, make_load
from bettong.schema.schema import schema_of
from bettong.schema.tables import batch_of
from bettong.testing import frame, run
from tests.samples.page_code import blocks

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / "docs" / "lab.md"
STEADY, OWN = blocks(LAB, "toml")[:2]
MESSAGES = 250


@pytest.fixture
def load(tmp_path: Path) -> LabLoad:
    """That of the page, in a file."""
    (code,) = blocks(LAB, "python")
    (tmp_path / "load.py").write_text(code)
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
    assert load.wrong({"totals": b"".join(found)}) == ""
    for wrong in (found[:-1], [*found, found[0]], [*found[:-1], found[-1].replace(b".0", b".5")]):
        assert load.wrong({"totals": b"".join(wrong)})


def test_the_run_files_of_the_page_are_right(tmp_path: Path) -> None:
    assert tomllib.loads(STEADY) == tomllib.loads(
        (ROOT / STEADY.splitlines()[0].removeprefix("# ")).read_text()
    )
    (tmp_path / "run.toml").write_text(OWN)
    own = spec.read(tmp_path / "run.toml")
    assert (own.application, own.load) == ("app.py", "load.py")
