"""The fingerprint of machine code covers all that decides it, and nothing else."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

from bettong.application.execution_mode import ExecutionMode
from bettong.application.plan import plan
from bettong.edges.application_file import load
from bettong.worker.code_facts import fingerprint
from bettong.worker.compiling import functions_of

APPLICATION = """
from dataclasses import dataclass
from enum import IntEnum
from types import ModuleType
from typing import Annotated

import numpy as np

import bettong

FACTOR = {factor}
TABLE = np.array([{table}])
INNER, NESTED, DEFAULT = {inner}, {nested}, {default}
package = ModuleType("package")
package.module = ModuleType("package.module")
package.module.LEAST = {least}

class Side(IntEnum):
    BUY = {buy}
    SELL = 7
    USUAL = {usual}

def double(value):
    return 2 * value

def triple(value):
    return 3 * value

step = {step}

def called(value):
    return value + INNER

@dataclass
class Number:
    key: bettong.u8
    value: int

@dataclass
class Kept:
    total: int = {start}

def scaled(value, by={by}):
    return value * FACTOR + TABLE[0] + by

def nested(value):
    by_lambda = lambda value, more=DEFAULT: value * NESTED + more + package.module.LEAST
    return sum([by_lambda(each) + called(each) for each in range(value)]) + Side.BUY + Side.USUAL - 7

@bettong.compiled
def add(number: Number, kept: Kept) -> Number | None:
    kept.total += scaled(number.value) + nested(number.key)
    kept.total += double(number.key) - triple(number.key) + step(number.key)
    return Number(number.key, kept.total + {plus})

app = bettong.Application("meters")
app.source("in", schema=Number, key="key").stateful(add, state=Kept).sink("out")
"""

PLAIN: dict[str, Any] = {"factor": 2, "table": 100, "start": 1000, "by": 0, "plus": 0}
PLAIN |= {"inner": 0, "nested": 1, "default": 0, "least": 0, "buy": 0, "step": "double", "usual": 7}


def name_of(function: Any) -> str:
    """The fingerprint of a function's machine code, which has one."""
    name = fingerprint(function)
    assert name is not None
    return name


def changed(**values: Any) -> ModuleType:
    """The application with changes, as a module."""
    module = ModuleType("changed")
    module.__dict__["__name__"] = "bettong_test_changed"
    sys.modules["bettong_test_changed"] = module
    exec(APPLICATION.format(**(PLAIN | values)), module.__dict__)  # noqa: S102 - written above
    return module


CHANGES: list[dict[str, Any]] = [{"factor": 3}, {"table": 101}, {"by": 1}, {"plus": 1}]
CHANGES += [
    {"inner": 1},
    {"nested": 2},
    {"default": 1},
    {"least": 1},
    {"buy": 1},
    {"step": "triple"},
    {"usual": 0},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_whatever_decides_the_machine_code_changes_its_name(change: dict[str, Any]) -> None:
    assert name_of(changed().add) == name_of(changed().add)
    assert name_of(changed().add) != name_of(changed(**change).add)


def test_the_module_of_what_it_calls_changes_its_name() -> None:
    names = []
    for module in ("one", "one", "other"):
        inner: dict[str, Any] = {"__name__": module}
        exec("def add(value): return value + 1", inner)  # noqa: S102 - written here
        outer: dict[str, Any] = {"__name__": "same", "add": inner["add"]}
        exec("def twice(value): return add(add(value))", outer)  # noqa: S102 - written here
        names.append(name_of(outer["twice"]))
    assert names[0] == names[1] != names[2]


def test_nothing_else_changes_its_name() -> None:
    assert name_of(changed().add) == name_of(changed(start=7).add), "the kernel is given its states"


def test_what_cannot_be_known_has_no_name() -> None:
    def of(value: Any) -> Any:
        return lambda number: value.name if number else value

    module = ModuleType("limits")
    called_by_c = numba.cfunc("int64(int64)")(lambda value: value + 1)
    module.__dict__["name"] = called_by_c
    called_by_address = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)(abs)
    for unknown in (called_by_address, module, np.array([object()]), called_by_c):
        assert fingerprint(of(unknown)) is None
        assert fingerprint(of((1, unknown))) is None
    for useless in (object(), ctypes.CDLL(None).abs, {"a": 1}, sys, time.time):
        assert fingerprint(of(useless)) is not None, "code that uses it cannot be compiled"
    for known in (
        1,
        "text",
        None,
        np.float64(1),
        (1, (2.0, b"3")),
        math,
        np.sum,
        numba.int64,
        ValueError,
        int,
    ):
        assert fingerprint(of(known)) is not None


@numba.njit(fastmath={"nnan", "contract", "arcp"})
def fast(value: Any) -> Any:
    return value + 1


def of_sets(value: Any) -> Any:
    return fast(value) in {"a", "bb", "c"}


def test_a_name_is_the_same_whatever_order_sets_have_in_a_run() -> None:
    ask = "from tests.unit.test_code_facts import *; print(name_of(of_sets))"
    root = str(Path(__file__).resolve().parents[2])
    names = {
        subprocess.run(
            [sys.executable, "-c", ask],
            cwd=root,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(names) == 1


def test_a_function_as_an_option_has_no_name() -> None:
    inlined = numba.njit(inline=lambda *_: True)(even)
    calls_it: Any = lambda value: inlined(value) + 1  # noqa: E731
    assert fingerprint(calls_it) is None
    assert name_of(lambda value: fast(value) + 1) is not None


def test_a_variable_named_as_a_global_is_no_part_of_the_name() -> None:
    text = "def add(value):\n step = 1\n by = lambda value: value + step\n return by(value)"
    names = []
    for step in (1, 2, {"a": 1}):  # Numba cannot have such a dict
        namespace: dict[str, Any] = {"step": step}
        exec(text, namespace)  # noqa: S102 - written here
        names.append(name_of(namespace["add"]))
    assert names[0] == names[1] == names[2]


@pytest.mark.parametrize("example", ["market_spread/risk_check"])
def test_the_compiled_functions_of_the_examples_have_names(example: str) -> None:
    app = load(str(Path(__file__).resolve().parents[2] / "examples" / f"{example}.py"))
    functions = [
        function
        for stage in plan(app).stages
        for operator in stage.operators
        if operator.node.mode is ExecutionMode.COMPILED
        for function in functions_of(operator.node).values()
    ]
    assert len({name_of(function) for function in functions}) == len(functions) > 0


def test_a_captured_value_is_part_of_the_name() -> None:
    def adding(step: Any) -> Any:
        def add(value: Any) -> Any:
            return value + step

        return add

    assert name_of(adding(1)) == name_of(adding(1))
    assert name_of(adding(1)) != name_of(adding(2))
    assert name_of(adding(np.array([1]))) != name_of(adding(np.array([2])))
    assert name_of(adding(np.float64(1))) != name_of(adding(np.float64(2)))


def test_a_function_named_as_one_of_a_library_is_read_all_the_same() -> None:
    def calling(step: int) -> Any:
        @functools.wraps(np.sum)
        def add(value: Any) -> Any:
            return value + step

        return lambda value: add(value) + 1

    assert name_of(calling(1)) == name_of(calling(1))
    assert name_of(calling(1)) != name_of(calling(2))


def test_a_value_of_another_module_is_part_of_the_name() -> None:
    namespace: dict[str, Any] = {"limits": ModuleType("limits")}
    exec("def add(value): return value + limits.LEAST", namespace)  # noqa: S102 - written here
    names = []
    for least in (1, 1, 2):
        namespace["limits"].__dict__["LEAST"] = least
        names.append(name_of(namespace["add"]))
    assert names[0] == names[1] != names[2]


def test_a_default_of_a_message_is_part_of_the_name() -> None:
    text = "@dataclass\nclass Made:\n a: int\n b: int = {}\ndef make(value): return Made(value)"
    names = []
    for default in (1, 1, 2):
        namespace: dict[str, Any] = {"dataclass": dataclass, "__name__": __name__}
        exec(text.format(default), namespace)  # noqa: S102 - written here
        names.append(name_of(namespace["make"]))
    assert names[0] == names[1] != names[2]


def test_one_module_is_reported_for_each_function_that_names_it() -> None:
    text = "def first(v): return limits.A + v\ndef add(v): return first(v) + limits.B"
    names = []
    for b in (1, 2):
        limits = ModuleType("limits")
        limits.__dict__.update(A=1, B=b, limits=limits)
        namespace: dict[str, Any] = {"limits": limits}
        exec(text, namespace)  # noqa: S102 - written here
        names.append(name_of(namespace["add"]))
    assert names[0] != names[1]


def test_functions_that_call_one_another_have_a_name() -> None:
    assert name_of(even) == name_of(even) != name_of(odd)


def even(value: int) -> bool:
    return value == 0 or odd(value - 1)


def odd(value: int) -> bool:
    return value != 0 and even(value - 1)
