"""Every module of the benchmarks loads, and with it the applications that they measure."""

from importlib import import_module
from pathlib import Path

import pytest

MODULES = sorted(path.stem for path in (Path(__file__).parents[2] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_it_loads(name: str) -> None:
    assert import_module(f"benchmarks.{name}").__doc__
