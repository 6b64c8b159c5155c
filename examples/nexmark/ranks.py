"""Bids by how high they are: how many there were, by how many persons, for how many auctions. For queries 15 and 16."""

from dataclasses import dataclass, field

from model import Bid

RANKS = 3


def rank_of(price: int) -> int:
    """0: below 10,000; 1: below 1,000,000; 2: higher."""
    return 0 if price < 10_000 else 1 if price < 1_000_000 else 2


def numbers() -> list[set[int]]:
    """A set for each rank."""
    return [set() for _ in range(RANKS)]


@dataclass(slots=True)
class Ranks:
    """By rank: how many bids, and whose, and for which auctions."""

    bids: list[int] = field(default_factory=lambda: [0] * RANKS)
    bidders: list[set[int]] = field(default_factory=numbers)
    auctions: list[set[int]] = field(default_factory=numbers)

    def add(self, bid: Bid) -> None:
        """One bid more."""
        rank = rank_of(bid.price)
        self.bids[rank] += 1
        self.bidders[rank].add(bid.bidder)
        self.auctions[rank].add(bid.auction)

    def both(self, other: "Ranks") -> "Ranks":
        """The bids of both; changes neither."""
        return Ranks(
            [one + two for one, two in zip(self.bids, other.bids, strict=True)],
            [one | two for one, two in zip(self.bidders, other.bidders, strict=True)],
            [one | two for one, two in zip(self.auctions, other.auctions, strict=True)],
        )

    def counts(self) -> list[int]:
        """Bids, bidders, auctions; of each, first how many in all, then by rank."""
        found = [sum(self.bids), *self.bids]
        for each in (self.bidders, self.auctions):
            found += [len(set().union(*each)), *map(len, each)]
        return found
