"""Where in users' code an error was raised, as dead letters say it."""

from __future__ import annotations

import copy
import json
import pickle
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

from bettong.user_errors import (
    ANY_ERROR,
    TRACEBACK_LINE_BYTES_MAX,
    TRACEBACK_LINES_MAX,
    Reason,
    reason_of,
    traceback_of,
    user_lines,
)
from bettong.worker.calling.columns import _strictly

HERE = "tests/unit/test_user_errors.py"


def raised(function: Callable[[], object]) -> BaseException:
    """What a function raises, called as Bettong calls it."""
    caller: dict[str, Any] = {"__name__": "bettong.worker.calling.messages", "ANY_ERROR": ANY_ERROR}
    exec(CALLER, caller)  # noqa: S102 - a caller of that module's name
    found = caller["call"](function)
    assert isinstance(found, BaseException)
    return found


CALLER = """
def call(function):
    try:
        function()
    except ANY_ERROR as error:
        return error
"""


def where(line: str) -> tuple[str, str]:
    """The file and the function of a line."""
    place, _, function = line.partition(" in ")
    file, _, number = place.rpartition(":")
    assert number.isdigit(), line
    return file, function


def functions(error: BaseException) -> list[str]:
    return [where(line)[1] if " in " in line else line for line in user_lines(error)]


def number_of(text: str) -> int:
    return int(text)


def parse() -> int:
    return number_of("fifty")


def from_cause() -> None:
    try:
        parse()
    except ValueError as error:
        raise LookupError("no number") from error


def while_at_work() -> None:
    try:
        parse()
    except ValueError:
        raise LookupError("no number")  # noqa: B904 - what is tested


def down(levels: int) -> int:
    if not levels:
        raise ValueError("at the bottom")
    return down(levels - 1)


def for_ever(levels: int) -> int:
    return and_ever(levels + 1) + 1


def and_ever(levels: int) -> int:
    return for_ever(levels + 1) + 1


def test_only_lines_of_the_user_are_there_and_the_innermost_is_last() -> None:
    error = raised(parse)
    assert [where(line) for line in user_lines(error)] == [(HERE, "parse"), (HERE, "number_of")]
    line = number_of.__code__.co_firstlineno + 1
    assert user_lines(error)[-1] == f"{HERE}:{line} in number_of"
    assert reason_of(error) == "ValueError: invalid literal for int() with base 10: 'fifty'"
    assert traceback_of(reason_of(error)) == user_lines(error)
    assert traceback_of(reason_of(error, "the decoder raised ")) == user_lines(error)
    assert reason_of(error, "the decoder raised ").startswith("the decoder raised ValueError: ")


def test_lines_of_python_itself_are_left_out() -> None:
    def read() -> Any:
        return json.loads("{")

    error = raised(read)
    frames, trace = 0, error.__traceback__
    while trace is not None:
        frames, trace = frames + 1, trace.tb_next
    assert frames > 3, "json's own lines are in the traceback"
    (line,) = functions(error)
    assert line.endswith("read")


def test_a_message_whose_making_raises_shows_the_users_line_and_not_what_is_made_at_run_time() -> None:
    @dataclass
    class Strict:
        value: int

        def __post_init__(self) -> None:
            raise ValueError("never")

    (line,) = user_lines(raised(lambda: Strict(1)))[1:]
    assert line.endswith("__post_init__")


def test_a_lambda_has_a_line() -> None:
    (line,) = user_lines(raised(lambda: 1 // 0))
    assert line.endswith("<lambda>")


def test_what_an_error_was_raised_from_stands_before_it() -> None:
    assert functions(raised(from_cause)) == [
        "from_cause",
        "parse",
        "number_of",
        "raised ValueError, and from that:",
        "from_cause",
    ]


def test_what_was_only_at_work_meanwhile_is_left_out() -> None:
    """The line may be from another message, which another fold of the log may not see."""
    assert functions(raised(while_at_work)) == ["while_at_work"]


def test_errors_that_are_their_own_cause_end() -> None:
    def ring() -> None:
        first, second = ValueError("a"), LookupError("b")
        first.__cause__, second.__cause__ = second, first
        raise first

    def itself() -> None:
        error = ValueError("a")
        raise error from error

    for each in (ring, itself):
        assert 1 <= len(user_lines(raised(each))) <= TRACEBACK_LINES_MAX


def test_a_recursion_of_a_thousand_levels_is_a_few_lines() -> None:
    error = raised(lambda: down(900))
    assert functions(error)[1:] == ["down", "down"]
    first = down.__code__.co_firstlineno
    assert [line.partition(" ")[0].rpartition(":")[2] for line in user_lines(error)[1:]] == [
        str(first + 3),
        str(first + 2),
    ]


def test_a_recursion_without_an_end_gives_the_same_however_deep_python_could_go() -> None:
    def deeper(levels: int) -> BaseException:
        return deeper(levels - 1) if levels else raised(lambda: for_ever(0))

    found = {user_lines(deeper(levels)) for levels in range(7)}
    assert len(found) == 1
    (lines,) = found
    assert [where(line)[1] for line in lines[1:]] == ["for_ever", "and_ever"]


def test_many_lines_are_bounded_and_the_innermost_stay() -> None:
    def first(step: int) -> None:
        second(step - 1)

    def second(step: int) -> None:
        if step <= 0:
            raise ValueError("at the end")
        first(step - 1)

    lines = user_lines(raised(lambda: first(30)))
    assert len(lines) == TRACEBACK_LINES_MAX
    assert [where(line)[1].rpartition(".")[2] for line in lines] == ["first", "second"] * 4


def test_long_and_strange_names_make_short_lines_of_text() -> None:
    for name in ("f" * 1000, "ä" * 1000, "a\nb\x1b[31m", "\ud800"):
        code = (lambda: 1 // 0).__code__.replace(
            co_name=name, co_qualname=name, co_filename=f"/home/me/{name}.py"
        )
        function = types.FunctionType(code, {"__name__": "shop"})
        (line,) = user_lines(raised(function))
        assert len(line.encode()) <= TRACEBACK_LINE_BYTES_MAX
        assert line.isprintable()
        assert "/home" not in line
        assert line.partition(" in ")[2]


@pytest.mark.parametrize(
    ("module", "file", "shown"),
    [
        ("bettong_application_shop", "/srv/a/shop.py", "shop.py"),
        ("__main__", "/srv/a/shop.py", "shop.py"),
        ("prices", "/srv/a/prices.py", "prices.py"),
        ("shop.prices", "/srv/a/shop/prices.py", "shop/prices.py"),
        ("shop", "/srv/a/shop/__init__.py", "shop/__init__.py"),
        ("shop.of", "/venv/lib/python3.12/site-packages/shop/of.py", "shop/of.py"),
        ("", "/srv/a/shop.py", "shop.py"),
    ],
)
def test_files_are_named_without_the_folders_of_a_machine(module: str, file: str, shown: str) -> None:
    code = (lambda: 1 // 0).__code__.replace(co_filename=file)
    (line,) = user_lines(raised(types.FunctionType(code, {"__name__": module})))
    assert where(line)[0] == shown


def test_installed_packages_are_the_users_only_where_the_function_is_of_them() -> None:
    code = (lambda: 1 // 0).__code__.replace(co_filename="/venv/lib/site-packages/lib/inside.py")
    inner = types.FunctionType(code, {"__name__": "lib.inside"})
    calls_inner = """
def calls():
    return inner()
"""
    for module, file, expected in (
        ("shop", "/srv/shop.py", ["shop.py"]),
        ("lib.api", "/venv/lib/site-packages/lib/api.py", ["lib/api.py", "lib/inside.py"]),
    ):
        names: dict[str, Any] = {"__name__": module, "inner": inner}
        exec(compile(calls_inner, file, "exec"), names)  # noqa: S102
        assert [where(line)[0] for line in user_lines(raised(names["calls"]))] == expected


def test_an_object_that_is_raised_again_and_again_has_the_lines_of_the_last_time() -> None:
    again = ValueError("the same")

    def first() -> None:
        raise again

    def second() -> None:
        raise again

    expected = {each: user_lines(raised(each)) for each in (first, second)}
    for each in (first, first, second, first, second):
        assert user_lines(raised(each)) == expected[each]
        assert len(expected[each]) == 1


def test_an_error_without_a_traceback_has_no_lines() -> None:
    assert user_lines(ValueError("made, not raised")) == ()
    assert traceback_of("bytes that are no UTF-8") == ()


def test_a_reason_is_text_that_can_be_copied() -> None:
    reason = reason_of(raised(parse))
    for again in (copy.deepcopy(reason), pickle.loads(pickle.dumps(reason))):  # noqa: S301 - our own
        assert (again, traceback_of(again)) == (reason, traceback_of(reason))
    assert Reason("why") == "why"
    assert {str(each) for each in ("why", Reason("why"))} == {"why"}
    assert hash(Reason("why")) == hash("why")
    assert type(reason[:3]) is str


def test_a_function_over_columns_has_its_line() -> None:
    def divide() -> Any:
        return np.ones(1) / np.zeros(1)

    (line,) = user_lines(raised(partial(_strictly, divide)))
    assert line.endswith("divide")
