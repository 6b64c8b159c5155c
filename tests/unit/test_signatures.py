"""What the user's functions say they take and return, read when the application is built."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pytest

from bettong import Application, ApplicationError
from bettong.application.nodes.stateful import stateful_output
from bettong.application.nodes.stateless import check_predicate, flat_map_output, map_output
from bettong.schema.schema import schema_of


@dataclass
class Order:
    symbol: str


@dataclass
class Large(Order):
    size: int


@dataclass
class Result:
    symbol: str


class Seen:
    """A state."""

    anything = True


ORDER, LARGE, RESULT = schema_of(Order), schema_of(Large), schema_of(Result)


def one(order: Order) -> Result:
    return Result(order.symbol)


def perhaps(order: Order) -> Result | None:
    return None if order.symbol else Result("")


def either(order: Order) -> Result | Order | None:
    return Result(order.symbol) if order.symbol else order


def several(order: Order) -> list[Result]:
    return [Result(order.symbol)]


def silent(order: Order):  # type: ignore[no-untyped-def]  # noqa: ANN201 - that is the mistake
    return order


def nothing(order: Order) -> None:
    del order


def text(order: Order) -> str:
    return order.symbol


def unknown(order: Order) -> Missing:  # type: ignore[name-defined]  # noqa: F821 - that is the mistake
    return order


def two(order: Order, seen: Seen) -> Result:
    del seen
    return Result(order.symbol)


def result_in(wrong: Result) -> Result:
    return wrong


class Callable_:  # noqa: N801 - a class with instances to call
    def __call__(self, order: Order) -> Result:
        return Result(order.symbol)

    def method(self, order: Order) -> Result:
        return Result(order.symbol)


def scaled(factor: int, order: Order) -> Result:
    return Result(order.symbol * factor)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (silent, "'f': annotate what it returns"),
        (nothing, "'f' returns None"),
        (text, "'f' returns str: <class 'str'> is no schema"),
        (unknown, "'f': an annotation cannot be resolved: name 'Missing' is not defined"),
        (two, "'f': must take one argument: missing a required argument: 'seen'"),
        (lambda: Result(""), "'f': must take one argument: too many positional arguments"),
        (result_in, "'f': parameter 'wrong' is annotated Result, but gets Order"),
        (7, "'f': 7 is no function"),
        (dict, "'f': no signature found for builtin type <class 'dict'>; wrap it"),
        (either, f"'f' returns {__name__}.Result | {__name__}.Order | None: "),
        (perhaps, "map 'f': must return one message for each; use flat_map"),
        (several, "map 'f': must return one message for each; use flat_map"),
    ],
)
def test_a_wrong_function_of_a_map_is_named(function: Any, text: str) -> None:
    with pytest.raises(ApplicationError) as caught:
        map_output("f", function, ORDER)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("method", "options", "written"),
    [
        ("map", {}, "def bare(order: Order) -> Result"),
        ("flat_map", {}, "def bare(order: Order) -> Iterator[Result]"),
        ("stateful", {"state": Seen}, "def bare(order: Order, seen: Seen) -> Result | None"),
    ],
)
def test_a_function_that_does_not_say_what_it_returns_is_shown_as_it_is_to_be_written(
    method: str, options: dict[str, Any], written: str
) -> None:
    orders = Application("orders").source("orders", schema=Order, key="symbol")
    function = (lambda order, seen: [order, seen]) if options else (lambda order: order)
    function.__name__ = "bare"
    with pytest.raises(ApplicationError) as caught:
        getattr(orders, method)(function, **options)
    assert str(caught.value).endswith(f"annotate what it returns: {written}")


@functools.wraps(one)
def wrapper(*arguments: Order) -> Result:
    return one(*arguments)


@pytest.mark.parametrize(
    "function",
    [
        one,
        Callable_(),
        Callable_().method,
        functools.partial(scaled, 2),
        wrapper,
    ],
    ids=["function", "object", "method", "partial", "wrapper"],
)
def test_whatever_can_be_called_and_is_annotated_serves(function: Callable[..., Any]) -> None:
    assert map_output("f", function, ORDER).schema == RESULT


def test_a_parameter_may_be_annotated_with_anything_that_the_message_is() -> None:
    class Sized(Protocol):
        size: int

    def base(order: Order) -> Result:
        return Result(order.symbol)

    def either(order: Order | Result) -> Result:
        return Result(order.symbol)

    def anything(order: Any) -> Result:
        return Result(str(order))

    def thing(order: object) -> Result:
        return Result(str(order))

    def bare(order) -> Result:  # type: ignore[no-untyped-def]  # noqa: ANN001 - that is the point
        return Result(order.symbol)

    for function in (base, either, anything, thing, bare):
        assert map_output("f", function, LARGE).schema == RESULT


def of_list(order: Order) -> list[Result]:
    return [Result(order.symbol)]


def of_tuple(order: Order) -> tuple[Result, ...]:
    return (Result(order.symbol),)


def of_iterable(order: Order) -> Iterable[Result]:
    return [Result(order.symbol)]


def of_iterator(order: Order) -> Iterator[Result]:
    yield Result(order.symbol)


def of_generator(order: Order) -> Generator[Result, None, None]:
    yield Result(order.symbol)


@pytest.mark.parametrize("function", [of_list, of_tuple, of_iterable, of_iterator, of_generator])
def test_a_flat_map_returns_any_iterable_in_order(function: Callable[..., Any]) -> None:
    output = flat_map_output("f", function, ORDER)
    assert (output.schema, output.many) == (RESULT, True)


def of_set(order: Order) -> set[Result]:
    return {Result(order.symbol)}


def of_any(order: Order) -> typing.List:  # type: ignore[type-arg]  # noqa: UP006 - that is the mistake
    return [order]


def of_two(order: Order) -> tuple[Result, Order]:
    return Result(order.symbol), order


def of_either(order: Order) -> list[Result | Order | None]:
    return [Result(order.symbol), order]


def perhaps_several(order: Order) -> list[Result] | None:
    return [Result(order.symbol)]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (one, "flat_map 'f': must return an iterable, an empty one for nothing, e.g. -> list[Result]"),
        (perhaps_several, "flat_map 'f': must return an iterable, an empty one for nothing"),
        (of_set, "'f' returns set"),
        (of_any, "'f' returns typing.List"),
        (of_two, f"'f' returns tuple[{__name__}.Result, {__name__}.Order]: "),
        (of_either, f"'f' returns list[{__name__}.Result | {__name__}.Order | None]: "),
    ],
)
def test_a_flat_map_returns_nothing_else(function: Any, text: str) -> None:
    with pytest.raises(ApplicationError) as caught:
        flat_map_output("f", function, ORDER)
    assert text in str(caught.value)


def test_a_filter_returns_a_bool_or_says_nothing() -> None:
    check_predicate("filter 'f'", lambda _: True, ORDER)
    with pytest.raises(ApplicationError, match="filter 'f': must return bool, not str"):
        check_predicate("filter 'f'", text, ORDER)


def on_order(order: Order, seen: Seen) -> Result | None:
    return Result(order.symbol) if seen.anything else None


def on_result(result: Result, seen: Seen) -> None:
    del result, seen


def on_result_many(result: Result, seen: Seen) -> list[Result]:
    return [result] if seen.anything else []


def on_result_order(result: Result, seen: Seen) -> Order:
    return Order(result.symbol) if seen.anything else Order("")


def state_of_another_kind(order: Order, seen: Result) -> Result:
    return seen if order.symbol else Result("")


def generic_state(order: Order, seen: dict[str, int]) -> Result:
    return Result(order.symbol) if seen else Result("")


def test_functions_without_results_may_stand_beside_those_with_some() -> None:
    output = stateful_output("s", {ORDER: on_order, RESULT: on_result}, Seen)
    assert (output.schema, output.many) == (RESULT, False)


@pytest.mark.parametrize(
    ("handlers", "text"),
    [
        ({RESULT: on_result}, "stateful 's': no function returns a message, so it has no results"),
        (
            {ORDER: on_order, RESULT: on_result_many},
            "stateful 's': its functions return different things (Result, many Result)",
        ),
        ({ORDER: on_order, RESULT: on_result_order}, "return different things (Order, Result)"),
        ({ORDER: state_of_another_kind}, "parameter 'seen' is annotated Result, but gets Seen"),
        ({ORDER: one}, "must take two arguments, a message and a state: too many positional arguments"),
        ({ORDER: silent}, "must take two arguments"),
    ],
)
def test_a_wrong_function_of_a_stateful_computation_is_named(handlers: Any, text: str) -> None:
    with pytest.raises(ApplicationError) as caught:
        stateful_output("s", handlers, Seen)
    assert text in str(caught.value)


def test_a_state_may_be_annotated_as_a_generic_or_made_by_a_function() -> None:
    assert stateful_output("s", {ORDER: generic_state}, dict).schema == RESULT
    assert stateful_output("s", {ORDER: on_order}, functools.partial(Seen)).schema == RESULT
