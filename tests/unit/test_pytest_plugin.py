"""What pytest shows where streams of messages differ."""

from __future__ import annotations

import subprocess
import sys
import time
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


def test_a_difference_is_shown_wherever_it_is() -> None:
    found = [Count("a", number) for number in range(1200)]
    expected = [*found[:1100], Count("b", 1100), *found[1101:]]
    assert stream_difference(found, expected) == [
        "1200 messages, expected 1200",
        "  ...",
        "1098   Count(user='a', total=1098)",
        "1099   Count(user='a', total=1099)",
        "1100 ~ Count(user='a', total=1100)",
        "     ~   user: 'a', expected 'b'",
        "1101   Count(user='a', total=1101)",
        "1102   Count(user='a', total=1102)",
        "  ...",
    ]


def test_many_messages_are_compared_in_little_time() -> None:
    same = [Count("a", 1)] * 4000
    begun_s = time.thread_time()
    found = stream_difference([*same, Count("b", 2), *same], [*same, *same])
    assert [line for line in found if "b" in line] == ["4000 + Count(user='b', total=2)    (not expected)"]
    found = stream_difference([Count("b", 2), *same], [*same, Count("c", 3)])
    assert found[1:3] == ["   0 ~ Count(user='b', total=2)", "     ~   user: 'b', expected 'a'"]
    assert found[-1] == "     ~   total: 1, expected 3"
    assert time.thread_time() - begun_s < 1


@dataclass
class Measured:
    mean: float


@dataclass(eq=False)
class Opened:
    number: int


def test_messages_that_only_look_alike_are_shown() -> None:
    assert stream_difference(
        [Measured(1.0), Measured(float("nan"))], [Measured(1.0), Measured(float("nan"))]
    ) == [
        "2 messages, expected 2",
        "  0   Measured(mean=1.0)",
        "  1 ~ Measured(mean=nan)",
        "    ~   mean: nan, expected nan (NaN equals nothing)",
    ]
    assert stream_difference([Opened(1)], [Opened(1)]) == [
        "1 message, expected 1",
        "  0 ~ Opened(number=1)",
        "    ~   alike as text, and not equal: see Opened.__eq__",
    ]


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
