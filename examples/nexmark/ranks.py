"""Bids by how high they are: how many there were, by how many persons, for how many auctions. For queries 15 to 17."""

from bettong import Count, Distinct
from model import Bid


def is_low(bid: Bid) -> bool:
    """Below 10,000."""
    return bid.price < 10_000


def is_middle(bid: Bid) -> bool:
    """Below 1,000,000."""
    return 10_000 <= bid.price < 1_000_000


def is_high(bid: Bid) -> bool:
    """Higher."""
    return bid.price >= 1_000_000


COUNTS = {
    "bids": Count(),
    "low_bids": Count(where=is_low),
    "middle_bids": Count(where=is_middle),
    "high_bids": Count(where=is_high),
}
DIFFERENT = {
    "bidders": Distinct("bidder"),
    "low_bidders": Distinct("bidder", where=is_low),
    "middle_bidders": Distinct("bidder", where=is_middle),
    "high_bidders": Distinct("bidder", where=is_high),
    "auctions": Distinct("auction"),
    "low_auctions": Distinct("auction", where=is_low),
    "middle_auctions": Distinct("auction", where=is_middle),
    "high_auctions": Distinct("auction", where=is_high),
}
