"""A window takes what its aggregation takes, and gives what that gives; late messages are as they came."""

from dataclasses import dataclass
from datetime import timedelta
from typing import assert_type

from bettong import Application, Count, Max, Stream, Window, aggregate, tumbling
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
