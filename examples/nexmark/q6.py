"""Nexmark 6: for how much a seller's last ten auctions were sold on average.

Auctions of a seller are in many partitions, and which of two is read first behind `key_by` nobody promises. So they
wait until event time is past their end, and count in the order in which they were over: any number of partitions gives
the same averages.
"""

from bisect import insort
from dataclasses import dataclass, field

import bettong
from winning import WinningBid, winning_bids

AUCTIONS = 10


@dataclass(slots=True)
class SellerAverage:
    """Of the winning prices of a seller's last auctions, cents."""

    seller: int
    price: float


@dataclass(slots=True)
class Sales:
    """Of a seller: the prices of the last sales, and those to come: when the auction was over, which, its price."""

    due_at: bettong.Timer = bettong.NEVER
    last: list[int] = field(default_factory=list)
    waiting: list[tuple[int, int, int]] = field(default_factory=list)


def on_sale(winning: WinningBid, sales: Sales) -> None:
    """Waits for those that were over before it."""
    insort(sales.waiting, (winning.closed, winning.auction, winning.price))
    sales.due_at = sales.waiting[0][0] + 1


def on_due(fired: bettong.Fired[int], sales: Sales) -> list[SellerAverage]:
    """The sales that have the same end, one after the other; then it is the next ones' turn."""
    found = []
    while sales.waiting and sales.waiting[0][0] < fired.at:
        sales.last = [*sales.last, sales.waiting.pop(0)[2]][-AUCTIONS:]
        found.append(SellerAverage(fired.key, sum(sales.last) / len(sales.last)))
    if sales.waiting:
        sales.due_at = sales.waiting[0][0] + 1
    return found


app = bettong.Application("nexmark-q6")
(
    winning_bids(app)
    .key_by("seller")
    .stateful(on_sale, state=Sales, name="sales", timers={"due_at": on_due})
    .sink("seller-averages")
)
