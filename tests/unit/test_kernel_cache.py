"""Kernels kept between runs: loaded when nothing has changed, compiled anew when anything has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from bettong.worker.kernel_cache import fingerprint, folder_of

APPLICATION = """
from dataclasses import dataclass
from typing import Annotated

import numpy as np

import bettong

FACTOR = {factor}
TABLE = np.array([{table}])

@dataclass
class Number:
    key: bettong.u8
    value: int

@dataclass
class Kept:
    total: int = {start}

def scaled(value, by={by}):
    return value * FACTOR + TABLE[0] + by

@bettong.compiled
def add(number: Number, kept: Kept) -> Number | None:
    kept.total += scaled(number.value)
    return Number(number.key, kept.total + {plus})

app = bettong.Application("meters")
app.source("in", schema=Number, key="key").stateful(add, state=Kept).sink("out")
"""

# Prints the result of one message.
RUN = """
import sys
from pathlib import Path
from bettong.application.loading import load
from bettong.application.plan import plan
from bettong.worker.stage_program import program
from tests.worker_samples import data, fold, results, worker

app = load(sys.argv[1])
Number = app.sources[0].schema.message
(stage,) = plan(app).stages
ready = program(stage, compiled=True, cache=Path(sys.argv[2]))
records = fold(worker(ready), [data("in/a", 1, [Number(1, 10)])])
print(results(records, "meters.sink.out", Number)[0].value)
"""

PLAIN: dict[str, Any] = {"factor": 2, "table": 100, "start": 1000, "by": 0, "plus": 0}


def run(folder: Path) -> tuple[int, int]:
    """The result in a process of its own, and how many kernel files the cache then has."""
    path = folder / "app.py"
    path.write_text(APPLICATION.format(**PLAIN))
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(path), str(folder / "cache")],
        cwd=root,
        env=os.environ | {"PYTHONPATH": root},
        check=True,
        capture_output=True,
        text=True,
    )
    return int(done.stdout), len(list((folder / "cache").glob("kernel_*.py")))


def test_a_second_run_loads_what_the_first_one_compiled(tmp_path: Path) -> None:
    assert run(tmp_path) == (1120, 1)
    machine_code = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.nbc")}
    assert machine_code
    assert run(tmp_path) == (1120, 1)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.nbc")} == machine_code


def changed(**values: Any) -> ModuleType:
    """The application with changes, as a module."""
    module = ModuleType("changed")
    module.__dict__["__name__"] = "bettong_test_changed"
    sys.modules["bettong_test_changed"] = module
    exec(APPLICATION.format(**(PLAIN | values)), module.__dict__)  # noqa: S102 - written above
    return module


@pytest.mark.parametrize("change", [{"factor": 3}, {"table": 101}, {"by": 1}, {"plus": 1}], ids=str)
def test_whatever_decides_the_machine_code_changes_its_name(change: dict[str, Any]) -> None:
    assert fingerprint(changed().add) == fingerprint(changed().add)
    assert fingerprint(changed().add) != fingerprint(changed(**change).add)


def test_a_captured_value_is_part_of_the_name() -> None:
    def adding(step: Any) -> Any:
        def add(value: Any) -> Any:
            return value + step

        return add

    assert fingerprint(adding(1)) == fingerprint(adding(1))
    assert fingerprint(adding(1)) != fingerprint(adding(2))
    assert fingerprint(adding(np.array([1]))) != fingerprint(adding(np.array([2])))
    assert fingerprint(adding(np.float64(1))) != fingerprint(adding(np.float64(2)))


def test_a_value_of_another_module_is_part_of_the_name() -> None:
    namespace = {"limits": ModuleType("limits")}
    exec("def add(value): return value + limits.LEAST", namespace)  # noqa: S102 - written here
    names = []
    for least in (1, 1, 2):
        namespace["limits"].__dict__["LEAST"] = least
        names.append(fingerprint(namespace["add"]))  # type: ignore[arg-type]
    assert names[0] == names[1] != names[2]


def test_functions_that_call_one_another_have_a_name() -> None:
    assert fingerprint(even) == fingerprint(even) != fingerprint(odd)


def even(value: int) -> bool:
    return value == 0 or odd(value - 1)


def odd(value: int) -> bool:
    return value != 0 and even(value - 1)


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def homeless(_path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    assert folder_of(tmp_path) == tmp_path
    monkeypatch.setattr(Path, "expanduser", homeless)
    assert folder_of(Path("~/x")) is None
