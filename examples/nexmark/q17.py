"""Nexmark 17: of each auction and day, how many bids there were, in all and by price; the least, the greatest, the mean
and the sum of their prices.
"""

from dataclasses import dataclass
from datetime import timedelta

import bettong
from model import Bid, bids
from ranks import rank_of


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


def is_low(bid: Bid) -> int:
    """1 if it is."""
    return int(rank_of(bid.price) == 0)


def is_middle(bid: Bid) -> int:
    """1 if it is."""
    return int(rank_of(bid.price) == 1)


def is_high(bid: Bid) -> int:
    """1 if it is."""
    return int(rank_of(bid.price) == 2)


day = bettong.aggregate(
    AuctionDay,
    bids=bettong.Count(),
    low_bids=bettong.Sum(is_low),
    middle_bids=bettong.Sum(is_middle),
    high_bids=bettong.Sum(is_high),
    min_price=bettong.Min("price"),
    max_price=bettong.Max("price"),
    mean_price=bettong.Mean("price"),
    sum_price=bettong.Sum("price"),
)
app = bettong.Application("nexmark-q17")
bids(app).window(bettong.tumbling(timedelta(days=1)), day).sink("auction-days")
