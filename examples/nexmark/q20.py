"""Nexmark 20: bids with their auction, where that is in category 10.

Bids wait for their auction, so that it makes no difference which of the two comes first; `join_latest` would not wait.
"""

from dataclasses import dataclass, field

import bettong
from model import Auction, Bid, auctions, bids

CATEGORY = 10


@dataclass(slots=True)
class AuctionBid:
    """A bid, and what it is for."""

    auction: int
    bidder: int
    price: int
    channel: str
    at: int
    item: str
    seller: int
    category: int
    expires: int


@dataclass(slots=True)
class Bidding:
    """Of an auction: what it is, and the bids that came before we knew."""

    auction: Auction | None = None
    waiting: list[Bid] = field(default_factory=list)


def on_auction(auction: Auction, bidding: Bidding) -> list[AuctionBid]:
    """Gives the bids that have waited."""
    bidding.auction = auction
    found = [auction_bid(bid, auction) for bid in bidding.waiting if auction.category == CATEGORY]
    bidding.waiting.clear()
    return found


def on_bid(bid: Bid, bidding: Bidding) -> list[AuctionBid]:
    """Gives the bid, or lets it wait for its auction."""
    if bidding.auction is None:
        bidding.waiting.append(bid)
        return []
    return [auction_bid(bid, bidding.auction)] if bidding.auction.category == CATEGORY else []


def auction_bid(bid: Bid, auction: Auction) -> AuctionBid:
    """The row of a bid and its auction."""
    return AuctionBid(
        *(bid.auction, bid.bidder, bid.price, bid.channel, bid.at),
        *(auction.item, auction.seller, auction.category, auction.expires),
    )


app = bettong.Application("nexmark-q20")
opened, made = auctions(app), bids(app)
opened.merge(made).stateful({opened: on_auction, made: on_bid}, state=Bidding, name="with-auction").sink(
    "auction-bids"
)
