"""What orders cost: each with the row of a price list that somebody else keeps, in a file.

The file is read again every minute. A changed one is a new version: orders that come behind it cost what it says, those
before it what they cost then, also when the log is folded again. A file that is gone, or has a price twice, changes
nothing; `bettong status` says so.
Run it: `bettong up examples/orders_with_prices.py`, then `bettong send orders orders.jsonl`, lines like
`{"customer": "ann", "sku": "tea", "count": 2}`. ORDERS_PRICES may name another file.
"""

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

import bettong

PRICES = Path(__file__).parent / "data" / "orders_with_prices" / "prices.csv"


@dataclass
class Order:
    """How much of what somebody wants."""

    customer: str
    sku: str
    count: int


@dataclass
class Price:
    """A row of the price list; it may have more columns."""

    sku: str
    name: str
    cents: int


@dataclass
class Position:
    """A line of a bill. What the list has not costs nothing, and is called as the order calls it."""

    customer: str
    name: str
    count: int
    cents: int


def prices() -> pa.Table:
    """The price list as it is now."""
    return pyarrow.csv.read_csv(os.environ.get("ORDERS_PRICES", PRICES))


def priced(order: Order, price: Price | None) -> Position:
    """Of an order, and its row."""
    if price is None:
        return Position(order.customer, order.sku, order.count, 0)
    return Position(order.customer, price.name, order.count, order.count * price.cents)


app = bettong.Application("orders-with-prices")
orders = app.source("orders", schema=Order, key="customer")
minute = timedelta(minutes=1)
positions = orders.join_reference(prices, priced, key="sku", reload_every=minute, how="left")
positions.sink("positions")
