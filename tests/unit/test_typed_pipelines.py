"""mypy and pyright say at the line when a stage takes what the one before does not give."""

from __future__ import annotations

import json
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


def pyright(folder: Path) -> dict[str, set[int]]:
    """The lines of each file of `tests/typing` at which it finds an error, as it comes: its standard mode."""
    config = folder / "pyrightconfig.json"
    source_folders = [str(ROOT / "src"), str(ROOT)]
    config.write_text(
        json.dumps(
            {"include": [str(PIPELINES)], "extraPaths": source_folders, "typeCheckingMode": "standard"}
        )
    )
    command = [sys.executable, "-m", "basedpyright", "-p", str(config), "--pythonpath", sys.executable]
    ran = subprocess.run(
        [*command, "--outputjson"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=280
    )
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    answer = json.loads(ran.stdout)
    assert answer["summary"]["filesAnalyzed"] >= len(RIGHT) + len(WRONG)
    found: dict[str, set[int]] = {}
    for each in answer["generalDiagnostics"]:
        name = str(Path(each["file"]).relative_to(PIPELINES))
        found.setdefault(name, set()).add(each["range"]["start"]["line"] + 1)
    return found


@pytest.fixture(scope="module")
def said() -> str:
    return mypy(*RIGHT, *WRONG)


@pytest.fixture(scope="module")
def pyright_lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[int]]:
    return pyright(tmp_path_factory.mktemp("pyright"))


def test_right_pipelines_are_right(said: str) -> None:
    assert RIGHT
    assert [line for line in said.splitlines() if line.startswith("tests/typing/right/")] == []


@pytest.mark.parametrize("file", WRONG, ids=lambda file: file.stem)
def test_wrong_pipelines_are_wrong_at_the_lines_that_say_so(said: str, file: Path) -> None:
    expected = marks(file)
    assert expected
    found: dict[int, set[str]] = {}
    for line in said.splitlines():
        if (each := FOUND.match(line)) and each["file"] == file.stem:
            found.setdefault(int(each["line"]), set()).add(each["code"])
    assert {
        line: expected[line] if expected.get(line) in codes else codes for line, codes in found.items()
    } == expected


def test_pyright_finds_the_same_lines(pyright_lines: dict[str, set[int]]) -> None:
    assert pyright_lines == {f"wrong/{file.name}": set(marks(file)) for file in WRONG}


def marks(file: Path) -> dict[int, str]:
    """By line, which error of mypy is expected there."""
    return {
        number: mark[1]
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if (mark := EXPECTED.search(line))
    }


@pytest.mark.parametrize("file", RIGHT, ids=lambda file: file.stem)
def test_right_pipelines_can_be_built(file: Path) -> None:
    import_module(f"tests.typing.right.{file.stem}")
