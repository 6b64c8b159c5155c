"""Nexmark 12: how many bids a person makes in each 10 s of the log's clock: when they came, not when they were made.

A source that is told nothing of event time has that of the log. So nothing is late, and a client that is quiet need not
be waited for.
"""

from dataclasses import dataclass
from datetime import timedelta

import bettong
from model import Bid

SIZE = timedelta(seconds=10)


@dataclass(slots=True)
class BidderCount:
    """`key`: the bidder."""

    key: int
    start: int
    end: int
    bids: int


app = bettong.Application("nexmark-q12")
came = app.source("bids", schema=Bid, key="bidder", idle_timeout=timedelta(seconds=1))
came.window(
    bettong.tumbling(SIZE), bettong.compiled(bettong.aggregate(BidderCount, bids=bettong.Count()))
).sink("bidder-counts")
