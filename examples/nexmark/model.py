"""The auction site of the Nexmark benchmark: persons, auctions and bids, and the sources that bring them.

The queries beside this file are applications: `bettong up examples/nexmark/q5.py`. docs/nexmark.md says what each
computes, and how to feed it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, TypeVar

import bettong
from bettong import Width

# How much older than the newest one of its source a message may be.
OUT_OF_ORDER = timedelta(seconds=4)
# A connection of Kafka whose topics `persons`, `auctions` and `bids`, JSON objects, are read; None: what clients send.
TOPICS_OF: str | None = None

_Message = TypeVar("_Message")


@dataclass(slots=True)
class Person:
    """Somebody who came to the site at `at` (Unix ns, as all times here)."""

    id: int
    name: str
    email: str
    credit_card: str
    city: str
    state: str
    at: int
    extra: str


@dataclass(slots=True)
class Auction:
    """What a person sells, from `at` to `expires`, both included."""

    id: int
    item: str
    description: str
    initial_bid: int
    reserve: int
    at: int
    expires: int
    seller: int
    category: int
    extra: str


@dataclass(slots=True)
class Bid:
    """What a person offers for an auction, in cents. Texts have a width, so that functions of bids can be compiled."""

    auction: int
    bidder: int
    price: int
    channel: Annotated[str, Width(16)]
    url: Annotated[str, Width(80)]
    at: int
    extra: Annotated[str, Width(32)]


def persons(app: bettong.Application, key: str = "id") -> bettong.Stream[Person]:
    """The source of persons, by the time at which they came."""
    return _source(app, "persons", Person, key)


def auctions(app: bettong.Application, key: str = "id") -> bettong.Stream[Auction]:
    """The source of auctions, by the time at which they were opened."""
    return _source(app, "auctions", Auction, key)


def bids(
    app: bettong.Application, key: str | tuple[str, ...] | Callable[[Bid], int] = "auction"
) -> bettong.Stream[Bid]:
    """The source of bids, by the time at which they were made."""
    return _source(app, "bids", Bid, key)


def _source(
    app: bettong.Application, name: str, schema: type[_Message], key: Any
) -> bettong.Stream[_Message]:
    topic = None if TOPICS_OF is None else bettong.KafkaTopic(name, connection=TOPICS_OF)
    return app.source(
        name,
        schema=schema,
        key=key,
        format=None if topic is None else "json",
        from_=topic,
        event_time="at",
        out_of_order=OUT_OF_ORDER,
    )
