"""Finding the application in a file: what is wrong is reported with file and line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bettong import ApplicationError
from bettong.edges.application_file import load

ONE = """from dataclasses import dataclass
import bettong

@dataclass
class Item:
    key: str

app = bettong.Application("one")
app.source("in", schema=Item).sink("out")
"""


def write(folder: Path, text: str, name: str = "app.py") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def refused(reference: str) -> str:
    with pytest.raises(ApplicationError) as caught:
        load(reference)
    return str(caught.value)


def test_the_only_application_of_a_file_is_found(tmp_path: Path) -> None:
    assert load(write(tmp_path, ONE)).name == "one"


def test_one_of_several_is_chosen_by_its_variable(tmp_path: Path) -> None:
    path = write(tmp_path, ONE + 'other = bettong.Application("two")\n')
    assert load(f"{path}:other").name == "two"
    assert refused(path).endswith(f"found app, other; write {path}:NAME to choose")
    assert refused(f"{path}:missing").endswith(f"{path} has none of that name, but app, other")


def test_what_a_file_prints_is_no_output_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load(write(tmp_path, "print('hello')\n" + ONE))
    assert capsys.readouterr() == ("", "hello\n")


def test_a_file_is_run_once(tmp_path: Path) -> None:
    path = write(tmp_path, ONE)
    assert load(path) is load(path)


def test_one_relative_path_names_a_file_in_each_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, ONE.replace('"one"', f'"{name}"'))
        monkeypatch.chdir(tmp_path / name)
        assert load("app.py").name == name


def test_neighbours_of_the_file_can_be_imported_while_it_runs(tmp_path: Path) -> None:
    write(tmp_path, "NAME = 'from-a-neighbour'\n", "bettong_test_neighbour.py")
    text = "import bettong\nimport bettong_test_neighbour\napp = bettong.Application(bettong_test_neighbour.NAME)\n"
    before = list(sys.path)
    assert load(write(tmp_path, text)).name == "from-a-neighbour"
    assert sys.path == before


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert (
        refused(str(tmp_path / "no.py")) == f"application {str(tmp_path / 'no.py')!r}: there is no such file"
    )


def test_a_misspelt_file_is_told_which_one_is_meant(tmp_path: Path) -> None:
    (tmp_path / "hello.py").touch()
    assert refused(str(tmp_path / "helo.py")).endswith(
        f"there is no such file; is {tmp_path}/hello.py meant?"
    )


def test_a_folder_is_told_to_name_the_file_in_it(tmp_path: Path) -> None:
    assert refused(str(tmp_path)).endswith(f"is a folder: name the file in it, such as {tmp_path}/app.py")


def test_a_file_that_is_no_python_is_refused(tmp_path: Path) -> None:
    assert "expected a Python file (.py)" in refused(write(tmp_path, "x", "app.txt"))


def test_a_file_without_an_application_is_refused(tmp_path: Path) -> None:
    assert "expected one Application in the file, found none" in refused(write(tmp_path, "x = 1\n"))


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("x = 1\ny = = 2\n", 2, "SyntaxError: invalid syntax"),
        ("x = 1\n\ny = unknown\n", 3, "NameError: name 'unknown' is not defined"),
        ("def f():\n    return 1 / 0\n\nf()\n", 2, "ZeroDivisionError: division by zero"),
        ("import json\njson.loads('x')\n", 2, "JSONDecodeError: "),
        ("import nothing_of_that_name\n", 1, "ModuleNotFoundError: "),
        ("import sys\n\nsys.exit(0)\n", 3, "it ended by sys.exit(0); expected a file that describes"),
        (ONE + 'app.source("in", schema=Item)\n', 10, "the name 'in' is taken by a source of 'one'"),
    ],
    ids=["syntax", "name", "inside a function", "inside a library", "import", "exit", "description"],
)
def test_what_fails_while_the_file_runs_is_reported_with_its_line(
    tmp_path: Path, text: str, line: int, reason: str
) -> None:
    path = write(tmp_path, text)
    reported = refused(path)
    assert reported.startswith(f"{path}:{line}: ")
    assert reason in reported
    assert "bettong_application_app" not in sys.modules


def test_a_file_that_failed_can_be_mended_and_loaded(tmp_path: Path) -> None:
    path = write(tmp_path, "unknown\n")
    refused(path)
    write(tmp_path, ONE)
    assert load(path).name == "one"


def test_a_path_from_the_working_directory_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, ONE, "here.py")
    monkeypatch.chdir(tmp_path)
    assert load(f".{os.sep}here.py").name == "one"
