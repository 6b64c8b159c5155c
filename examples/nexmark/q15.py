"""Nexmark 15: of each day, how many bids there were, of how many bidders, for how many auctions: in all, and by price.

Different bidders of a day are counted in one place, so the day is the key, and one core does the work.
"""

from dataclasses import dataclass
from datetime import timedelta

import bettong
from model import bids
from ranks import COUNTS, DIFFERENT

DAY = timedelta(days=1)


@dataclass(slots=True)
class Day:
    """In all; then of bids below 10,000, below 1,000,000, and higher ones."""

    start: int
    bids: int
    low_bids: int
    middle_bids: int
    high_bids: int
    bidders: int
    low_bidders: int
    middle_bidders: int
    high_bidders: int
    auctions: int
    low_auctions: int
    middle_auctions: int
    high_auctions: int


app = bettong.Application("nexmark-q15")
bids(app, key=lambda bid: bid.at // bettong.seconds(DAY.total_seconds())).window(
    bettong.tumbling(DAY), bettong.aggregate(Day, **COUNTS, **DIFFERENT)
).sink("days")
