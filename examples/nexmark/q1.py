"""Nexmark 1: bids with their prices in euros. Compiled."""

from dataclasses import dataclass

import bettong
from model import Bid, bids

EUROS_PER_DOLLAR = 0.908


@dataclass(slots=True)
class EuroBid:
    """A bid; `price`: euro cents."""

    auction: int
    bidder: int
    price: float
    at: int


@bettong.compiled
def in_euros(bid: Bid) -> EuroBid:
    """The same bid in another currency."""
    return EuroBid(bid.auction, bid.bidder, EUROS_PER_DOLLAR * bid.price, bid.at)


app = bettong.Application("nexmark-q1")
bids(app).map(in_euros).sink("euro-bids")
