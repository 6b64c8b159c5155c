"""Load for Market Spread: generated orders and quotes, the same for the same seed.

Orders and quotes are fed through two sources, and which of two frames comes first is the log's to decide. So
that a plain loop can know the right answer, the load comes in rounds: the symbols are halved, and a round
quotes one half while it orders the other. When a round is durable before the next one is sent, each symbol's
messages have one order, however fast the frames of a round travel.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).parent / "data" / "market_spread"
INITIAL_QUOTES = DATA / "350-symbols_initial-nbbo-fixish.msg"

Columns = dict[str, np.ndarray[Any, Any]]

# Those of the initial quotes. More are made of them, each with the price of one of these and a ticker of four digits.
SYMBOLS, SYMBOLS_MAX = 350, 10_000

# 80 % of the orders go to 20 % of the symbols.
HOT_ORDERS, HOT_SYMBOLS = 0.8, 0.2
_MILLISECONDS = 60_000


@dataclass(frozen=True, slots=True)
class Round:
    """Quotes of one half of the symbols, orders of the other: columns by field, in the order of sending."""

    quotes: Columns
    orders: Columns

    @property
    def messages(self) -> int:
        """How many messages the round has."""
        return len(self.quotes["symbol"]) + len(self.orders["symbol"])


@dataclass(frozen=True, slots=True)
class Instruments:
    """Symbols as they stand in messages, their prices, and whether they quote a spread that rejects."""

    symbols: np.ndarray[Any, Any]
    prices: np.ndarray[Any, Any]
    rejecting: np.ndarray[Any, Any]

    def half(self, number: int) -> "Instruments":
        """Every other instrument."""
        return Instruments(self.symbols[number::2], self.prices[number::2], self.rejecting[number::2])


def instruments(*, rejecting: bool) -> Instruments:
    """The 335 instruments whose spread is fine, and with `rejecting` the 15 others as well."""
    files = [
        ("nonrejected_instruments.csv", False),
        *([("rejected_instruments.csv", True)] if rejecting else []),
    ]
    symbols, prices, marks = [], [], []
    for name, mark in files:
        with (DATA / name).open() as file:
            for row in csv.DictReader(file):
                symbols.append(row["_ticker"].rjust(4).encode())
                prices.append(float(row["_price"]))
                marks.append(mark)
    return Instruments(np.array(symbols, "S4"), np.array(prices), np.array(marks))


def more_instruments(symbols: int) -> Instruments:
    """So many, from 350 on: of 350 each 15 are rejecting, which come last."""
    if not SYMBOLS <= symbols <= SYMBOLS_MAX:
        raise ValueError(f"{symbols} symbols: expected {SYMBOLS} to {SYMBOLS_MAX}")
    usual, numbers = instruments(rejecting=True), np.arange(symbols)
    pick = numbers % SYMBOLS
    made = np.array([f"{number:04}".encode() for number in range(SYMBOLS, symbols)], "S4")
    order = np.argsort(usual.rejecting[pick], kind="stable")
    return Instruments(
        np.concatenate([usual.symbols, made])[order], usual.prices[pick][order], usual.rejecting[pick][order]
    )


def further_quotes(symbols: int) -> Round:
    """A quote of each symbol that the initial quotes lack; of 350, none."""
    of = more_instruments(symbols)
    is_further = np.char.isdigit(of.symbols)
    prices, rejecting = of.prices[is_further], of.rejecting[is_further]
    random, times = np.random.default_rng(0), _times()
    quotes = {
        "symbol": of.symbols[is_further],
        "time": times[: len(prices)],
        "bid": prices,
        "offer": prices + np.where(rejecting, 0.08, 0.01),
    }
    return Round(quotes, _orders(of, 0, random, times, first_id=0))


def rounds(
    messages: int,
    *,
    seed: int,
    rejecting: bool = True,
    round_messages: int = 131_072,
    symbols: int = SYMBOLS,
) -> Iterator[Round]:
    """`messages` messages, half quotes and half orders, in rounds.

    `symbols`: how many there are, where some are rejecting.
    With `rejecting`, 15 of the 350 symbols keep a spread that rejects (about 1 order in 100 is rejected); without,
    only cheap ones ever do: about 1 order in 70,000.
    """
    random = np.random.default_rng(seed)
    everything = more_instruments(symbols) if rejecting else instruments(rejecting=False)
    times = _times()
    left, number, ordered = messages, 0, 0
    while left > 0:
        size = min(left, round_messages)
        quotes = _quotes(everything.half(number % 2), size // 2, random, times)
        orders = _orders(everything.half(1 - number % 2), size - size // 2, random, times, first_id=ordered)
        yield Round(quotes, orders)
        ordered += size - size // 2
        left -= size
        number += 1


def _quotes(of: Instruments, count: int, random: np.random.Generator, times: np.ndarray[Any, Any]) -> Columns:
    pick = random.integers(0, len(of.symbols), count)
    bid = of.prices[pick] + random.random(count)
    narrow = random.choice([0.0, 0.01, 0.02, 0.03], count)
    wide = 0.05 + 0.03 * random.random(count)
    return {
        "symbol": of.symbols[pick],
        "time": times[np.arange(count) % _MILLISECONDS],
        "bid": bid,
        "offer": bid + np.where(of.rejecting[pick], wide, narrow),
    }


def _orders(
    of: Instruments, count: int, random: np.random.Generator, times: np.ndarray[Any, Any], *, first_id: int
) -> Columns:
    hot = max(1, int(HOT_SYMBOLS * len(of.symbols)))
    pick = np.where(
        random.random(count) < HOT_ORDERS,
        random.integers(0, hot, count),
        random.integers(hot, len(of.symbols), count),
    )
    return {
        "side": random.integers(1, 3, count).astype("u1"),
        "account": random.integers(1, 301, count).astype("u4"),
        "order_id": _order_ids(np.arange(first_id, first_id + count)),
        "symbol": of.symbols[pick],
        "quantity": 10.0 * random.integers(1, 66, count),
        "price": of.prices[pick] + random.random(count),
        "time": times[np.arange(count) % _MILLISECONDS],
    }


def _order_ids(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Six digits a number; they start again after a million orders."""
    digits = (numbers[:, None] // 10 ** np.arange(5, -1, -1)) % 10 + ord("0")
    return np.ascontiguousarray(digits.astype("u1")).view("S6").reshape(-1)


def _times() -> np.ndarray[Any, Any]:
    """A minute of times, one a millisecond."""
    return np.array(
        [
            f"20160902-15:48:{number // 1000:02}.{number % 1000:03}".encode()
            for number in range(_MILLISECONDS)
        ],
        "S21",
    )
