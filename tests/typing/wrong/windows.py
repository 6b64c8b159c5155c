"""Aggregations of other messages, and results that are taken for something else."""

from dataclasses import dataclass
from datetime import timedelta

from bettong import Application, Count, Window, aggregate, tumbling
from tests.typing.messages import Alert, Quote, Trade

app = Application("wrong")
MINUTE = timedelta(minutes=1)


@dataclass
class Minute:
    key: str
    trades: int


class OfQuotes:
    """By the user."""

    def initial(self) -> int:
        return 0

    def update(self, accumulator: int, quote: Quote) -> int:
        return accumulator + 1

    def combine(self, left: int, right: int) -> int:
        return left + right

    def output(self, key: str, accumulator: int, window: Window) -> Minute:
        return Minute(key, accumulator)


def alert(quote: Quote) -> Alert:
    return Alert(quote.symbol, "late")


trades = app.source("trades", schema=Trade, key="symbol", event_time="at")
trades.window(tumbling(MINUTE), OfQuotes())  # expect: arg-type
minutes = trades.window(tumbling(MINUTE), aggregate(Minute, trades=Count()), late="side")
minutes.map(alert)  # expect: arg-type
minutes.late.map(alert)  # expect: arg-type
trades.window(MINUTE, aggregate(Minute, trades=Count()), name="no-kind")  # expect: arg-type
trades.window(tumbling(MINUTE), aggregate(Minute, trades=Count()), late="never", name="x")  # expect: arg-type
trades.local("symbol").window(tumbling(MINUTE), OfQuotes())  # expect: arg-type
local = trades.local("symbol").window(tumbling(MINUTE), aggregate(Minute, trades=Count()), name="local")
local.map(alert)  # expect: arg-type
trades.local("symbol").map(alert)  # expect: attr-defined
