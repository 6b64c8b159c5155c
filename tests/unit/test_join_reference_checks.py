"""What a join with a reference table refuses, and what happens to messages that fail in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

import bettong
from bettong.application.plan import plan
from bettong.errors import ApplicationError
from bettong.inspection.application_graph import application_graph
from bettong.testing import (
    frame,
    run,
)
from tests.samples.reference_join import (
    Order,
    Price,
    Priced,
    accounts,
    app_of,
    by_text,
    of_account,
    priced,
    prices,
)


def test_what_fails_is_a_dead_letter_of_its_message_alone() -> None:
    def failing(order: Order, price: Price) -> Priced:
        if order.number == 2:
            raise ValueError("two")
        return Priced(order.number, "much" if order.number == 3 else price.cents)  # type: ignore[arg-type]

    def on(order: Order) -> Any:
        return [] if order.number == 1 else by_text(order)

    app = bettong.Application("shop")
    orders = app.source("orders", schema=Order)
    orders.join_reference(prices, failing, key="sku", on=on, name="priced").sink("out")
    sent = [Order("d" if number == 4 else "a", "x", number) for number in range(6)]
    outcome = run(app, [frame("orders", *sent)])
    assert outcome.outputs["out"] == [Priced(0, 10), Priced(5, 10)]
    assert [each.reason.partition(":")[0] for each in outcome.dead_letters] == [
        "TypeError", "ValueError", "field 'cents'", "LookupError",
    ]  # fmt: skip
    assert {each.computation for each in outcome.dead_letters} == {"priced"}


@pytest.mark.parametrize("failing_on", [True, False])
def test_a_partition_that_must_stop_gives_what_came_before(failing_on: bool) -> None:  # noqa: FBT001
    called: list[int] = []

    def on(order: Order) -> str:
        if failing_on and order.number == 2:
            raise ValueError("two")
        return order.sku

    def combine(order: Order, price: Price) -> Priced:
        called.append(order.number)
        if not failing_on and order.number == 2:
            raise ValueError("two")
        return Priced(order.number, price.cents)

    app = bettong.Application("shop")
    orders = app.source("orders", schema=Order)
    orders.join_reference(prices, combine, key="sku", on=on, on_error="stop").sink("out")
    outcome = run(app, [frame("orders", *(Order("a", "x", number) for number in range(5)))])
    assert outcome.stopped is not None
    assert "ValueError: two" in outcome.stopped
    assert called == ([0, 1] if failing_on else [0, 1, 2])


@dataclass
class Basket:
    sku: str
    items: list[int]


@dataclass
class Sum:
    total: int


def test_what_a_function_does_to_message_or_row_nobody_else_sees() -> None:
    def spoiling(order: Order, basket: Basket) -> Sum:
        basket.items.append(1000)
        order.sku = "?"
        return Sum(sum(basket.items) + order.number)

    app = bettong.Application("shop")
    orders = app.source("orders", schema=Order)
    orders.join_reference(lambda: [Basket("a", [1, 2])], spoiling, key="sku", name="one").sink("first")
    orders.join_reference(lambda: [Basket("a", [1, 2])], spoiling, key="sku", name="two").sink("second")
    outcome = run(
        app, [frame("orders", Order("a", "x", 0), Order("a", "x", 0)), ("orders", Order("a", "x", 0))]
    )
    assert outcome.outputs == {"first": [Sum(1003)] * 3, "second": [Sum(1003)] * 3}


def of_either(order: Order, price: Price | Order | None) -> Priced | None:
    return Priced(order.number, 0) if price else None


def of_anything(order: Order, price) -> Priced:  # type: ignore[no-untyped-def]  # noqa: ANN001 - that is what is refused
    return Priced(order.number, price.cents)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda orders: orders.join_reference(prices, of_anything, key="sku"),
            "annotate parameter 'price' with the class of the table's rows",
        ),
        (
            lambda orders: orders.join_reference(prices, of_either, key="sku"),
            "annotate parameter 'price' with the class of the table's rows",
        ),
        (
            lambda orders: orders.join_reference(prices, priced, key="ean"),
            "key='ean': Price has no field 'ean'; it has sku, cents",
        ),
        (
            lambda orders: orders.join_reference(prices, priced, key="sku", how="right"),
            "how='right'; expected one of 'inner', 'left'",
        ),
        (
            lambda orders: orders.join_reference(prices, priced, key="sku", how="left"),
            "parameter 'price' is None where there is no partner",
        ),
        (
            lambda orders: orders.join_reference(prices, priced, key="sku", on="number"),
            "Order.number is int, and the key Price.sku is text: they never meet",
        ),
        (
            lambda orders: orders.join_reference(prices, priced, key="sku", on="ean"),
            "on='ean': Order has no field 'ean'",
        ),
        (
            lambda orders: orders.join_reference(prices, priced, key="cents"),
            "'orders' is keyed by text, and Price.cents is of integers: they never meet; give on=",
        ),
        (
            lambda orders: orders.join_reference(prices, by_text, key="sku"),
            "must take two arguments, a message and a row",
        ),
        (
            lambda orders: orders.join_reference("prices.csv", priced, key="sku"),
            "load='prices.csv' is no function",
        ),
    ],
)
def test_what_cannot_be_joined_is_refused_when_the_application_is_built(
    make: Callable[[Any], Any], text: str
) -> None:
    app = bettong.Application("shop")
    with pytest.raises(ApplicationError, match=text):
        make(app.source("orders", schema=Order, key="account"))


def test_a_stream_without_key_or_field_needs_on() -> None:
    app = bettong.Application("shop")
    with pytest.raises(ApplicationError, match="Order has no field 'name', and 'orders' no key: give on="):
        app.source("orders", schema=Order).join_reference(accounts, of_account, key="name")


def test_check_says_what_a_table_is_loaded_by() -> None:
    (stage,) = application_graph(plan(app_of(reload_every=timedelta(minutes=5))))
    (entry,) = stage.computations
    assert (entry.kind, entry.name) == ("join_reference", "priced")
    assert entry.text == "orders -> Priced, Price by sku of prices, loaded every 0:05:00"
