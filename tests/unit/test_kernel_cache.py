"""Cached kernels are loaded if nothing has changed, and compiled again if anything has."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bettong.application.returns import Returns
from bettong.edges.kernel_cache import KernelFolder
from bettong.edges.kernel_folder import folder_of
from bettong.schema.schema import schema_of
from bettong.worker.kernel import KernelForm, compile_kernel
from tests.unit.test_code_facts import APPLICATION, PLAIN

# Prints the result of one message.
RUN = """
import sys
from pathlib import Path
from bettong.edges.application_file import load
from bettong.application.plan import plan
from bettong.edges.kernel_cache import KernelFolder
from bettong.worker.stage_program import program
from tests.samples.worker import data, fold, results, worker

app = load(sys.argv[1])
Number = app.sources[0].schema.message
(stage,) = plan(app).stages
ready = program(stage, compiled=True, cache=KernelFolder(Path(sys.argv[2])))
records = fold(worker(ready), [data("in/a", 1, [Number(1, 10)])])
print(results(records, "meters.sink.out", Number)[0].value)
"""

# Its compiled function has no name of a class or another function in it.
NAMES_NOTHING = """
from dataclasses import dataclass

import bettong

@dataclass
class Number:
    key: bettong.u8
    value: int

@bettong.compiled
def many(number: Number) -> bool:
    return number.value > 1

app = bettong.Application("meters")
app.source("in", schema=Number, key="key").filter(many).sink("out")
"""


@dataclass
class Number:
    """What a function takes."""

    value: int


def run(folder: Path, **changes: Any) -> tuple[int, int]:
    """The result in a new process, and the number of kernel files in the cache afterwards."""
    path = folder / "app.py"
    path.write_text(APPLICATION.format(**(PLAIN | changes)))
    return run_file(path, folder / "cache")


def run_file(path: Path, cache: Path) -> tuple[int, int]:
    """The same of an application's file."""
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(path), str(cache)],
        cwd=root,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
    )
    return int(done.stdout), len(list(cache.glob("kernel_*.py")))


def test_a_second_run_loads_what_the_first_one_compiled(tmp_path: Path) -> None:
    assert run(tmp_path) == (1121, 1)
    machine_code = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.nbc")}
    assert machine_code
    assert run(tmp_path) == (1121, 1)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.nbc")} == machine_code
    assert run(tmp_path, least=100) == (1221, 2)


def test_an_application_whose_file_gets_another_name_is_compiled_anew(tmp_path: Path) -> None:
    path, cache = tmp_path / "before.py", tmp_path / "cache"
    path.write_text(NAMES_NOTHING)
    assert run_file(path, cache) == (10, 1)
    assert run_file(path.rename(tmp_path / "behind.py"), cache) == (10, 2)


def test_an_application_whose_machine_code_has_no_name_runs_without_a_cache(tmp_path: Path) -> None:
    pointer = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)(lambda value: value + 1)

    def add(number: Number) -> Number:
        return Number(pointer(number.value))

    schema = schema_of(Number)
    kernel = compile_kernel(add, KernelForm(schema, None, Returns.ONE, schema), cache=KernelFolder(tmp_path))
    assert kernel.form.takes is schema
    assert list(tmp_path.iterdir()) == []


def test_a_kernel_that_no_run_loads_for_a_month_is_removed(tmp_path: Path) -> None:
    source = "def kernel(): return 1\n"
    for name in ("old", "used", "new"):
        assert KernelFolder(tmp_path).load(name, source, {}) is not None
    code = tmp_path / "__pycache__"
    code.mkdir(exist_ok=True)
    month_ago_s = time.time() - 31 * 24 * 3600
    for name in ("old", "used"):
        (code / f"kernel_{name}.kernel-1.py311.nbi").touch()
        for path in tmp_path.glob(f"kernel_{name}.*"):
            os.utime(path, (month_ago_s, month_ago_s))
    stamp = (tmp_path / "kernel_used.py").stat().st_mtime
    KernelFolder(tmp_path).load("used", source, {})
    assert (tmp_path / "kernel_used.py").stat().st_mtime == stamp, "else Numba would compile it anew"
    KernelFolder(tmp_path).load("newest", source, {})
    left = {path.name for path in tmp_path.rglob("kernel_*") if path.suffix in {".py", ".nbi"}}
    assert left == {
        "kernel_used.py",
        "kernel_used.kernel-1.py311.nbi",
        "kernel_new.py",
        "kernel_newest.py",
    }


@pytest.mark.parametrize(
    ("method", "is_moment", "name", "is_loaded"),
    [
        ("glob", lambda _, pattern: pattern == "kernel_old.*", "new", True),
        ("touch", lambda path: path.name == "kernel_old.used", "old", False),
    ],
    ids=["when this one removes it", "when this one loads it"],
)
def test_a_kernel_that_another_process_removes_at_this_moment_does_no_harm(
    method: str,
    is_moment: Callable[..., bool],
    name: str,
    is_loaded: bool,  # noqa: FBT001 - of a table
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = "def kernel(): return 1\n"
    KernelFolder(tmp_path).load("old", source, {})
    as_it_is, glob = getattr(Path, method), Path.glob
    month_ago_s = time.time() - 31 * 24 * 3600
    for path in glob(tmp_path, "kernel_old.*"):
        os.utime(path, (month_ago_s, month_ago_s))

    def disturbed(path: Path, *given: Any) -> Any:
        if is_moment(path, *given):
            for each in list(glob(tmp_path, "kernel_old.*")):
                each.unlink()
        return as_it_is(path, *given)

    monkeypatch.setattr(Path, method, disturbed)
    assert (KernelFolder(tmp_path).load(name, source, {}) is not None) == is_loaded
    assert not (tmp_path / "kernel_old.py").exists()


def test_a_kernel_that_another_process_removes_once_it_is_loaded_is_compiled_without_a_cache(
    tmp_path: Path,
) -> None:
    class Disturbed(KernelFolder):
        def load(self, name: str, *given: Any) -> Any:
            kernel = super().load(name, *given)
            (self.folder / f"kernel_{name}.py").unlink()
            return kernel

    schema = schema_of(Number)
    kernel = compile_kernel(
        renumbered, KernelForm(schema, None, Returns.ONE, schema), cache=Disturbed(tmp_path)
    )
    assert kernel.form.takes is schema
    assert not list(tmp_path.glob("kernel_*.py"))


def renumbered(number: Number) -> Number:
    return Number(number.value + 1)


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def homeless(_path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    assert folder_of(tmp_path) == tmp_path
    monkeypatch.setattr(Path, "expanduser", homeless)
    assert folder_of(Path("~/x")) is None
