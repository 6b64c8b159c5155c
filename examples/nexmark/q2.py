"""Nexmark 2: the bids for every 123rd auction. Compiled."""

from dataclasses import dataclass

import bettong
from model import Bid, bids


@dataclass(slots=True)
class Price:
    """What was bid for an auction."""

    auction: int
    price: int


@bettong.compiled
def is_chosen(bid: Bid) -> bool:
    """Whether the auction is one of the few."""
    return bid.auction % 123 == 0


@bettong.compiled
def price(bid: Bid) -> Price:
    """What is left of a bid."""
    return Price(bid.auction, bid.price)


app = bettong.Application("nexmark-q2")
bids(app).filter(is_chosen).map(price).sink("prices")
