"""Nexmark 5: the auctions with the most bids of the last 10 s, every 2 s; all of them, where several have as many.

Bids are counted auction by auction, in as many partitions as there are. What each auction has in a window meets behind
`key_by("start")`: one key a window, in a window that is as long as the slide, for all counts come at its end.
"""

from dataclasses import dataclass, field
from datetime import timedelta

import bettong
from model import bids

SIZE, SLIDE = timedelta(seconds=10), timedelta(seconds=2)


@dataclass(slots=True)
class BidCount:
    """How many bids an auction had in a window. `key`: the auction."""

    key: int
    start: int
    end: int
    bids: int


@dataclass(slots=True)
class HotAuction:
    """An auction that had as many bids as any in this window."""

    start: int
    end: int
    auction: int
    bids: int


@dataclass(slots=True)
class Hottest:
    """The counts that no other exceeds, so far."""

    counts: list[BidCount] = field(default_factory=list)


class MostBids:
    """Of the counts of a window, the highest ones."""

    def initial(self) -> Hottest:
        """None yet."""
        return Hottest()

    def update(self, hottest: Hottest, count: BidCount) -> Hottest:
        """With the count of one auction more."""
        return self.combine(hottest, Hottest([count]))

    def combine(self, left: Hottest, right: Hottest) -> Hottest:
        """Those of both, or of the one that is higher."""
        most = max(count.bids for count in left.counts + right.counts)
        return Hottest([count for count in left.counts + right.counts if count.bids == most])

    def output(self, start: int, hottest: Hottest, window: bettong.Window) -> Hottest:  # noqa: ARG002
        """All that have the most."""
        return hottest


def rows(hottest: Hottest) -> list[HotAuction]:
    """A result for each auction."""
    return [HotAuction(count.start, count.end, count.key, count.bids) for count in hottest.counts]


app = bettong.Application("nexmark-q5")
counts = bids(app).window(
    bettong.sliding(SIZE, SLIDE), bettong.compiled(bettong.aggregate(BidCount, bids=bettong.Count()))
)
counts.key_by("start").window(bettong.tumbling(SLIDE), MostBids()).flat_map(rows).sink("hot-auctions")
