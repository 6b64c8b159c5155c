"""A window takes what its aggregation takes, and gives what that gives; late messages are as they came."""

from dataclasses import dataclass
from datetime import timedelta
from typing import assert_type

from bettong import (
    Application,
    ApproxDistinct,
    Count,
    Max,
    Quantile,
    Stream,
    Top,
    Window,
    aggregate,
    tumbling,
)
from tests.typing.messages import Trade

app = Application("windows")
MINUTE = timedelta(minutes=1)


@dataclass
class Minute:
    key: str
    start: int
    trades: int
    high: float


class Highest:
    """By the user."""

    def initial(self) -> float:
        return 0.0

    def update(self, accumulator: float, trade: Trade) -> float:
        return max(accumulator, trade.price)

    def combine(self, left: float, right: float) -> float:
        return max(left, right)

    def output(self, key: str, accumulator: float, window: Window) -> Minute | None:
        return Minute(key, window.start, 0, accumulator) if accumulator else None


trades = app.source("trades", schema=Trade, key="symbol", event_time="at")
minutes = trades.window(tumbling(MINUTE), aggregate(Minute, trades=Count(), high=Max("price")), late="side")
assert_type(minutes.late, Stream[Trade])
minutes.sink("minutes", encoder=lambda minute: minute.key.encode())
minutes.late.sink("late")
highest = trades.window(tumbling(MINUTE), Highest())
highest.filter(lambda minute: minute.high > 1, name="high").sink("highest")


@dataclass
class Prices:
    key: str
    symbols: int
    dear: int
    highest_dear: float | None
    best: list[float]
    median: float


prices = aggregate(
    Prices,
    symbols=ApproxDistinct("symbol"),
    dear=Count(where=lambda trade: trade.price > 100),
    highest_dear=Max("price", where=lambda trade: trade.price > 100),
    best=Top(3, "price", by=lambda trade: trade.price, smallest=True),
    median=Quantile("price", 0.5),
)
dear = trades.window(tumbling(MINUTE), prices, name="prices").filter(lambda each: each.dear > 0, name="dear")
assert_type(dear, Stream[Prices])
dear.sink("dear-minutes")

local = trades.local("symbol").window(tumbling(MINUTE), prices, name="local", version=2)
assert_type(local, Stream[Prices])
local.sink("local-minutes")
