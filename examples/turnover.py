"""Turnover: trades in, each large one out with what its symbol has turned over so far. Over whole frames.

    bettong run examples/turnover.py
    bettong send trades trades.csv      (symbol,cents,quantity)
    bettong tail turnover

The functions are annotated like those of single messages, but each field is a column: one call a frame. Row i of what
they give hangs on row i of what they take, and on the rows of its symbol before it: never on where a frame ends.
Sums of floats would, in their last bits, for numpy adds them in another order: amounts are in cents.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

import bettong
from bettong import RowIndexes, Width

LARGE_CENTS = 1_000_000


@dataclass(slots=True)
class Trade:
    """So many pieces at so much each."""

    symbol: Annotated[str, Width(8)]
    cents: int
    quantity: int


@dataclass(slots=True)
class Turned:
    """A large trade's amount, and that of all large ones of its symbol up to it."""

    symbol: Annotated[str, Width(8)]
    cents: int
    so_far: int


@dataclass(slots=True)
class Symbol:
    """What is kept of a symbol."""

    so_far: int = 0


@bettong.vectorized
def large(trade: Trade) -> bool:
    """Whether the amount is large."""
    return trade.cents * trade.quantity >= LARGE_CENTS


@bettong.vectorized
def turn_over(trade: Trade, symbol: Symbol, key: RowIndexes) -> Turned:
    """Adds each amount to what its symbol, `symbol.so_far[key]`, has turned over before."""
    cents: Any = trade.cents * trade.quantity
    so_far: Any = symbol.so_far
    # The rows of each symbol side by side, in their order, which `stable` keeps.
    order = np.argsort(key, kind="stable")
    key, sums = key[order], np.cumsum(cents[order])
    begins = np.searchsorted(key, np.arange(len(so_far)))
    before = so_far - (sums - cents[order])[begins]
    result: Any = np.empty_like(sums)
    result[order] = sums + before[key]
    so_far[key] = result[order]  # of several in a row, numpy keeps the last
    return Turned(trade.symbol, cents, result)


app = bettong.Application("turnover")
(
    app.source("trades", schema=Trade, key="symbol")
    .filter(large)
    .stateful(turn_over, state=Symbol)
    .sink("turnover")
)
