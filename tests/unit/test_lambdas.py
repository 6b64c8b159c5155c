"""What a lambda is told: one remedy, which works when it is tried."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import bettong
from bettong.application.streams import Stream
from bettong.errors import ApplicationError


@dataclass
class Trade:
    symbol: str
    size: int


@dataclass
class Quote:
    symbol: str
    price: float


@dataclass
class Row:
    symbol: str
    name: str


@dataclass
class Seen:
    count: int = 0


@dataclass
class Result:
    symbol: str


def load() -> pa.Table:
    return pa.table({"symbol": ["a"], "name": ["b"]})


def trades() -> Stream[Trade]:
    return bettong.Application("shop").source("trades", schema=Trade, key="symbol")


def quotes(stream: Stream[Trade]) -> Stream[Quote]:
    return stream.app.source("quotes", schema=Quote, key="symbol")


# Of each method, a call of it with a function, and a lambda for it. In the first, options are name= or none.
METHODS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "map": (lambda function, **more: trades().map(function, **more), lambda trade: trade),
    "flat_map": (lambda function, **more: trades().flat_map(function, **more), lambda trade: [trade]),
    "stateful": (
        lambda function, **more: trades().stateful(function, state=Seen, **more),
        lambda trade, _: Result(trade.symbol),
    ),
    "stateful of two": (
        lambda function, **more: _of_two(trades(), function, more),
        lambda trade, _: Result(trade.symbol),
    ),
    "join_latest": (
        lambda function, **more: (left := trades()).join_latest(quotes(left), function, **more),
        lambda trade, _: Result(trade.symbol),
    ),
    "join_as_of": (
        lambda function, **more: (left := trades()).join_as_of(quotes(left), function, how="left", **more),
        lambda trade, _: Result(trade.symbol),
    ),
    "join_reference": (
        lambda function, **more: trades().join_reference(load, function, key="symbol", **more),
        lambda trade, _: Result(trade.symbol),
    ),
    "join_reference of all": (
        lambda function, **more: trades().join_reference(load, function, key="symbol", how="left", **more),
        lambda trade, _: Result(trade.symbol),
    ),
}


def _of_two(stream: Stream[Trade], function: Any, options: dict[str, Any]) -> Any:
    other = quotes(stream)

    def on_quote(quote: Quote, seen: Seen) -> Result | None:
        return None

    handlers: dict[Any, Any] = {stream: function, other: on_quote}
    return stream.merge(other).stateful(handlers, state=Seen, **options)


def remedied(message: str, function: Callable[..., Any]) -> Any:
    """The function that the error says to write, which does what the lambda does."""
    (line,) = re.findall(r"write it as (def .*)$", message)
    (name,) = re.findall(r"def (\w+)\(", line)
    arguments = ", ".join(function.__code__.co_varnames[: function.__code__.co_argcount])
    module = {**globals(), "Iterator": Iterator, "function_of": function}
    exec(f"{line}:\n    return function_of({arguments})\n", module)  # noqa: S102 - the remedy is tried
    return module[name]


@pytest.mark.parametrize("options", [{}, {"name": "mine"}], ids=["without a name", "with a name"])
@pytest.mark.parametrize("method", METHODS)
def test_a_lambda_whose_result_is_not_known_is_told_a_function_that_works(
    method: str, options: dict[str, Any]
) -> None:
    call, function = METHODS[method]
    with pytest.raises(ApplicationError) as refused:
        call(function, **options)
    assert "name=" not in str(refused.value)
    call(remedied(str(refused.value), function), **options)


# Of these the result is known: they want a name alone.
NAMED: dict[str, Callable[..., Any]] = {
    "filter": lambda **more: trades().filter(lambda trade: trade.size > 0, **more),
    "key_by": lambda **more: trades().key_by(lambda trade: trade.symbol, **more),
}


@pytest.mark.parametrize("method", NAMED)
def test_a_lambda_that_lacks_a_name_alone_is_told_to_have_one(method: str) -> None:
    with pytest.raises(ApplicationError, match="a lambda has no name: give name="):
        NAMED[method]()
    NAMED[method](name="mine")


def test_a_lambda_that_needs_neither_is_taken() -> None:
    stream = trades()
    assert set(stream.branch(large=lambda trade: trade.size > 9, small=lambda trade: trade.size < 10)) == {
        "large",
        "small",
    }
    stream.app.source("others", schema=Trade, key=lambda trade: trade.symbol)
    stream.stateful(lambda_free, state=Seen, delete_when=lambda seen: seen.count > 9)


def lambda_free(trade: Trade, seen: Seen) -> Result | None:
    return None
