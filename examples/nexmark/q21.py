"""Nexmark 21: bids with the number of their channel: a known one, or what their url says. Others are left out."""

import re
from dataclasses import dataclass

import bettong
from model import Bid, bids

KNOWN = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
CHANNEL_ID = re.compile(r"(?:&|^)channel_id=([^&]*)")


@dataclass(slots=True)
class ChannelBid:
    """A bid, and the number of its channel."""

    auction: int
    bidder: int
    price: int
    channel: str
    channel_id: str


def channel_bid(bid: Bid) -> list[ChannelBid]:
    """The bid, if its channel has a number."""
    channel_id = KNOWN.get(bid.channel.lower())
    if channel_id is None:
        found = CHANNEL_ID.search(bid.url)
        if found is None:
            return []
        channel_id = found[1]
    return [ChannelBid(bid.auction, bid.bidder, bid.price, bid.channel, channel_id)]


app = bettong.Application("nexmark-q21")
bids(app).flat_map(channel_bid).sink("channel-bids")
