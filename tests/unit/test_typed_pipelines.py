"""A type checker says at the line when a stage takes what the one before does not give."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PIPELINES = ROOT / "tests" / "typing"
RIGHT = sorted((PIPELINES / "right").glob("*.py"))
WRONG = sorted((PIPELINES / "wrong").glob("*.py"))
EXPECTED = re.compile(r"#\s*expect: ([\w-]+)$")
FOUND = re.compile(r"^tests/typing/wrong/(?P<file>\w+)\.py:(?P<line>\d+): error: .*\[(?P<code>[\w-]+)\]$")


def mypy(*files: Path) -> str:
    """What it says of these files. Its cache is its own: another run may be at work beside it."""
    cache = ROOT / ".mypy_cache" / "pipelines"
    command = [sys.executable, "-m", "mypy", "--strict", "--no-pretty", f"--cache-dir={cache}"]
    names = [str(file.relative_to(ROOT)) for file in files]
    ran = subprocess.run(
        [*command, *names], cwd=ROOT, capture_output=True, text=True, check=False, timeout=280
    )
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def said() -> str:
    return mypy(*RIGHT, *WRONG)


def test_right_pipelines_are_right(said: str) -> None:
    assert RIGHT
    assert [line for line in said.splitlines() if line.startswith("tests/typing/right/")] == []


@pytest.mark.parametrize("file", WRONG, ids=lambda file: file.stem)
def test_wrong_pipelines_are_wrong_at_the_lines_that_say_so(said: str, file: Path) -> None:
    expected = {
        number: mark[1]
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if (mark := EXPECTED.search(line))
    }
    assert expected
    found: dict[int, set[str]] = {}
    for line in said.splitlines():
        if (each := FOUND.match(line)) and each["file"] == file.stem:
            found.setdefault(int(each["line"]), set()).add(each["code"])
    assert {
        line: expected[line] if expected.get(line) in codes else codes for line, codes in found.items()
    } == expected


@pytest.mark.parametrize("file", RIGHT, ids=lambda file: file.stem)
def test_right_pipelines_can_be_built(file: Path) -> None:
    import_module(f"tests.typing.right.{file.stem}")
