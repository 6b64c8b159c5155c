"""Queries 16 and 17, windows of a day, for peers that call Python: what is kept of a day's bids, and the row of it."""

from datetime import timedelta
from typing import Any

Row = dict[str, Any]

DAY = timedelta(days=1)
DAY_NS = 86400 * 10**9
LOW, HIGH = 10_000, 1_000_000
# Of bids: how many in all, low, middle and high ones; the least, greatest and summed price.
Prices = list[int]
# In all, low, middle, high.
_RANGES = 4


def price_range(price: int) -> int:
    """1: low, 2: middle, 3: high."""
    return 1 + (price >= LOW) + (price >= HIGH)


def first_price(bid: Row) -> Prices:
    """Query 17, of a day's first bid for an auction."""
    price = bid["price"]
    return with_price([0, 0, 0, 0, price, price, 0], bid)


def with_price(prices: Prices, bid: Row) -> Prices:
    """Query 17, with one bid more."""
    *counts, least, greatest, total = prices
    price = bid["price"]
    counts[0] += 1
    counts[price_range(price)] += 1
    return [*counts, min(least, price), max(greatest, price), total + price]


def auction_day(auction: int, start_ns: int, prices: Prices) -> Row:
    """Query 17."""
    bids, low, middle, high, least, greatest, total = prices
    return {
        "key": auction,
        "start": start_ns,
        "bids": bids,
        "low_bids": low,
        "middle_bids": middle,
        "high_bids": high,
        "min_price": least,
        "max_price": greatest,
        "mean_price": total / bids,
        "sum_price": total,
    }


class DistinctBids:
    """Query 16: of a channel's day. Bids are counted; who made them, and for what, is kept."""

    def __init__(self) -> None:
        self.bids = [0] * _RANGES
        self.bidders: list[set[int]] = [set() for _ in range(_RANGES)]
        self.auctions: list[set[int]] = [set() for _ in range(_RANGES)]

    def add(self, bid: Row) -> "DistinctBids":
        """With one bid more; itself."""
        for number in (0, price_range(bid["price"])):
            self.bids[number] += 1
            self.bidders[number].add(bid["bidder"])
            self.auctions[number].add(bid["auction"])
        return self

    def row(self, channel: str, start_ns: int) -> Row:
        """The result."""
        names = [
            f"{of}{what}"
            for what in ("bids", "bidders", "auctions")
            for of in ("", "low_", "middle_", "high_")
        ]
        counts = [*self.bids, *map(len, self.bidders), *map(len, self.auctions)]
        return {"key": channel, "start": start_ns, **dict(zip(names, counts, strict=True))}
