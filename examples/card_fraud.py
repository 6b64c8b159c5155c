"""Card fraud: a small payment that tries a card out before a large one, and large ones that nobody confirms in time.

Run it: `bettong up examples/card_fraud.py`, `bettong send events examples/data/card_fraud/events.jsonl`.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

import bettong

SMALL_CENTS, LARGE_CENTS, PATIENCE_NS = 200, 50_000, bettong.seconds(60)
TTL = timedelta(minutes=10)  # of event time, and longer than a payment is open


class Kind(StrEnum):
    """What happened to a payment."""

    PAID = "paid"
    CONFIRMED = "confirmed"


@dataclass
class Event:
    """With a card, at `at` (Unix ns): a payment, or that the holder says it was theirs, under the payment's number."""

    card: str
    number: int
    kind: Kind
    cents: int
    at: int


@dataclass
class Alert:
    """A payment that is suspicious, and why."""

    card: str
    number: int
    reason: str


@dataclass
class Card:
    """What is kept of a card. `open_until`: of its large payments, by number; `end`: when the first of them is over."""

    tried_at: int = -PATIENCE_NS
    open_until: dict[int, int] = field(default_factory=dict)
    end: bettong.Timer = bettong.NEVER


def on_event(event: Event, card: Card) -> Alert | None:
    """Opens large payments, and closes those that are confirmed in time, by the times in both: timers may be late."""
    if event.kind is Kind.CONFIRMED:
        if event.at < card.open_until.get(event.number, 0):
            del card.open_until[event.number]
            card.end = min(card.open_until.values(), default=bettong.NEVER)
        return None
    if event.cents < LARGE_CENTS:
        card.tried_at = event.at if event.cents <= SMALL_CENTS else card.tried_at
        return None
    card.open_until[event.number] = event.at + PATIENCE_NS
    card.end = min(card.open_until.values())
    was_tried = event.at - card.tried_at < PATIENCE_NS
    return Alert(event.card, event.number, "tried out before") if was_tried else None


def on_end(fired: bettong.Fired[str], card: Card) -> Alert:
    """The first one's time is over. Where another one ends at the same time, the timer fires once more."""
    number = min(card.open_until, key=lambda each: card.open_until[each])
    del card.open_until[number]
    card.end = min(card.open_until.values(), default=bettong.NEVER)
    return Alert(fired.key, number, "not confirmed")


app = bettong.Application("card-fraud")
events = app.source("events", schema=Event, key="card", event_time="at")
events.stateful(on_event, state=Card, timers={"end": on_end}, ttl=TTL, ttl_clock="event").sink("alerts")
