"""Nexmark 8: who came to the site and opened an auction within the same 10 s."""

from dataclasses import dataclass
from datetime import timedelta

import bettong
from model import Person, auctions, persons

SIZE = timedelta(seconds=10)


@dataclass(slots=True)
class Opened:
    """How many auctions a person opened in 10 s. `key`: the person."""

    key: int
    start: int
    auctions: int


@dataclass(slots=True)
class NewSeller:
    """Somebody who sells at once; the 10 s begin at `start`."""

    person: int
    name: str
    start: int


def new_seller(person: Person, opened: Opened) -> NewSeller:
    """Of a person, and the auctions of the same 10 s."""
    return NewSeller(person.id, person.name, opened.start)


app = bettong.Application("nexmark-q8")
# A person with three auctions is one new seller, not three: so they are counted first.
opened = auctions(app, key="seller").window(
    bettong.tumbling(SIZE), bettong.aggregate(Opened, auctions=bettong.Count())
)
persons(app).join_window(opened, bettong.tumbling(SIZE), new_seller).sink("new-sellers")
