"""States of compiled functions whose fields or whose making mean something else there: what is said of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bettong
from bettong import Application, ApplicationError, AtMost, Width
from bettong.testing import run


@dataclass
class Item:
    key: int


@dataclass
class Unsigned:
    total: bettong.u64 = 0


@dataclass(frozen=True)
class Span:
    start: bettong.u32 = 0
    stop: bettong.u64 = 0


@dataclass
class Within:
    span: Span = Span()


@dataclass
class InList:
    totals: Annotated[list[bettong.u64], AtMost(3)] = field(default_factory=list)


@dataclass
class InListOfValues:
    spans: Annotated[list[Span], AtMost(3)] = field(default_factory=list)


@bettong.compiled
def kept(item: Item, _: Any) -> Item:
    return item


def refused(state: Any, function: Any = kept) -> str:
    app = Application("meters")
    app.source("in", schema=Item, key="key").stateful(function, state=state, name="fold").sink("out")
    with pytest.raises(ApplicationError) as caught:
        run(app, [("in", Item(1))], compiled=True)
    return str(caught.value)


@pytest.mark.parametrize(
    ("state", "path"),
    [
        (Unsigned, "total"),
        (Within, "span.stop"),
        (InList, "totals[]"),
        (InListOfValues, "spans[].stop"),
    ],
)
def test_a_state_with_unsigned_numbers_of_64_bits_is_refused_by_its_path(state: Any, path: str) -> None:
    text = f"compiled 'fold': {state.__name__}: {path} (u64): compiled code would make negative numbers"
    assert text in refused(state)


@dataclass
class WideList:
    items: Annotated[list[int], AtMost(3), Width(4)] = field(default_factory=list)


@dataclass
class BoundedArray:
    sums: Annotated[NDArray[np.float64], AtMost(3)] = field(default_factory=lambda: np.zeros(9))


@dataclass
class WidePart:
    within: Annotated[WideList, Width(3)] = field(default_factory=WideList)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (WideList, "WideList: items: Width bounds str and bytes, and this is list[int]"),
        (BoundedArray, "BoundedArray: sums: AtMost bounds list[T] and tuple[T, ...], and this is "),
        (WidePart, "WidePart: within: Width bounds str and bytes, and this is WideList"),
    ],
)
def test_a_mark_that_bounds_nothing_of_a_state_is_refused_by_its_path(state: Any, text: str) -> None:
    assert f"compiled 'fold': {text}" in refused(state)


@dataclass
class Unmade:
    sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros("x"))  # type: ignore[arg-type]


def test_what_making_a_state_raises_is_said() -> None:
    message = refused(Unmade)
    assert "compiled 'fold': Unmade: sums (array): a new state has none there" in message
    assert (
        "; to make a new state raised TypeError: 'str' object cannot be interpreted as an integer" in message
    )


@dataclass
class Finished:
    count: int = 0

    def __post_init__(self) -> None:
        self.count += 1


@dataclass
class WithFinished:
    part: Finished = field(default_factory=Finished)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (Finished, "Finished: has a __post_init__"),
        (WithFinished, "WithFinished: part (Finished) has a __post"),
    ],
)
def test_a_state_that_finishes_itself_is_refused_as_a_state(state: Any, text: str) -> None:
    message = refused(state)
    assert f"compiled 'fold': {text}" in message
    assert "run again whenever a saved state is read" in message
    assert "message" not in message


@dataclass
class Whole:
    sums: NDArray[np.int64] = field(default_factory=lambda: np.zeros(3, np.int64))


@bettong.compiled
def halved(item: Item, state: Whole) -> Item:
    state.sums /= 2  # type: ignore[misc]
    return item


@bettong.compiled
def added(item: Item, state: Whole) -> Item:
    state.sums += 0.5  # type: ignore[arg-type]
    return item


@pytest.mark.parametrize("function", [halved, added])
def test_fractions_for_an_array_of_integers_are_refused_in_words(function: Any) -> None:
    message = refused(Whole, function)
    assert f"{function.__name__!r} " in message
    assert "one of integers takes no fractions; use float64" in message


def test_a_vectorized_state_may_have_them() -> None:
    @bettong.vectorized
    def counted(item: Item, _state: Unsigned, _rows: bettong.RowIndexes) -> Item:
        return item

    app = Application("meters")
    app.source("in", schema=Item, key="key").stateful(counted, state=Unsigned, name="fold").sink("out")
    assert run(app, [("in", Item(1))], compiled=True).outputs == {"out": [Item(1)]}
