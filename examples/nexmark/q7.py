"""Nexmark 7: the highest bid of each 10 s, or the highest ones.

First of each auction, in as many partitions as there are; then, behind `key_by("start")`, of all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

import bettong
from model import Bid, bids

SIZE = timedelta(seconds=10)


@dataclass(slots=True)
class TopBid:
    """A bid that no other one of its 10 s exceeds; these begin at `start`."""

    start: int
    auction: int
    price: int
    bidder: int
    at: int


@dataclass(slots=True)
class Highest:
    """Bids of one price."""

    bids: list[TopBid] = field(default_factory=list)


Offered: TypeAlias = Bid | TopBid


class HighestBids:
    """Of the bids of a window, those with the highest price."""

    def initial(self) -> Highest:
        """None yet."""
        return Highest()

    def update(self, highest: Highest, bid: Offered) -> Highest:
        """With one bid more."""
        if highest.bids and bid.price < highest.bids[0].price:
            return highest
        return self.combine(highest, Highest([TopBid(0, bid.auction, bid.price, bid.bidder, bid.at)]))

    def combine(self, left: Highest, right: Highest) -> Highest:
        """Those of both, or of the one that is higher."""
        bids: Sequence[TopBid] = left.bids + right.bids
        price = max(bid.price for bid in bids)
        return Highest([bid for bid in bids if bid.price == price])

    def output(self, key: int, highest: Highest, window: bettong.Window) -> Highest:  # noqa: ARG002
        """All that have the price."""
        start = window.start
        return Highest([TopBid(start, bid.auction, bid.price, bid.bidder, bid.at) for bid in highest.bids])


def rows(highest: Highest) -> list[TopBid]:
    """A result for each bid."""
    return highest.bids


app = bettong.Application("nexmark-q7")
of_auctions = bids(app).window(bettong.tumbling(SIZE), HighestBids(), name="of-auctions").flat_map(rows)
of_all = of_auctions.key_by("start").window(bettong.tumbling(SIZE), HighestBids(), name="of-all")
of_all.flat_map(rows, name="top-bids").sink("highest-bids")
