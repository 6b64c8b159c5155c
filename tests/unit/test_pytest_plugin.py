"""What pytest shows where streams of messages differ."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from bettong.pytest_plugin import pytest_assertrepr_compare, stream_difference
from bettong.testing import run
from tests.samples.clicks import Click, counting_app

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Count:
    user: str
    total: int


def test_what_is_changed_more_and_missing_is_shown_with_its_fields() -> None:
    same = [Count("x", number) for number in range(10)]
    found = [*same, Count("a", 1), Count("b", 2), Count("c", 3)]
    expected = [*same, Count("a", 1), Count("b", 7), Count("c", 3), Count("d", 4)]
    assert stream_difference(found, expected) == [
        "13 messages, expected 14",
        "  ...",
        "  9   Count(user='x', total=9)",
        " 10   Count(user='a', total=1)",
        " 11 ~ Count(user='b', total=2)",
        "    ~   total: 2, expected 7",
        " 12   Count(user='c', total=3)",
        " 13 - Count(user='d', total=4)    (missing)",
    ]
    assert stream_difference([Count("a", 1), Count("a", 1)], [Count("a", 1)]) == [
        "2 messages, expected 1",
        "  0   Count(user='a', total=1)",
        "  1 + Count(user='a', total=1)    (not expected)",
    ]


def test_long_differences_are_shortened() -> None:
    found = stream_difference([Count("a", number) for number in range(1000)], [])
    assert len(found) < 70
    assert found[0] == "1000 messages, expected 0"


def test_outcomes_are_compared_part_by_part() -> None:
    one, two = (run(counting_app, [("clicks", Click(user))] * 2) for user in "ab")
    lines = pytest_assertrepr_compare("==", one, two)
    assert lines is not None
    assert lines[0] == "the outcomes differ"
    assert "outputs:" in lines
    assert any("user: 'a', expected 'b'" in line for line in lines)
    assert "dead_letters:" not in lines


def test_of_other_values_pytest_says_itself_what_differs() -> None:
    assert pytest_assertrepr_compare("==", [1], [2]) is None
    assert pytest_assertrepr_compare("==", [], []) is None
    assert pytest_assertrepr_compare("!=", [Count("a", 1)], [Count("b", 1)]) is None


def test_pytest_loads_it_and_shows_it(tmp_path: Path) -> None:
    file = tmp_path / "test_counts.py"
    file.write_text(
        "from tests.samples.clicks import Total\n\ndef test_it():\n    assert [Total('a', 1)] == [Total('a', 2)]\n"
    )
    # Where this version is not installed yet, pytest has to be given it.
    named = [] if "bettong" in entry_points(group="pytest11").names else ["-p", "bettong.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", *named, "-p", "no:cacheprovider", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120)
    assert "1 message, expected 1" in done.stdout
    assert "~   total: 1, expected 2" in done.stdout
    text = (ROOT / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\nbettong = "bettong.pytest_plugin"\n' in text
