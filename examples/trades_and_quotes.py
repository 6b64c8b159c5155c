"""What each trade cost beside the market: every trade with the quote that was valid when it happened.

Quotes and trades come from two places, and neither waits for the other; the times in them say what belongs together.
Run it: `bettong up examples/trades_and_quotes.py`, then `bettong send quotes quotes.jsonl trades trades.jsonl`, with
lines like `{"symbol": "ACME", "bid": 99.5, "ask": 100.5, "at": 1700000000000000000}` (Unix ns) and
`{"symbol": "ACME", "price": 100.25, "size": 10, "at": 1700000000250000000}`. A source that begins when the other has
ended is late: nobody waits for what has not begun.
"""

from dataclasses import dataclass
from datetime import timedelta

import bettong


@dataclass
class Quote:
    """For how much a symbol could be sold and bought, from `at` (Unix ns) until the next quote."""

    symbol: str
    bid: float
    ask: float
    at: int


@dataclass
class Trade:
    """What was paid for a symbol at `at` (Unix ns)."""

    symbol: str
    price: float
    size: int
    at: int


@dataclass
class Cost:
    """How far a trade's price was from the middle of the quote, which was `age_ms` old; -1: there was none."""

    symbol: str
    price: float
    off_middle: float
    age_ms: int


def cost(trade: Trade, quote: Quote | None) -> Cost:
    """Of a trade, and the quote that was valid then, if there was one within the last second."""
    if quote is None:
        return Cost(trade.symbol, trade.price, 0.0, -1)
    middle = (quote.bid + quote.ask) / 2
    return Cost(trade.symbol, trade.price, trade.price - middle, (trade.at - quote.at) // 1_000_000)


app = bettong.Application("trades-and-quotes")
LATE_BY = timedelta(milliseconds=200)
quotes = app.source("quotes", schema=Quote, key="symbol", event_time="at", out_of_order=LATE_BY)
trades = app.source("trades", schema=Trade, key="symbol", event_time="at", out_of_order=LATE_BY)
trades.join_as_of(quotes, cost, tolerance=timedelta(seconds=1), how="left").sink("costs")
