"""docs/examples.md: what it shows of each example is what the example gives, and its commands name what there is."""

from __future__ import annotations

import io
import re
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from bettong.application.plan import plan
from bettong.cli.check import tree
from bettong.edges.application_file import load
from tests.samples.example_answers import ANSWERS
from tests.samples.example_files import EXAMPLES, ExampleFiles, applications
from tests.samples.page_code import FENCE, languages, page_module

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "examples.md"
SECTION = re.compile(r"^## [^\n]+\n\n`examples/([\w/]+)\.py` (.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
SEND = re.compile(r"^bettong send (\S+) (\S+)$", re.MULTILINE)
TAIL = re.compile(r"^bettong tail (\S+) --count (\d+)$", re.MULTILINE)
UP = re.compile(r"^bettong (?:up|check) (\S+)", re.MULTILINE)
SECTIONS = dict(SECTION.findall(PAGE.read_text()))


def test_the_page_has_a_section_and_a_row_for_each_example() -> None:
    assert SECTIONS.keys() == applications()
    rows = re.findall(r"^\| \[[\w ]+\]\(#[\w-]+\) \|", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == len(SECTIONS)


def test_its_code_runs() -> None:
    assert languages(PAGE) == {"python", "sh", "json", "text"}
    page_module(PAGE)


def test_the_graph_is_what_check_shows() -> None:
    shown = io.StringIO()
    Console(file=shown, width=100).print(tree(plan(ExampleFiles("running_totals").app)))
    (block,) = (body for language, body in FENCE.findall(PAGE.read_text()) if language == "text")
    assert block == shown.getvalue()


@pytest.mark.parametrize("name", SECTIONS)
def test_commands_name_the_example_its_sources_and_their_files(name: str) -> None:
    sources = {source.name for source in plan(load(str(EXAMPLES / f"{name}.py"))).sources}
    assert set(UP.findall(SECTIONS[name])) <= {f"examples/{name}.py"}
    for source, file in SEND.findall(SECTIONS[name]):
        assert source in sources
        assert (ROOT / file).is_file()
        assert name not in ANSWERS or ROOT / file == ExampleFiles(name).file(source)


@pytest.mark.parametrize("name", ANSWERS)
def test_results_are_the_golden_ones(name: str) -> None:
    files = ExampleFiles(name)
    blocks = FENCE.findall(SECTIONS[name])
    shown = 0
    for (_, before), (language, body) in zip([("", ""), *blocks], blocks, strict=False):
        if language != "json":
            continue
        tails = TAIL.findall(before)
        # What no command shows is all that the only sink has.
        sink, count = tails[0] if tails else (plan(files.app).sinks[0].name, None)
        lines, golden = body.splitlines(), files.golden(sink)
        is_part = lines[-1] == "..."
        results = lines[: len(lines) - is_part]
        assert Counter(results) <= Counter(golden)
        assert is_part == (len(results) < len(golden))
        assert not is_part if count is None else len(results) <= int(count) <= len(golden)
        shown += 1
    assert shown == len(plan(files.app).sinks)
