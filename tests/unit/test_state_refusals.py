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


def test_a_vectorized_state_may_have_them() -> None:
    @bettong.vectorized
    def counted(item: Item, _state: Unsigned, _rows: bettong.RowIndexes) -> Item:
        return item

    app = Application("meters")
    app.source("in", schema=Item, key="key").stateful(counted, state=Unsigned, name="fold").sink("out")
    assert run(app, [("in", Item(1))], compiled=True).outputs == {"out": [Item(1)]}
