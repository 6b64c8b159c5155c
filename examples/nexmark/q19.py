"""Nexmark 19: the ten highest bids of each auction. What gets another rank comes out; the last of each rank counts."""

from bisect import bisect_right
from dataclasses import dataclass, field

import bettong
from model import Bid, bids

TOP = 10


@dataclass(slots=True)
class RankedBid:
    """A bid, and its rank among those for its auction; 1: the highest."""

    auction: int
    bidder: int
    price: int
    at: int
    rank: int


@dataclass(slots=True)
class TopTen:
    """The highest bids of an auction, in order: minus the price, when it was made, by whom."""

    bids: list[tuple[int, int, int]] = field(default_factory=list)


def ranked(bid: Bid, top: TopTen) -> list[RankedBid]:
    """The bid, and those that it has moved down. Of equal prices, the earlier bid is ahead."""
    entry = (-bid.price, bid.at, bid.bidder)
    place = bisect_right(top.bids, entry)
    top.bids.insert(place, entry)
    del top.bids[TOP:]
    return [
        RankedBid(bid.auction, bidder, -price, at, rank)
        for rank, (price, at, bidder) in enumerate(top.bids[place:], place + 1)
    ]


app = bettong.Application("nexmark-q19")
bids(app).stateful(ranked, state=TopTen).sink("top-bids")
