"""Nexmark 18: the last bid of each bidder for each auction, by the times of the bids. Compiled.

A bid comes out when it is later than all that came before; the last one of a pair is the answer.
"""

from dataclasses import dataclass

import bettong
from model import Bid, bids


@dataclass(slots=True)
class LastBid:
    """When a bidder's last bid for an auction was made."""

    at: int = -1


@bettong.compiled
def last_bid(bid: Bid, last: LastBid) -> Bid | None:
    """The bid, if it is later than the others. Of two at one time, the one that came first."""
    if bid.at <= last.at:
        return None
    last.at = bid.at
    return bid


app = bettong.Application("nexmark-q18")
bids(app, key=("bidder", "auction")).stateful(last_bid, state=LastBid).sink("last-bids")
