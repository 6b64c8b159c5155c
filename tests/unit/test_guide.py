"""docs/guide: the code of each page runs, its tests pass, and the pages lead from one to the next."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bettong
import bettong.client
import bettong.testing
from bettong.application.nodes.stateful import StatefulOptions
from bettong.application.streams import JoinedStream, WindowedStream
from tests.samples.page_code import languages, page_module, run_tests

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide"
PAGES = sorted(GUIDE.glob("*.md"))
WAY_IN = {"index.md"}  # Without code.
ROW = re.compile(r"^\| \[[^]]+\]\(([\w-]+\.md)\) \|", re.MULTILINE)
NEXT = re.compile(r"^Next: \[[^]]+\]\(([\w-]+\.md)\)$", re.MULTILINE)
CODE = re.compile(r"`([^`\n]+)`")
OURS = re.compile(r"\bbettong\.(\w+)")
METHOD = re.compile(r"(?<![\w)])\.(\w+)")
OPTION = re.compile(r"\b(\w+)=")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs_and_its_tests_pass(page: Path) -> None:
    assert languages(page) <= {"python", "text"}, "code that no test runs"
    assert run_tests(page_module(page)) or page.name in WAY_IN


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_of_bettong_is_there(page: Path) -> None:
    assert [name for name in OURS.findall(page.read_text()) if not hasattr(bettong, name)] == []


def test_the_index_lists_the_pages_in_the_order_in_which_they_lead_on() -> None:
    listed = ROW.findall((GUIDE / "index.md").read_text())
    links = {page.name: NEXT.findall(page.read_text()) for page in PAGES}
    assert {*listed, "index.md", "coming-from.md"} == {page.name for page in PAGES}
    expected = {name: [after] for name, after in zip(["index.md", *listed], listed, strict=False)}
    assert links == {**expected, listed[-1]: [], "coming-from.md": []}


def code_of_ours() -> Iterator[str]:
    """Code in the second column of the tables of what others have."""
    for line in (GUIDE / "coming-from.md").read_text().splitlines():
        if line.startswith("| "):
            yield from CODE.findall(line.split(" | ")[1])


def test_methods_that_others_are_mapped_to_are_there() -> None:
    named = {name for code in code_of_ours() for name in METHOD.findall(code)}
    assert len(named) > 10
    there = {*dir(WindowedStream), *dir(JoinedStream), *dir(bettong.Application)}
    assert sorted(named - there) == []


def test_options_that_others_are_mapped_to_are_there() -> None:
    named = {name for code in code_of_ours() for name in OPTION.findall(code)}
    assert len(named) > 10
    owners = (bettong, bettong.Application, bettong.Stream)
    functions = [each for owner in owners for _, each in inspect.getmembers(owner, inspect.isfunction)]
    there = {name for each in functions for name in inspect.signature(each).parameters}
    assert sorted(named - there - set(StatefulOptions.__annotations__)) == []
