"""Nexmark 16: as query 15, of each channel and day."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import bettong
from model import Bid, bids
from ranks import Ranks


@dataclass(slots=True)
class ChannelDay:
    """In all; then of bids below 10,000, below 1,000,000, and higher ones."""

    channel: str
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


class ChannelDays:
    """A day of a channel: the ranks of its bids."""

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

    def output(self, channel: str, ranks: Ranks, window: bettong.Window) -> ChannelDay:
        """How many there were."""
        day = datetime.fromtimestamp(window.start // 10**9, UTC).date()
        return ChannelDay(channel, day, *ranks.counts())


app = bettong.Application("nexmark-q16")
bids(app, key="channel").window(bettong.tumbling(timedelta(days=1)), ChannelDays()).sink("channel-days")
