"""docs/semantics.md names, for each rule of time, tests and cases that there are."""

import ast
import re
from pathlib import Path

import pytest

from tests.samples.time_cases import CASES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "semantics.md").read_text()
RULES = re.findall(r"^\| (?!rule|---)(.+) \| (.+) \|$", PAGE, re.MULTILINE)
TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")
CASE_LIST = re.compile(r"cases? ((?:`[\w-]+`(?:, )?)+)")


def cases_of(text: str) -> list[str]:
    return [name for names in CASE_LIST.findall(text) for name in re.findall(r"`([\w-]+)`", names)]


@pytest.mark.parametrize(("rule", "holders"), RULES, ids=[rule[:40] for rule, _ in RULES])
def test_each_rule_has_tests_or_cases_and_they_are_there(rule: str, holders: str) -> None:
    named = TEST.findall(holders)
    assert named or cases_of(holders), rule
    for file, function in named:
        tree = ast.parse((ROOT / "tests" / file).read_text())
        assert function in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}, file


def test_each_case_stands_beside_a_rule_and_each_that_is_named_is_there() -> None:
    assert {name for _, holders in RULES for name in cases_of(holders)} == {case.name for case in CASES}
