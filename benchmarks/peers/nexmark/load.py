"""The records of a Nexmark query, JSON objects in the order of their times, and the right answer by the plain model.

First come the starters, events of 400 keys of their own that every query gives results for; where results wait for
event time, later ones of the same keys are behind them. When the results of the starters are there, whoever runs has
started and serves every partition. Then the generated events, 100 s of event time however many they are. At last the
bell: starters again, and where windows must be closed, a message of each key, far ahead.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields, replace
from functools import lru_cache
from time import process_time
from typing import Any

from benchmarks.peers.load import Load, Record
from benchmarks.peers.nexmark.queries import NexmarkQuery
from examples.market_spread_oracle import Results
from generator import AUCTIONS, BEGIN_NS, EVENTS, MS_NS, PERSONS, SOURCES, Message, Site, blocks
from model import Auction, Bid, Person
from tests.samples.nexmark_answers import ANSWERS, Event, Events

_STARTERS = 400
# Far from those of generated events, and multiples of 123, which query 2 asks for.
_STARTER_ID = 123_000_000
_SPAN_S = 100
# Between starters, what is behind them, generated events and the bell: every window, and what may be late, is over.
_PAUSE_NS = 60 * 10**9
# Within a pause: auctions come so much later than persons, so that query 8 finds no pair of them.
_APART_NS = 20 * 10**9
_OF_EVENTS = {"persons": PERSONS, "auctions": AUCTIONS, "bids": EVENTS - PERSONS - AUCTIONS}
_URL = "https://auctions.example/a/b/c/item.htm?query=1&channel_id=7"


@lru_cache(maxsize=1)
def nexmark_load(query: NexmarkQuery, messages: int) -> Load:
    """About so many generated messages of the query's topics."""
    opening, timed, closing = _events(query, messages)
    answer = ANSWERS[query.number]
    starters = opening[: len(query.keys) * _STARTERS]
    return Load(
        [_record(query, event) for event in opening],
        [_record(query, event) for event in (*timed, *closing)],
        len(timed) + len(closing),
        len(answer(starters)),
        _by_key(answer([*opening, *timed, *([] if query.windows else closing)])),
        lambda results: _by_key(tuple(json.loads(result).values()) for result in results),
        tuple(query.keys),
    )


def nexmark_loop(query: NexmarkQuery, messages: int) -> float:
    """Messages a second of the plain model, with JSON at both ends."""
    records = nexmark_load(query, messages).timed
    begun = process_time()
    events = [(record.topic, SOURCES[record.topic](**json.loads(record.value))) for record in records]
    for row in ANSWERS[query.number](events):
        json.dumps(row)
    return len(records) / (process_time() - begun)


def _events(query: NexmarkQuery, messages: int) -> tuple[Events, Events, Events]:
    """Before the clock starts; generated ones; the bell."""
    count = messages * EVENTS // sum(_OF_EVENTS[source] for source in query.keys)
    site = Site(events_per_s=max(count // _SPAN_S, 1))
    timed = [event for made in blocks(site, count) for event in made.messages() if event[0] in query.keys]
    end_ns = timed[-1][1].at + _PAUSE_NS
    ids = range(_STARTER_ID, _STARTER_ID + 123 * _STARTERS, 123)
    starters = _starters(query, ids, BEGIN_NS - 2 * _PAUSE_NS, apart_ns=0)
    if not query.windows:
        others = range(ids.stop, ids.stop + 123 * _STARTERS, 123)
        return starters, timed, _starters(query, others, end_ns, apart_ns=0)
    behind = _starters(query, ids, BEGIN_NS - _PAUSE_NS, apart_ns=_APART_NS)
    keys = sorted({*ids, *(getattr(message, query.keys[source]) for source, message in timed)})
    return [*starters, *behind], timed, _starters(query, keys, end_ns, apart_ns=_APART_NS)


def _starters(query: NexmarkQuery, ids: Sequence[int], at: int, *, apart_ns: int) -> list[Event]:
    made: dict[str, Message] = {
        "persons": Person(0, "Ada Adler", "ada@example.abc", "", "Boise", "ID", at, ""),
        "auctions": Auction(0, "item", "", 100, 200, at + apart_ns, at + _PAUSE_NS, 0, 10, ""),
        "bids": Bid(0, 0, 2_000_000, "Apple", _URL, at, "cc"),
    }
    ids_of = {"persons": ("id",), "auctions": ("id", "seller"), "bids": ("auction", "bidder")}

    def of(source: str, number: int) -> Event:
        changed: dict[str, Any] = dict.fromkeys(ids_of[source], number)
        return source, replace(made[source], **changed)

    return [of(source, number) for source in query.keys for number in ids]


def _record(query: NexmarkQuery, event: Event) -> Record:
    source, message = event
    names = (field.name for field in fields(message))
    value = json.dumps(dict(zip(names, astuple(message), strict=True))).encode()
    key = b"%d" % getattr(message, query.keys[source])
    return Record(value, key, topic=source, time_ms=message.at // MS_NS)


def _by_key(rows: Iterable[Sequence[object]]) -> Results:
    """The rows by their first values, in an order of their own: who closes windows together promises none."""
    found: Results = {}
    for row in rows:
        found.setdefault(str(row[0]).encode(), []).append(json.dumps(row).encode())
    return {key: sorted(results) for key, results in found.items()}
