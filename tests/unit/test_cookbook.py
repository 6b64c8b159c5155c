"""docs/cookbook: the code of each recipe runs and its tests pass, its commands are there, and it is short."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import bettong
import bettong.spark
from bettong.testing import TwoPhaseSinkContract
from tests.samples.page_code import languages, page_module, run_tests
from tests.samples.page_commands import check_command, of_bettong

COOKBOOK = Path(__file__).resolve().parents[2] / "docs" / "cookbook"
INDEX = COOKBOOK / "index.md"
RECIPES = sorted(page for page in COOKBOOK.glob("*.md") if page != INDEX)
ROW = re.compile(r"^\| [^|]+ \| \[([^]]+)\]\(([\w-]+\.md)\) \|", re.MULTILINE)
OURS = re.compile(r"\bbettong\.(\w+)")
WITH_COMMANDS = {"last-nights-bug.md", "retry-dead-letters.md"}
OWN_SINK = COOKBOOK / "own-sink.md"  # whose tests are the contract's
LINES_MAX = 60
OF_A_CONTRACT = 5  # lines more, for the class of its tests
FIRST_LINE = re.compile(r"^# .+\n\nFor anyone who [^\n]+ (?:Three|Four|Six) minutes\.\n\n\*\*Problem\.\*\* ")


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)
def test_the_code_of_a_recipe_runs_and_its_tests_pass(page: Path) -> None:
    assert languages(page) == ({"python", "sh"} if page.name in WITH_COMMANDS else {"python"})
    assert run_tests(page_module(page)) or page == OWN_SINK


# Collected as the page shows it, and run: eight tests.
TestResults = page_module(OWN_SINK).TestResults


def test_the_contract_of_the_own_sink_is_collected() -> None:
    assert issubclass(TestResults, TwoPhaseSinkContract)


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)
def test_a_recipe_is_short_and_says_for_whom_it_is_and_how_long_it_takes(page: Path) -> None:
    text = page.read_text()
    assert text.count("\n") <= LINES_MAX + OF_A_CONTRACT * (page == OWN_SINK)
    assert FIRST_LINE.match(text)
    assert text.count("**Why it works.** ") == text.count("**Pitfalls.**") == 1
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)
def test_what_a_recipe_names_of_bettong_is_there(page: Path) -> None:
    assert [name for name in OURS.findall(page.read_text()) if not hasattr(bettong, name)] == []


@pytest.mark.parametrize("name", sorted(WITH_COMMANDS))
def test_commands_of_a_recipe_have_the_flags_that_are_shown(name: str) -> None:
    commands = of_bettong(COOKBOOK / name)
    assert len(commands) >= 3
    for words in commands:
        check_command(words)


def test_the_index_lists_each_recipe_once_under_its_title() -> None:
    titles = {page.name: page.read_text().splitlines()[0].removeprefix("# ") for page in RECIPES}
    rows = ROW.findall(INDEX.read_text())
    assert {name: title for title, name in rows} == titles
    assert len(rows) == len(titles) == 20


def test_the_recipe_of_spark_asks_for_the_states_of_its_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_module(COOKBOOK / "spark-sql.md")
    signature, views, asked = inspect.signature(bettong.spark.state), list[str](), list[dict[str, Any]]()

    def state(*given: Any, **options: Any) -> SimpleNamespace:
        asked.append(signature.bind(*given, **options).arguments)
        return SimpleNamespace(createOrReplaceTempView=views.append)

    monkeypatch.setattr(bettong.spark, "state", state)
    assert page.largest(SimpleNamespace(sql=lambda query: query)) == page.LARGEST
    assert [each["computation"] for each in asked] == ["add"]
    assert [f" FROM {view} " in page.LARGEST for view in views] == [True]
