"""A function that cannot be compiled is refused by one line: which function, which line, and why."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

import bettong
from bettong import ApplicationError, Width
from bettong.application.returns import Returns
from bettong.edges.kernel_cache import KernelFolder
from bettong.schema.schema import schema_of
from bettong.worker.kernel import KernelForm, compile_kernel
from bettong.worker.state.record_layout import layout_of_class


@dataclass
class Word:
    word: Annotated[str, Width(4)]
    size: bettong.u32

    def doubled(self) -> int:
        return 2 * self.size


@dataclass
class Seen:
    total: int = 0
    last: Annotated[str, Width(4)] = ""


@dataclass
class Count:
    word: Annotated[str, Width(4)]
    total: bettong.u8


@dataclass
class Odd:  # noqa: PLW1641 - it is only compared
    number: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Odd) and self.number % 2 == other.number % 2


PRICES = {"IBM": 1.0}


def looks_into_a_dict(word: Word, seen: Seen) -> Count | None:
    seen.total += 1
    if PRICES[word.word] > 1:  # wrong
        return None
    return Count(word.word, seen.total)


def reads_an_unknown_field(word: Word, seen: Seen) -> Count | None:
    seen.total += 1
    if word.length > 3:  # type: ignore[attr-defined]  # wrong
        return None
    return Count(word.word, seen.total)


def writes_an_unknown_state(word: Word, seen: Seen) -> Count | None:
    seen.total += 1
    seen.totl += 1  # type: ignore[attr-defined]  # wrong
    return Count(word.word, seen.total)


def formats_a_fraction(word: Word, seen: Seen) -> Count | None:
    seen.total += 1
    text = f"{word.word}-{seen.total / 2}"  # wrong
    return Count(text, seen.total)


def formats_in_a_width(word: Word, seen: Seen) -> Count | None:
    seen.total += 1
    return Count(f"{word.size:03d}", seen.total)  # wrong


def makes_text_of_a_message(word: Word, seen: Seen) -> Count | None:
    if str(word) == "1":  # wrong
        return None
    return Count(word.word, seen.total)


def keeps_text_that_is_too_long(word: Word, seen: Seen) -> Count | None:
    seen.last = "abcde"  # wrong
    return Count(word.word, seen.total)


def helper(size: int) -> int:
    doubled = size * 2
    return doubled.bit_count() + doubled.unknown  # type: ignore[attr-defined,no-any-return]  # wrong


def calls_a_wrong_function(word: Word, seen: Seen) -> Count | None:
    seen.total += 1
    return Count(word.word, helper(word.size))


def uses_an_undefined_name(word: Word, seen: Seen) -> Count | None:
    seen.total += 1
    return Count(word.word, undefined_name)  # type: ignore[name-defined]  # noqa: F821  # wrong


def nests_an_undefined_name(word: Word, seen: Seen) -> Count | None:
    seen.total += sum(
        [
            size * nowhere  # type: ignore[name-defined]  # noqa: F821  # wrong
            for size in range(word.size)
        ]
    )
    return Count(word.word, seen.total)


def sums_a_generator(word: Word, seen: Seen) -> Count | None:
    seen.total += 1
    seen.total += sum(size for size in range(word.size))  # wrong
    return Count(word.word, seen.total)


def returns_a_float_for_an_integer(word: Word, seen: Seen) -> Count | None:
    return Count(word.word, seen.total / 2)  # type: ignore[arg-type]


def returns_a_number_for_text(word: Word, seen: Seen) -> Count | None:
    return Count(word.size, seen.total)  # type: ignore[arg-type]


def returns_what_returns_none(word: Word, seen: Seen) -> Count | None:
    return returns_none(seen)


def returns_none(seen: Seen) -> Count | None:
    seen.total += 1
    return None


def leaves_out_a_field(word: Word, seen: Seen) -> Count | None:
    seen.total += 1
    return Count(word.word)  # type: ignore[call-arg]  # wrong


def takes_letters_one_by_one(word: Word, seen: Seen) -> Count | None:
    for letter in word.word:  # wrong
        seen.total += letter == "a"
    return Count(word.word, seen.total)


def asks_for_a_class(word: Word, seen: Seen) -> Count | None:
    seen.total += isinstance(seen.last, str)  # wrong
    return Count(word.word, seen.total)


def changes_its_message(word: Word, seen: Seen) -> Count | None:
    word.size = 1  # wrong
    return Count(word.word, seen.total)


def calls_a_method(word: Word, seen: Seen) -> Count | None:
    return Count(word.word, word.doubled())  # wrong


def compares_by_an_equality_of_its_own(word: Word, seen: Seen) -> Count | None:
    seen.total += Odd(word.size) == Odd(1)  # wrong
    return Count(word.word, seen.total)


MISTAKES: list[tuple[Callable[..., Any], str]] = [
    (looks_into_a_dict, "Untyped global name 'PRICES'"),
    (reads_an_unknown_field, "Unknown attribute 'length' of type Word"),
    (writes_an_unknown_state, "there is no field 'totl'"),
    (formats_a_fraction, "Numba makes no text of float64"),
    (formats_in_a_width, "format spec in f-strings not supported yet"),
    (makes_text_of_a_message, "Numba makes no text of Word(text[4], int64)"),
    (keeps_text_that_is_too_long, "'abcde' is no text of at most 4 bytes"),
    (calls_a_wrong_function, "Unknown attribute '"),
    (uses_an_undefined_name, "name 'undefined_name' is not defined"),
    (nests_an_undefined_name, "name 'nowhere' is not defined"),
    (sums_a_generator, "write a list, [... for ...], instead"),
    (returns_a_float_for_an_integer, "field 'total' of what it returns: expected an integer, not float64"),
    (returns_a_number_for_text, "field 'word' of what it returns: expected text, not int64"),
    (returns_what_returns_none, "it returns None, where a result is expected"),
    (takes_letters_one_by_one, "Invalid use of getiter with parameters (text[4])"),
    (asks_for_a_class, "Numba has no isinstance("),
    (changes_its_message, "cannot change field 'size' of a Word: make a new one"),
    (calls_a_method, "Unknown attribute 'doubled' of type Word"),
    (compares_by_an_equality_of_its_own, "Numba has no eq(Odd(int64), Odd(int64))"),
    (leaves_out_a_field, "missing a required argument: 'total'"),
]


def wrong_line(function: Callable[..., Any]) -> int:
    """Where the function, or the one that it calls, has the comment `wrong`; else where it starts."""
    for each in (function, helper):
        lines, first = inspect.getsourcelines(each)
        for number, line in enumerate(lines):
            if line.rstrip().endswith("# wrong") and (each is function or function is calls_a_wrong_function):
                return first + number
    return inspect.getsourcelines(function)[1]


def reported(function: Callable[..., Any], cache: KernelFolder | None) -> str:
    with pytest.raises(ApplicationError) as caught:
        compile_kernel(
            function,
            KernelForm(schema_of(Word), layout_of_class(Seen, None), Returns.ONE, schema_of(Count)),
            cache=cache,
        )
    return str(caught.value)


@pytest.mark.parametrize(("function", "reason"), MISTAKES, ids=[each.__name__ for each, _ in MISTAKES])
def test_a_mistake_is_reported_with_function_line_and_reason(
    function: Callable[..., Any], reason: str
) -> None:
    text = reported(function, None)
    assert re.match(
        rf"'{function.__name__}' \({re.escape(__file__)}:{wrong_line(function)}\) cannot be compiled: ", text
    )
    assert reason in text
    assert text.endswith("Remove @bettong.compiled, or set BETTONG_COMPILED=off, to run it as plain Python")
    assert "\n" not in text


@pytest.mark.parametrize("function", [reads_an_unknown_field, returns_a_number_for_text])
def test_a_mistake_is_reported_alike_when_kernels_are_cached(
    function: Callable[..., Any], tmp_path: Path
) -> None:
    assert reported(function, KernelFolder(tmp_path)) == reported(function, None)
