"""`bettong check` warns of names that a function reads and nobody defines."""

import builtins
from pathlib import Path

import pytest

from bettong.cli.check import check
from bettong.inspection.unknown_names import unknown_names
from tests.samples.page_code import blocks

ROOT = Path(__file__).resolve().parents[2]
DEFINED = {*dir(builtins), "RATES", "__file__", "__name__"}


def found(source: str) -> list[str]:
    return unknown_names(source.encode(), "app.py", DEFINED)


def test_a_misspelt_name_is_told_with_its_line_once() -> None:
    source = "def in_euro(payment):\n    a = 1\n    return RATS[payment] + RATS[a]\n"
    assert found(source) == ["app.py:3: in_euro reads 'RATS', which is not defined; is RATES meant?"]


@pytest.mark.parametrize(
    "body",
    [
        "return max(value, len(__file__))",
        "return [RATES[each] for each in value]",
        "other: Unknown = value\n    return other",
        "def inner() -> 'Unknown':\n        return value\n    return inner",
        "return value.unknown",
        "import json\n    return json.dumps(value)",
        "class Inner:\n        text: str = 'a'\n        def of(self): return __class__\n    return Inner",
        "global counted\n    counted = value\n    return counted",
    ],
)
def test_names_that_are_local_global_or_builtin_are_known(body: str) -> None:
    assert found(f"def read(value):\n    {body}\n") == []


def test_names_within_functions_of_functions_and_methods_are_found() -> None:
    source = "class A:\n    def f(self):\n        return lambda x: zzz(x)\n"
    assert found(source) == ["app.py:3: <lambda> reads 'zzz', which is not defined"]


def test_check_warns_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (hello,) = (each for each in blocks(ROOT / "README.md", "python") if "# hello.py" in each)
    path = tmp_path / "hello.py"
    path.write_text(hello.replace("return Payment(", "return Paymnt("))
    check(str(path))
    printed = capsys.readouterr()
    assert "hello.py:14: add reads 'Paymnt', which is not defined; is Payment meant?" in printed.err
    assert "sink totals" in printed.out
    path.write_text(hello)
    check(f"{path}:app")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_read_no_name_that_nobody_defines(path: Path) -> None:
    names = {*DEFINED, *(vars(__import__(f"examples.{path.stem}", fromlist=["*"])))}
    assert unknown_names(path.read_bytes(), str(path), names) == []
