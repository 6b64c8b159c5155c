"""Orders that are joined with a table of prices: what the tests of reference tables share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import bettong


@dataclass
class Order:
    """Of an account."""

    sku: str
    account: str
    number: int


@dataclass
class Price:
    sku: str
    cents: int


@dataclass
class Priced:
    number: int
    cents: int


def priced(order: Order, price: Price) -> Priced | None:
    return Priced(order.number, price.cents) if price.cents else None


def priced_or_not(order: Order, price: Price | None) -> Priced:
    return Priced(order.number, -1 if price is None else price.cents)


def by_text(order: Order) -> str:
    if order.sku == "d":
        raise LookupError("d has none")
    return order.sku


def prices() -> list[Price]:
    return [Price("b", 20), Price("a", 10)]


How = Literal["inner", "left"]
ON: dict[str, Any] = {"field": None, "other field": "sku", "function": by_text}


def app_of(how: How = "inner", on: Any = None, key: Any = "account", **options: Any) -> bettong.Application:
    app = bettong.Application("shop")
    orders = app.source("orders", schema=Order, key=key)
    combine: Callable[..., Any] = priced if how == "inner" else priced_or_not
    joined = orders.join_reference(
        options.pop("load", prices), combine, key="sku", on=on, how=how, name="priced", **options
    )
    joined.sink("out")
    return app


@dataclass
class Account:
    name: str
    is_open: bool


@dataclass
class Named:
    number: int
    is_open: bool


def of_account(order: Order, account: Account) -> Named:
    return Named(order.number, account.is_open)


def accounts() -> list[Account]:
    return [Account("x", True), Account("y", False)]  # noqa: FBT003 - fields of a row
