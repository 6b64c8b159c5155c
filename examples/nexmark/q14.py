"""Nexmark 14: bids of middling price, with the time of day in words, and how often a letter is in their text."""

from dataclasses import dataclass

import bettong
from model import Bid, bids

EUROS_PER_DOLLAR = 0.908
HOUR_NS = 3600 * 10**9


@dataclass(slots=True)
class TimedBid:
    """`price`: euro cents; `time_of_day`: dayTime, nightTime or otherTime; `cs`: how often `c` is in its text."""

    auction: int
    bidder: int
    price: float
    time_of_day: str
    at: int
    extra: str
    cs: int


@bettong.compiled
def is_middling(bid: Bid) -> bool:
    """Whether the price is neither low nor high."""
    return 1_000_000 < EUROS_PER_DOLLAR * bid.price < 50_000_000


def timed(bid: Bid) -> TimedBid:
    """With the time of day."""
    price = EUROS_PER_DOLLAR * bid.price
    return TimedBid(
        bid.auction, bid.bidder, price, time_of_day(bid.at), bid.at, bid.extra, bid.extra.count("c")
    )


def time_of_day(at: int) -> str:
    """In words."""
    hour = at // HOUR_NS % 24
    if 8 <= hour <= 18:
        return "dayTime"
    return "nightTime" if hour <= 6 or hour >= 20 else "otherTime"


app = bettong.Application("nexmark-q14")
bids(app).filter(is_middling).map(timed).sink("timed-bids")
