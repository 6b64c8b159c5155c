"""Queries 4, 6, 9 and 19, for peers that call Python: what is kept of an auction, and the rows that come of it."""

from bisect import bisect_right
from typing import Any

Row = dict[str, Any]

TOP = 10
_KEPT_OF_AUCTION = ("id", "seller", "category", "at", "expires")
# Minus the price, when it was made, by whom: the best one is the least.
Offer = list[int]
# An auction, and offers for it: all until it is there, then the best one alone.
Bidding = tuple[Row | None, list[Offer]]
# How many auctions of a category were sold, and for how much in all.
Sold = tuple[int, int]


def winning_bid(arrived: Row, bidding: Bidding) -> tuple[Bidding, list[Row]]:
    """Query 9, of an auction or a bid for it.

    Bids for an auction come in order, so it is over when one comes that is too late. It is kept without an offer then.
    """
    auction, offers = arrival(arrived, bidding)
    if auction is None:
        return (None, offers), []
    best = best_offer(auction, offers)
    if not any(at > auction["expires"] for _, at, _ in offers):
        return (auction, best), []
    return (auction, []), [won(auction, each) for each in best]


def arrival(arrived: Row, bidding: Bidding) -> Bidding:
    """With an auction, or one bid more for it, whether in time or not."""
    auction, offers = bidding
    if "item" in arrived:
        return {name: arrived[name] for name in _KEPT_OF_AUCTION}, offers
    return auction, [*offers, offer(arrived)]


def best_offer(auction: Row, offers: list[Offer]) -> list[Offer]:
    """The highest one that was made while the auction was open; the earlier one of equal ones; none: nothing."""
    return sorted(each for each in offers if auction["at"] <= each[1] <= auction["expires"])[:1]


def won(auction: Row, best: Offer) -> Row:
    """A result of query 9."""
    price, at, bidder = best
    return {
        "auction": auction["id"],
        "seller": auction["seller"],
        "category": auction["category"],
        "bidder": bidder,
        "price": -price,
        "at": at,
        "closed": auction["expires"] + 1,
    }


def average(winning: Row, sold: Sold) -> tuple[Sold, Row]:
    """Query 4, of a winning bid."""
    auctions, cents = sold[0] + 1, sold[1] + winning["price"]
    return (auctions, cents), {"category": winning["category"], "price": cents / auctions}


def ranked_bids(bid: Row, top: list[Offer]) -> tuple[list[Offer], list[Row]]:
    """Query 19: the highest bids, and those whose rank is new."""
    entry = offer(bid)
    index = bisect_right(top, entry)
    top = [*top[:index], entry, *top[index:]][:TOP]
    return top, [
        {"auction": bid["auction"], "bidder": bidder, "price": -price, "at": at, "rank": rank}
        for rank, (price, at, bidder) in enumerate(top[index:], index + 1)
    ]


def offer(bid: Row) -> Offer:
    """What is kept of a bid."""
    return [-bid["price"], bid["at"], bid["bidder"]]
