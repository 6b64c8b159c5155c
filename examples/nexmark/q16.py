"""Nexmark 16: as query 15, of each channel and day."""

from dataclasses import dataclass
from datetime import timedelta

import bettong
from model import bids
from ranks import COUNTS, DIFFERENT


@dataclass(slots=True)
class ChannelDay:
    """Of the channel `key`: in all; then of bids below 10,000, below 1,000,000, and higher ones."""

    key: str
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


channel_day = bettong.aggregate(ChannelDay, **COUNTS, **DIFFERENT)
app = bettong.Application("nexmark-q16")
bids(app, key="channel").window(bettong.tumbling(timedelta(days=1)), channel_day).sink("channel-days")
