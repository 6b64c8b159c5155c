"""Nexmark 13: bids with the row of a bounded table that belongs to their auction.

The table is loaded when the application starts, and each ten minutes. Here it is made; a file, or a frame of Spark's,
is loaded in the same way.
"""

from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa

import bettong
from model import Bid, bids

ROWS = 10_000


@dataclass(slots=True)
class Side:
    """A row of the table."""

    key: int
    value: str


@dataclass(slots=True)
class BidWithValue:
    """A bid, and what the table says."""

    auction: int
    bidder: int
    price: int
    at: int
    value: str


def side_table() -> pa.Table:
    """All rows."""
    return pa.table({"key": range(ROWS), "value": [f"value {number}" for number in range(ROWS)]})


def with_value(bid: Bid, side: Side) -> BidWithValue:
    """Both together."""
    return BidWithValue(bid.auction, bid.bidder, bid.price, bid.at, side.value)


def row_of(bid: Bid) -> int:
    """Which row belongs to a bid."""
    return bid.auction % ROWS


app = bettong.Application("nexmark-q13")
ten_minutes = timedelta(minutes=10)
bids(app).join_reference(
    side_table, with_value, key="key", on=row_of, reload_every=ten_minutes, name="side"
).sink("bids-with-values")
