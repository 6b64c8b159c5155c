"""Nexmark 15: of each day, how many bids there were, of how many bidders, for how many auctions: in all, and by price.

Different bidders of a day are counted in one place, so the day is the key, and one core does the work.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import bettong
from model import Bid, bids
from ranks import Ranks

DAY = timedelta(days=1)


@dataclass(slots=True)
class Day:
    """In all; then of bids below 10,000, below 1,000,000, and higher ones."""

    day: date
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


class Days:
    """A day: the ranks of its bids."""

    def initial(self) -> Ranks:
        """No bids."""
        return Ranks()

    def update(self, ranks: Ranks, bid: Bid) -> Ranks:
        """One bid more."""
        ranks.add(bid)
        return ranks

    def combine(self, left: Ranks, right: Ranks) -> Ranks:
        """Those of both."""
        return left.both(right)

    def output(self, key: int, ranks: Ranks, window: bettong.Window) -> Day:  # noqa: ARG002
        """How many there were."""
        return Day(datetime.fromtimestamp(window.start // 10**9, UTC).date(), *ranks.counts())


app = bettong.Application("nexmark-q15")
bids(app, key=lambda bid: bid.at // bettong.seconds(DAY.total_seconds())).window(
    bettong.tumbling(DAY), Days()
).sink("days")
