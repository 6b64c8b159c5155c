"""Editions of an application: a copy of its code, which runs even if the files change."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bettong import ApplicationError
from bettong.edges.application_file import MODULE_PREFIX, Edition, load

APPLICATION = """
from dataclasses import dataclass
import bettong
from edition_rule import NAME

@dataclass
class Item:
    key: str

app = bettong.Application(NAME)
app.source("in", schema=Item).sink("out")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    before = set(sys.modules)
    (tmp_path / "app.py").write_text(APPLICATION)
    (tmp_path / "edition_rule.py").write_text("NAME = 'first'\n")
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith(("edition_", MODULE_PREFIX)):
            del sys.modules[name]


def taken(folder: Path, before: Edition | None = None) -> Edition:
    edition = Edition(str(folder / "app.py"), {})
    edition.take(before)
    return edition


def test_an_edition_runs_the_code_that_it_copied_also_without_the_files(folder: Path) -> None:
    first = taken(folder).write(folder / "1")
    (folder / "edition_rule.py").write_text("NAME = 'second'\n")
    second = taken(folder, Edition.read(Path(first))).write(folder / "2")
    for path in folder.glob("*.py"):
        path.unlink()
    assert [load(each).name for each in (first, second, first)] == ["first", "second", "first"]
    assert load(second) is load(second)


def test_a_change_within_a_second_and_of_equal_size_is_noticed(folder: Path) -> None:
    first = taken(folder)
    (folder / "edition_rule.py").write_text("NAME = 'other'\n")
    assert taken(folder, first).load().name == "other"
    assert first.load().name == "first"


def test_the_file_and_the_modules_of_its_folder_are_kept_and_no_others(folder: Path) -> None:
    (folder / "edition_parts").mkdir()
    (folder / "edition_parts" / "names.py").write_text("from .texts import TEXT as NAME\n")
    (folder / "edition_parts" / "texts.py").write_text("TEXT = 'packed'\n")
    (folder / "edition_rule.py").write_text("import colorsys\nfrom edition_parts.names import NAME\n")
    edition = taken(folder)
    assert sorted(edition.modules) == [
        "bettong_application_app",
        *("edition_parts", "edition_parts.names", "edition_parts.texts", "edition_rule"),
    ]
    assert edition.load().name == "packed"
    assert not list(folder.rglob("__pycache__"))


def test_a_traceback_names_the_file(folder: Path) -> None:
    edition = taken(folder)
    (code,) = {edition.load().sources[0].schema.message.__init__.__globals__["__file__"]}
    assert code == str(folder / "app.py")


def test_after_an_error_the_modules_of_the_previous_edition_are_restored(folder: Path) -> None:
    first = taken(folder)
    before, finders = {name: sys.modules[name] for name in first.modules}, list(sys.meta_path)
    (folder / "edition_rule.py").write_text("NAME = \n")
    broken = Edition(str(folder / "app.py"), {})
    with pytest.raises(ApplicationError, match=r"SyntaxError: .*edition_rule\.py, line 1"):
        broken.take(first)
    assert {name: sys.modules[name] for name in first.modules} == before
    assert broken.modules.keys() == first.modules.keys(), "what is to be watched until it is mended"
    assert sys.meta_path == finders


def test_a_missing_application_file_is_named(folder: Path) -> None:
    first = taken(folder)
    (folder / "app.py").unlink()
    with pytest.raises(ApplicationError, match=r"app\.py'?: there is no such file"):
        taken(folder, first)


def test_a_missing_edition_is_named(folder: Path) -> None:
    """Not an OSError, which would end Spark's daemon before it serves."""
    gone = taken(folder).write(folder / "1")
    Path(gone).unlink()
    with pytest.raises(ApplicationError, match=r"1\.edition': there is no such file"):
        load(gone)
