"""Nexmark 22: bids with the first three folders of their url."""

from dataclasses import dataclass

import bettong
from model import Bid, bids


@dataclass(slots=True)
class FolderBid:
    """A bid, and where it was made."""

    auction: int
    bidder: int
    price: int
    channel: str
    folder_1: str
    folder_2: str
    folder_3: str


def folder_bid(bid: Bid) -> FolderBid:
    """The url's parts behind `https://host/`."""
    parts = bid.url.split("/")
    return FolderBid(bid.auction, bid.bidder, bid.price, bid.channel, parts[3], parts[4], parts[5])


app = bettong.Application("nexmark-q22")
bids(app).map(folder_bid).sink("folder-bids")
