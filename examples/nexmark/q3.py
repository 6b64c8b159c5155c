"""Nexmark 3: who sells in Oregon, Idaho or California, with each of their auctions in category 10.

Both sides wait for the other one, whichever comes first, so it is no join of Bettong's: these end. It is one state
that two streams share.
"""

from dataclasses import dataclass, field

import bettong
from model import Auction, Person, auctions, persons

STATES = ("OR", "ID", "CA")
CATEGORY = 10


@dataclass(slots=True)
class LocalItem:
    """A seller, and what he sells."""

    name: str
    city: str
    state: str
    auction: int


@dataclass(slots=True)
class Seller:
    """Of a person: who it is, and the auctions that came before we knew."""

    person: Person | None = None
    waiting: list[int] = field(default_factory=list)


def on_person(person: Person, seller: Seller) -> list[LocalItem]:
    """Gives the auctions that have waited."""
    seller.person = person
    found = [local_item(person, auction) for auction in seller.waiting]
    seller.waiting.clear()
    return found


def on_auction(auction: Auction, seller: Seller) -> list[LocalItem]:
    """Gives the auction, or lets it wait for its seller."""
    if seller.person is None:
        seller.waiting.append(auction.id)
        return []
    return [local_item(seller.person, auction.id)]


def local_item(person: Person, auction: int) -> LocalItem:
    """The row of a seller and an auction."""
    return LocalItem(person.name, person.city, person.state, auction)


app = bettong.Application("nexmark-q3")
sellers = persons(app).filter(lambda person: person.state in STATES, name="local")
items = auctions(app, key="seller").filter(lambda auction: auction.category == CATEGORY, name="category-10")
sellers.merge(items).stateful({sellers: on_person, items: on_auction}, state=Seller, name="sellers").sink(
    "local-items"
)
