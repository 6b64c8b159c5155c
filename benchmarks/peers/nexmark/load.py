"""The records of a Nexmark query, JSON objects in the order of their times, and the right answer by the plain model.

First come the starters, events of 400 keys of their own that every query gives results for; where results wait for
event time, later ones of the same keys are behind them. When the results of the starters are there, whoever runs has
started and serves every partition. Then the generated events, 100 s of event time however many they are. At last the
bell: starters again, and where windows must be closed, a message of each key, far ahead.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields, replace
from functools import lru_cache, partial
from time import process_time
from typing import Any

from benchmarks.peers.load import Load, Record
from benchmarks.peers.nexmark.queries import NexmarkQuery
from examples.market_spread_oracle import Results
from generator import AUCTIONS, BEGIN_NS, EVENTS, MS_NS, PERSONS, SOURCES, Message, Site, blocks
from model import Auction, Bid, Person
from tests.samples.nexmark_answers import ANSWERS, Event, Events

Key = int | str
S_NS = 10**9
_STARTERS = 400
# Far from those of generated events, and multiples of 123, which query 2 asks for.
_STARTER_ID = 123_000_000
_SPAN_S = 100
# Auctions come so much later than persons, so that query 8 finds no pair of them.
_APART_NS = 20 * S_NS
_OPEN_NS = 60 * S_NS
_OF_EVENTS = {"persons": PERSONS, "auctions": AUCTIONS, "bids": EVENTS - PERSONS - AUCTIONS}
_PRICE = 2_000_000
_URL = "https://auctions.example/a/b/c/item.htm?query=1&channel_id=7"


@lru_cache(maxsize=1)
def nexmark_load(query: NexmarkQuery, messages: int) -> Load:
    """About so many generated messages of the query's topics."""
    opening, timed, closing = _events(query, messages)
    answer = ANSWERS[query.number]
    results_of = partial(_newest, query) if query.newest_by else _by_key
    starters = opening[: len(query.keys) * _STARTERS]
    return Load(
        [_record(query, event) for event in opening],
        [_record(query, event) for event in (*timed, *closing)],
        len(timed) + len(closing),
        len(answer(starters)),
        results_of(answer([*opening, *timed, *([] if query.windows else closing)])),
        lambda results: results_of(map(_row, filter(None, results))),
        tuple(query.keys),
        partial(_update, query) if query.newest_by else None,
        {key: newest for key, (newest,) in _newest(query, answer(starters)).items()}
        if query.newest_by
        else {},
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
    per_s = max(count // _SPAN_S, 1)
    site = Site(events_per_s=min(per_s, 1000) if query.apart else per_s)
    timed = [event for made in blocks(site, count) for event in made.messages() if event[0] in query.keys]
    # Between starters, what is behind them, generated events and the bell: every window, and what may be late, is over.
    pause_ns = query.pause_s * S_NS
    end_ns = timed[-1][1].at + pause_ns
    ids = range(_STARTER_ID, _STARTER_ID + 123 * _STARTERS, 123)
    keys = _keys(query, ids)
    starters = _starters(query, keys, BEGIN_NS - 2 * pause_ns, apart_ns=0)
    if not query.windows:
        others = _keys(query, range(ids.stop, ids.stop + 123 * _STARTERS, 123))
        return starters, timed, _starters(query, others, end_ns, apart_ns=0)
    behind = _starters(query, keys, BEGIN_NS - pause_ns, apart_ns=_APART_NS)
    seen = {*keys, *(getattr(message, query.keys[source]) for source, message in timed)}
    return [*starters, *behind], timed, _starters(query, sorted(seen), end_ns, apart_ns=_APART_NS)


def _keys(query: NexmarkQuery, ids: Iterable[int]) -> Sequence[Key]:
    """Numbers, or for who goes by channels such names."""
    return [f"shop-{number}" for number in ids] if "channel" in query.keys.values() else list(ids)


def _starters(query: NexmarkQuery, keys: Sequence[Key], at: int, *, apart_ns: int) -> list[Event]:
    """An event of each key of each topic. Where auctions end, later ones (`apart_ns`) are others without a bid."""
    made: dict[str, Message] = {
        "persons": Person(0, "Ada Adler", "ada@example.abc", "", "Boise", "ID", at, ""),
        "auctions": Auction(0, "item", "", 100, 200, at + apart_ns, at + _OPEN_NS, 0, 10, ""),
        "bids": Bid(0, 0, _PRICE, "Apple", _URL, at, "cc"),
    }
    ids_of = {"persons": ("id",), "auctions": ("id", "seller"), "bids": ("auction", "bidder")}

    def of(source: str, position: int, key: Key) -> Event:
        changed: dict[str, Any] = dict.fromkeys(("channel",) if isinstance(key, str) else ids_of[source], key)
        if source == "auctions" and query.auctions_end and apart_ns:
            changed["id"] = -at // S_NS * len(keys) - position
        if source == "bids" and query.newest_by:
            changed["price"] = _PRICE + position  # an average of some is not that of all
        return source, replace(made[source], **changed)

    return [of(source, position, key) for source in query.keys for position, key in enumerate(keys)]


def _record(query: NexmarkQuery, event: Event) -> Record:
    source, message = event
    names = (field.name for field in fields(message))
    value = json.dumps(dict(zip(names, astuple(message), strict=True))).encode()
    key = str(getattr(message, query.keys[source])).encode()
    return Record(value, key, topic=source, time_ms=message.at // MS_NS)


def _row(result: bytes) -> Sequence[object]:
    return tuple(json.loads(result).values())


def _update(query: NexmarkQuery, result: bytes) -> tuple[bytes, bytes]:
    row = _row(result)
    return query.update_key(row) or b"", json.dumps(row).encode()


def _newest(query: NexmarkQuery, rows: Iterable[Sequence[object]]) -> Results:
    """The newest row of each key."""
    return {query.update_key(row) or b"": [json.dumps(row).encode()] for row in rows}


def _by_key(rows: Iterable[Sequence[object]]) -> Results:
    """The rows by their first values, in an order of their own: who closes windows together promises none."""
    found: Results = {}
    for row in rows:
        found.setdefault(str(row[0]).encode(), []).append(json.dumps(row).encode())
    return {key: sorted(results) for key, results in found.items()}
