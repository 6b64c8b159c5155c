"""Nexmark 10: bids in files, in a folder for each day, and in it one for each minute.

The connection `bids-by-minute` names the folder that holds them: see docs/nexmark.md.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

import bettong
from model import Bid, bids

S = 10**9


@dataclass(slots=True)
class LoggedBid:
    """A bid, with the day (2015-07-15) and the minute (00:01, UTC) in which it was made."""

    auction: int
    bidder: int
    price: int
    at: int
    extra: str
    day: str
    minute: str


def logged(bid: Bid) -> LoggedBid:
    """With day and minute."""
    at = datetime.fromtimestamp(bid.at // S, UTC)
    day, minute = at.strftime("%Y-%m-%d"), at.strftime("%H:%M")
    return LoggedBid(bid.auction, bid.bidder, bid.price, bid.at, bid.extra, day, minute)


app = bettong.Application("nexmark-q10")
bids(app).map(logged).sink("bids-by-minute", to=bettong.PartitionedFiles(by=("day", "minute")))
