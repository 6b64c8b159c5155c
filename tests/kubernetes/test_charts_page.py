"""The page that compares charts: every cell says what was found, and what it says of our own chart is so."""

import re

import pytest
import yaml

from tests.kubernetes.chart import FOLDER, ROOT

PAGE = (ROOT / "docs" / "charts.md").read_text()
UNREAD = re.compile(r"\bnot read\b|\bthere (is a|are) templates?\b|^\s*$")


def rows(begins: str) -> list[list[str]]:
    """The cells of a table, by how its first row begins, without the line under it."""
    lines = PAGE[PAGE.index(f"\n{begins}") + 1 :].partition("\n\n")[0].splitlines()
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [found[0], *found[2:]]


@pytest.mark.parametrize("begins", ["| chart |", "| | **Bettong** |"])
def test_every_cell_says_what_was_found(begins: str) -> None:
    head, *body = rows(begins)
    assert len(body) > 7
    for row in body:
        assert len(row) == len(head), row[0]
        assert [cell for cell in row if UNREAD.search(cell)] == [], row[0]


def test_both_tables_name_the_same_charts() -> None:
    assert [row[0] for row in rows("| chart |")[1:]] == rows("| | **Bettong** |")[0][2:]


def test_what_helm_test_does_by_default_is_reported() -> None:
    """Without `test.source` no message is sent."""
    (reported,) = (row[1] for row in rows("| | **Bettong** |") if row[0] == "`helm test`")
    sends = bool(yaml.safe_load((FOLDER / "values.yaml").read_text())["test"]["source"])
    assert ("message" in reported.partition(";")[0]) is sends
