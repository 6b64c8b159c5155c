"""The winning bid of each auction: the highest one that was made while the auction was open. For queries 4, 6 and 9.

How long to wait for bids is said by each auction itself, so it is no join of Bettong's: a timer fires when event time
is past the auction's end, and all bids that count are there.
"""

from dataclasses import dataclass, field

import bettong
from model import Auction, Bid, auctions, bids


@dataclass(slots=True)
class WinningBid:
    """Who gets it, and for how much. `at`: of the bid; `closed`: when the auction was over."""

    auction: int
    seller: int
    category: int
    bidder: int
    price: int
    at: int
    closed: int


@dataclass(slots=True)
class Offer:
    """What is kept of a bid."""

    bidder: int
    price: int
    at: int


@dataclass(slots=True)
class Bidding:
    """Of an auction until it is over. `early`: bids that came before we knew how long it is open."""

    due_at: bettong.Timer = bettong.NEVER
    auction: Auction | None = None
    best: Offer | None = None
    early: list[Offer] = field(default_factory=list)


def on_auction(auction: Auction, bidding: Bidding) -> None:
    """It is open from now on; bids that have waited may count."""
    bidding.auction = auction
    bidding.due_at = auction.expires + 1  # a bid at its very end counts
    for offer in bidding.early:
        consider(offer, auction, bidding)
    bidding.early.clear()


def on_bid(bid: Bid, bidding: Bidding) -> None:
    """Keeps it if it is the best one, or as long as its auction may still come."""
    offer = Offer(bid.bidder, bid.price, bid.at)
    if bidding.auction is not None:
        consider(offer, bidding.auction, bidding)
        return
    bidding.early.append(offer)
    # An auction that opens later than this has nothing to do with it.
    due_at = bid.at + 1
    bidding.due_at = due_at if bidding.due_at == bettong.NEVER else max(bidding.due_at, due_at)


def consider(offer: Offer, auction: Auction, bidding: Bidding) -> None:
    """The higher one wins, then the earlier one; then the bidder's number decides, so that one does."""
    if not auction.at <= offer.at <= auction.expires:
        return  # timers fire behind a frame: what follows in it may be too late for the auction
    best = bidding.best
    if best is None or (-offer.price, offer.at, offer.bidder) < (-best.price, best.at, best.bidder):
        bidding.best = offer


def on_due(fired: bettong.Fired[int], bidding: Bidding) -> WinningBid | None:
    """The auction is over, or there is none that the bids could be for."""
    auction, best = bidding.auction, bidding.best
    if auction is None or best is None:
        return None
    return WinningBid(
        auction.id, auction.seller, auction.category, best.bidder, best.price, best.at, closed=fired.at
    )


def winning_bids(app: bettong.Application) -> bettong.Stream[WinningBid]:
    """The winning bids of all auctions, each when its auction is over."""
    opened, made = auctions(app), bids(app)
    return opened.merge(made).stateful(
        {opened: on_auction, made: on_bid},
        state=Bidding,
        name="bidding",
        timers={"due_at": on_due},
        delete_when=lambda bidding: bidding.due_at == bettong.NEVER,
    )
