"""Nexmark 4: for how much auctions of a category were sold on average; the new average whenever one is sold."""

from dataclasses import dataclass

import bettong
from winning import WinningBid, winning_bids


@dataclass(slots=True)
class Average:
    """Of the winning prices of a category so far, cents."""

    category: int
    price: float


@dataclass(slots=True)
class Sold:
    """How many auctions of a category were sold, and for how much in all."""

    auctions: int = 0
    cents: int = 0


def average(winning: WinningBid, sold: Sold) -> Average:
    """With one auction more."""
    sold.auctions += 1
    sold.cents += winning.price
    return Average(winning.category, sold.cents / sold.auctions)


app = bettong.Application("nexmark-q4")
winning_bids(app).key_by("category").stateful(average, state=Sold).sink("averages")
