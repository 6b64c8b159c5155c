"""Functions that give a coroutine or a generator, and states that nothing can change: refused when they are given."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple

import pytest

import bettong
from bettong import Application, ApplicationError
from bettong.application.callables import is_unchanging
from tests.samples.application import Alert, Seen, Trade


async def awaited(trade: Trade) -> Alert:
    return Alert(trade.symbol)


async def awaited_with_state(trade: Trade, seen: Seen) -> Alert:
    return Alert(trade.symbol)


async def kept(trade: Trade) -> bool:
    return True


async def key(trade: Trade) -> str:
    return trade.symbol


async def encoded(trade: Trade) -> bytes:
    return b""


async def decoded(row: bytes) -> Trade:
    raise ValueError(row)


async def several(trade: Trade):  # type: ignore[no-untyped-def]  # noqa: ANN201 - the mistake
    yield Alert(trade.symbol)


class Called:
    async def __call__(self, trade: Trade) -> Alert:
        return Alert(trade.symbol)


class Decoder:
    def check(self, source: str, schema: object) -> None:
        """Takes any."""

    async def decode(self, schema: object, rows: object) -> object:
        return schema, rows


async def made() -> Seen:
    return Seen()


def yields(trade: Trade) -> Alert:  # type: ignore[misc]
    yield Alert(trade.symbol)


def yields_with_state(trade: Trade, seen: Seen) -> Alert:  # type: ignore[misc]
    yield Alert(trade.symbol)


def yields_bools(trade: Trade) -> bool:  # type: ignore[misc]
    yield True


def yields_keys(trade: Trade) -> str:  # type: ignore[misc]
    yield trade.symbol


def yields_bytes(trade: Trade) -> bytes:  # type: ignore[misc]
    yield b""


def yields_many(trade: Trade) -> Iterator[Alert]:
    yield Alert(trade.symbol)


def yields_many_with_state(trade: Trade, seen: Seen) -> Iterator[Alert]:
    yield Alert(trade.symbol)


def with_state(trade: Trade, count: Any) -> Alert:
    return Alert(trade.symbol)


def trades() -> Any:
    return Application("shop").source("trades", schema=Trade, key="symbol")


def source(**given: Any) -> object:
    return Application("shop").source("trades", schema=Trade, **given)


ASYNC: dict[str, Callable[[], object]] = {
    "map": lambda: trades().map(awaited),
    "map of a partial": lambda: trades().map(functools.partial(awaited), name="f"),
    "map of an object": lambda: trades().map(Called()),
    "filter": lambda: trades().filter(kept),
    "flat_map": lambda: trades().flat_map(several),
    "stateful": lambda: trades().stateful(awaited_with_state, state=Seen),
    "state": lambda: trades().stateful(yields_many_with_state, state=made),
    "key": lambda: source(key=key),
    "key_by": lambda: trades().key_by(key),
    "encoder": lambda: trades().sink("out", encoder=encoded),
    "decoder": lambda: source(decoder=bettong.each(decoded)),
    "decoder's method": lambda: source(decoder=Decoder()),
}
YIELDING: dict[str, Callable[[], object]] = {
    "map": lambda: trades().map(yields),
    "filter": lambda: trades().filter(yields_bools),
    "stateful": lambda: trades().stateful(yields_with_state, state=Seen),
    "key": lambda: source(key=yields_keys),
    "encoder": lambda: trades().sink("out", encoder=yields_bytes),
}


@pytest.mark.parametrize("name", ASYNC)
def test_async_functions_are_refused_where_they_are_given(name: str) -> None:
    with pytest.raises(ApplicationError, match=r"it is an async function, .* write it with def"):
        ASYNC[name]()


@pytest.mark.parametrize("name", YIELDING)
def test_generators_are_refused_where_one_value_is_expected(name: str) -> None:
    with pytest.raises(ApplicationError, match=r"it is a generator function .* return it"):
        YIELDING[name]()


def test_generators_are_taken_where_several_values_are_expected() -> None:
    trades().flat_map(yields_many)
    trades().stateful(yields_many_with_state, state=Seen)


class Colour(Enum):
    RED = 1


class Number(int):
    """An int that can hold more than itself."""


@dataclass(frozen=True)
class Frozen:
    names: list[str]


@dataclass(frozen=True)
class FrozenCount:
    count: int = 0
    last: tuple[str, ...] = ()


class Pair(NamedTuple):
    left: object
    right: object


UNCHANGING = [
    0,
    0.5,
    "",
    b"",
    True,
    None,
    (),
    (1, ("a", None)),
    frozenset(),
    Decimal(1),
    Colour.RED,
    Pair(1, 2),
    FrozenCount(),
    1j,
]
CHANGING = [[], {}, set(), bytearray(), Seen(), Number(1), ([],), Pair([], 1), Frozen([]), object, iter(())]


@pytest.mark.parametrize("value", UNCHANGING, ids=repr)
def test_a_state_that_cannot_change_is_refused_with_a_remedy(value: object) -> None:
    assert is_unchanging(value)
    with pytest.raises(ApplicationError, match=r"change in place: .* Give a class with fields"):
        trades().stateful(with_state, state=lambda: value)


@pytest.mark.parametrize("value", CHANGING, ids=lambda value: type(value).__name__)
def test_a_state_that_can_change_is_taken(value: object) -> None:
    assert not is_unchanging(value)
    trades().stateful(with_state, state=lambda: value)


@pytest.mark.parametrize("kind", [int, float, str, tuple])
def test_classes_of_values_that_cannot_change_are_no_states(kind: type) -> None:
    with pytest.raises(ApplicationError, match=f"state={kind.__name__} makes {kind.__name__} "):
        trades().stateful(with_state, state=kind)


def test_a_state_that_cannot_be_made_now_is_left_to_its_messages() -> None:
    def later() -> Seen:
        raise OSError("not yet")

    trades().stateful(with_state, state=later)
