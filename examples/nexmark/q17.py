"""Nexmark 17: of each auction and day, how many bids there were, in all and by price; the least, the greatest, the mean
and the sum of their prices.
"""

from dataclasses import dataclass
from datetime import timedelta

import bettong
from model import bids
from ranks import COUNTS


@dataclass(slots=True)
class AuctionDay:
    """`key`: the auction; `start`: of the day. Low: below 10,000; middle: below 1,000,000; high: the others."""

    key: int
    start: int
    bids: int
    low_bids: int
    middle_bids: int
    high_bids: int
    min_price: int
    max_price: int
    mean_price: float
    sum_price: int


day = bettong.aggregate(
    AuctionDay,
    **COUNTS,
    min_price=bettong.Min("price"),
    max_price=bettong.Max("price"),
    mean_price=bettong.Mean("price"),
    sum_price=bettong.Sum("price"),
)
app = bettong.Application("nexmark-q17")
bids(app).window(bettong.tumbling(timedelta(days=1)), day).sink("auction-days")
