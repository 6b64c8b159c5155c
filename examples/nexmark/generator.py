"""Events of the Nexmark auction site, the same for the same seed: event n is made of the seed and n alone.

    python examples/nexmark/generator.py site --events 1000000            (Parquet files for `bettong send`)
    python examples/nexmark/generator.py site --format json

So any process makes any part of them. Of each 50 events the first is a person, three are auctions and the others bids.
Half of the bids are for one hot auction in a hundred, three quarters of bidders and sellers are a hot one.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from model import Auction, Bid, Person
from texts import (
    CHANNELS,
    CITIES,
    FIRST_NAMES,
    FOUR_DIGITS,
    HOT_CHANNELS,
    LAST_NAMES,
    STATES,
    pick,
    random_text,
    urls,
)

Array: TypeAlias = np.ndarray[Any, Any]
Columns: TypeAlias = dict[str, Array]
Message: TypeAlias = Person | Auction | Bid

SOURCES: Mapping[str, type[Message]] = {"persons": Person, "auctions": Auction, "bids": Bid}
BEGIN_NS = 1_436_918_400_000_000_000  # 15 July 2015
MS_NS = 1_000_000

# Of each 50 events.
EVENTS, PERSONS, AUCTIONS = 50, 1, 3
FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1000, 10, 5
# Whom, and what, events are about.
HOT_EVERY, ACTIVE_PERSONS, OPEN_AUCTIONS, AHEAD = 100, 1000, 100, 10
# Random numbers of each event.
DRAWS = 16
BLOCK = 50_000


@dataclass(frozen=True)
class Site:
    """Which events there are: `events_per_s` of event time; each up to `late_ms` later in the order of arrival."""

    seed: int = 1
    events_per_s: int = 10_000
    late_ms: int = 0


@dataclass(frozen=True, slots=True)
class Events:
    """Columns by source, in the order of events, and of each row the time at which it arrives, Unix ns."""

    columns: dict[str, Columns]
    arrivals: dict[str, Array]

    def table(self, source: str) -> pa.Table:
        """The messages of a source, in the order of arrival."""
        order = np.argsort(self.arrivals[source], kind="stable")
        return pa.table({name: pa.array(column[order]) for name, column in self.columns[source].items()})

    def messages(self) -> list[tuple[str, Message]]:
        """All of them, each with its source, in the order of arrival; of those of one time, in the order of sources."""
        found: list[tuple[int, str, Message]] = []
        for source, made in SOURCES.items():
            values = [column.tolist() for column in self.columns[source].values()]
            arrivals = self.arrivals[source].tolist()
            found += [(at, source, made(*row)) for at, *row in zip(arrivals, *values, strict=True)]
        found.sort(key=lambda each: each[0])
        return [(source, message) for _, source, message in found]


def events(site: Site, first: int, count: int) -> Events:
    """Events `first` up to `first + count`; the order of arrival is that among themselves."""
    numbers = np.arange(first, first + count)
    draws = _draws(site.seed, first, count)
    late_ns = draws[:, 15] % np.uint64(site.late_ms * MS_NS + 1)
    at = time_ns(site, numbers)
    place = numbers % EVENTS
    kinds = {
        "persons": place < PERSONS,
        "auctions": (place >= PERSONS) & (place < PERSONS + AUCTIONS),
        "bids": place >= PERSONS + AUCTIONS,
    }
    make = {"persons": _persons, "auctions": _auctions, "bids": _bids}
    columns, arrivals = {}, {}
    for source, chosen in kinds.items():
        columns[source] = make[source](site, numbers[chosen], draws[chosen])
        arrivals[source] = at[chosen] + late_ns[chosen].astype(np.int64)
    return Events(columns, arrivals)


def time_ns(site: Site, numbers: Array) -> Array:
    """When events happen, Unix ns, in whole milliseconds."""
    return BEGIN_NS + numbers * 1000 // site.events_per_s * MS_NS


def blocks(site: Site, count: int, block: int = BLOCK) -> Iterator[Events]:
    """`count` events from the first one on, so many at a time."""
    for first in range(0, count, block):
        yield events(site, first, min(block, count - first))


def _draws(seed: int, first: int, count: int) -> Array:
    """A row of random numbers of each event. Philox goes by a counter, four numbers a step, so any row can be had."""
    random = np.random.Philox(key=seed, counter=first * (DRAWS // 4))
    found: Array = random.random_raw(count * DRAWS).reshape(count, DRAWS)
    return found


def _up_to(draws: Array, bound: Array | int) -> Array:
    """From 0 up to below the bound; the bias is below 1e-9, for bounds are below 1e10."""
    found: Array = (draws % np.asarray(bound).astype(np.uint64)).astype(np.int64)
    return found


def _last_person(numbers: Array) -> Array:
    """The number of the newest person before or at an event, from 0."""
    return numbers // EVENTS


def _last_auction(numbers: Array) -> Array:
    """The number of the newest auction before or at an event, from 0; -1: none yet."""
    place: Array = np.minimum(numbers % EVENTS, PERSONS + AUCTIONS - 1) - PERSONS
    return numbers // EVENTS * AUCTIONS + place


def _any_person(numbers: Array, draws: Array) -> Array:
    """One of the newest persons, or one of the next few."""
    persons = _last_person(numbers) + 1
    active = np.minimum(persons, ACTIVE_PERSONS)
    found: Array = persons - active + _up_to(draws, active + AHEAD)
    return found


def _prices(draws: Array) -> Array:
    """From 1 dollar to a million, in cents: each tenfold as often as the others."""
    uniform = (draws >> np.uint64(11)).astype(np.float64) / 2**53
    found: Array = np.rint(10 ** (6 * uniform) * 100).astype(np.int64)
    return found


def _persons(site: Site, numbers: Array, draws: Array) -> Columns:
    first, last = pick(FIRST_NAMES, draws[:, 0]), pick(LAST_NAMES, draws[:, 1])
    name = np.char.add(np.char.add(first, " "), last)
    groups = [pick(FOUR_DIGITS, draws[:, 2 + each]) for each in range(4)]
    card = groups[0]
    for group in groups[1:]:
        card = np.char.add(np.char.add(card, " "), group)
    return {
        "id": FIRST_ID + _last_person(numbers),
        "name": name,
        "email": np.char.add(np.char.add(np.char.lower(last), "@example."), random_text(draws[:, 6], 3, 3)),
        "credit_card": card,
        "city": pick(CITIES, draws[:, 7]),
        "state": pick(STATES, draws[:, 8]),
        "at": time_ns(site, numbers),
        "extra": random_text(draws[:, 9], 90, 130),
    }


def _auctions(site: Site, numbers: Array, draws: Array) -> Columns:
    initial = _prices(draws[:, 0])
    at = time_ns(site, numbers)
    # Twice the time in which as many auctions are opened as are open at a time: on average, that many are.
    ahead = numbers + OPEN_AUCTIONS * EVENTS // AUCTIONS
    longest_ms = np.maximum((time_ns(site, ahead) - at) // MS_NS * 2, 1)
    hot = _last_person(numbers) // HOT_EVERY * HOT_EVERY
    seller = np.where(_up_to(draws[:, 3], 4) > 0, hot, _any_person(numbers, draws[:, 4]))
    return {
        "id": FIRST_ID + _last_auction(numbers),
        "item": random_text(draws[:, 5], 8, 20),
        "description": random_text(draws[:, 6], 50, 100),
        "initial_bid": initial,
        "reserve": initial + _prices(draws[:, 1]),
        "at": at,
        "expires": at + (1 + _up_to(draws[:, 2], longest_ms)) * MS_NS,
        "seller": FIRST_ID + seller,
        "category": FIRST_CATEGORY + _up_to(draws[:, 7], CATEGORIES),
        "extra": random_text(draws[:, 8], 260, 400),
    }


def _bids(site: Site, numbers: Array, draws: Array) -> Columns:
    last = _last_auction(numbers)
    oldest = np.maximum(last - OPEN_AUCTIONS, 0)
    some_auction = oldest + _up_to(draws[:, 1], last - oldest + 1 + AHEAD)
    auction = np.where(_up_to(draws[:, 0], 2) > 0, last // HOT_EVERY * HOT_EVERY, some_auction)
    hot_bidder = _last_person(numbers) // HOT_EVERY * HOT_EVERY + 1
    bidder = np.where(_up_to(draws[:, 2], 4) > 0, hot_bidder, _any_person(numbers, draws[:, 3]))
    hot_channel = _up_to(draws[:, 6], len(HOT_CHANNELS))
    other_channel = len(HOT_CHANNELS) + _up_to(draws[:, 6], len(CHANNELS) - len(HOT_CHANNELS))
    channel = np.where(_up_to(draws[:, 5], 2) > 0, hot_channel, other_channel)
    return {
        "auction": FIRST_ID + auction,
        "bidder": FIRST_ID + bidder,
        "price": _prices(draws[:, 4]),
        "channel": CHANNELS[channel],
        "url": urls(site.seed)[channel],
        "at": time_ns(site, numbers),
        "extra": random_text(draws[:, 7], 5, 25),
    }


def write(site: Site, count: int, folder: Path, kind: str) -> None:
    """A file for each source, its messages in the order of arrival within blocks of events."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as files:
        writers: dict[str, Any] = {}
        for made in blocks(site, count):
            for source in SOURCES:
                table = made.table(source)
                if kind == "json":
                    if source not in writers:
                        file = (folder / f"{source}.jsonl").open("w")
                        writers[source] = files.enter_context(file)
                    writers[source].writelines(f"{json.dumps(row)}\n" for row in table.to_pylist())
                else:
                    if source not in writers:
                        file = pyarrow.parquet.ParquetWriter(folder / f"{source}.parquet", table.schema)
                        writers[source] = files.enter_context(file)
                    writers[source].write_table(table)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where files are written")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=Site.seed)
    parser.add_argument("--events-per-s", type=int, default=Site.events_per_s, help="of event time")
    parser.add_argument("--late-ms", type=int, default=Site.late_ms, help="how much events are out of order")
    parser.add_argument("--format", choices=["parquet", "json"], default="parquet")
    given = parser.parse_args()
    site = Site(given.seed, given.events_per_s, given.late_ms)
    write(site, given.events, given.folder, given.format)


if __name__ == "__main__":
    main()
