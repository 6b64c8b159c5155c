"""Nexmark 11: how many bids a person makes in a session, which 10 s without a bid end."""

from dataclasses import dataclass
from datetime import timedelta

import bettong
from model import bids

GAP = timedelta(seconds=10)


@dataclass(slots=True)
class BiddingSession:
    """`key`: the bidder. `end`: just behind the gap that follows the last bid."""

    key: int
    start: int
    end: int
    bids: int


app = bettong.Application("nexmark-q11")
bids(app, key="bidder").window(
    bettong.sessions(GAP), bettong.aggregate(BiddingSession, bids=bettong.Count())
).sink("bidding-sessions")
