"""The queries of examples/nexmark over generated events, against loops over lists; and their generator."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import generator
from bettong.client.message_files import Format, portions
from bettong.client.message_input import Wanted
from bettong.schema.schema import schema_of
from bettong.testing import END, AtEachRecord, check, clock, run, watermark
from generator import SOURCES, Message, Site
from model import Auction, Bid
from tests.samples.nexmark import (
    COMPILED,
    FOLDER,
    ORDERED_BY_THE_LOG,
    QUERIES,
    application,
    in_frames,
    one_by_one,
    ready,
    results,
    rows,
    sources_of,
)
from tests.samples.nexmark_answers import ANSWERS, Events, auctions_of, bids_of, persons_of, q12

EVENTS = 3000
# A minute of event time; as much out of order as the sources of the queries take.
IN_ORDER = Site(seed=20150715, events_per_s=50)
OUT_OF_ORDER = Site(seed=20150715, events_per_s=50, late_ms=4000)


@lru_cache
def events(site: Site, count: int = EVENTS) -> Events:
    return generator.events(site, 0, count).messages()


@lru_cache
def answer(query: int) -> Counter[Any]:
    """The same for any order but that of query 18, which takes the first one of those of one time."""
    return Counter(ANSWERS[query](events(IN_ORDER)))


def test_queries_are_those_that_are_written() -> None:
    assert sorted({*ANSWERS, 12}) == QUERIES


@pytest.mark.parametrize("query", sorted(ANSWERS))
def test_a_query_gives_what_a_loop_gives(query: int) -> None:
    found = results(ready(query, compiled=False), in_frames(application(query), events(IN_ORDER), 1000))
    assert rows(query, found) == answer(query)
    assert answer(query), "nothing was compared"


@pytest.mark.parametrize("query", sorted(ANSWERS))
def test_events_out_of_order_in_other_frames_and_partitions_give_the_same(query: int) -> None:
    shuffled = events(OUT_OF_ORDER)
    assert shuffled != events(IN_ORDER)
    expected = Counter(ANSWERS[query](shuffled)) if query == 18 else answer(query)
    for frame, partitions in ((77, 3), (500, 5)):
        inputs = in_frames(application(query), shuffled, frame)
        assert rows(query, results(ready(query, compiled=False), inputs, partitions=partitions)) == expected


@pytest.mark.parametrize("query", sorted(COMPILED - {12}))
def test_a_compiled_query_gives_the_same(query: int) -> None:
    app = ready(query, compiled=True)
    assert app.has_compiled
    found = results(app, in_frames(application(query), events(IN_ORDER), 200), partitions=2)
    assert rows(query, found) == answer(query)


@pytest.mark.parametrize("compiled", [False, True])
def test_query_12_counts_bids_when_they_come(compiled: bool) -> None:  # noqa: FBT001 - pytest fills it in
    bids = list(bids_of(events(OUT_OF_ORDER)))
    begin, step = generator.BEGIN_NS, 3 * 10**9
    inputs: list[Any] = []
    arrivals = []
    for number, first in enumerate(range(0, len(bids), 100)):
        frame = bids[first : first + 100]
        inputs += [clock(at=begin + number * step), ("bids", frame)]
        arrivals += [(begin + number * step, bid) for bid in frame]
    found = run(application(12), [*inputs, clock(20 * 10**9)], partitions=3, compiled=compiled)
    assert rows(12, found.outputs["bidder-counts"]) == Counter(q12(arrivals))
    assert len({each.start for each in found.outputs["bidder-counts"]}) > 5


@pytest.mark.parametrize("query", sorted(set(QUERIES) - ORDERED_BY_THE_LOG))
def test_crashes_repetitions_frames_and_partitions_make_no_difference(query: int) -> None:
    app = application(query)
    few = generator.events(Site(seed=3, events_per_s=1, late_ms=4000), 50, 12).messages()
    case: list[Any] = one_by_one(app, few)
    if any(stage.needs_time for stage in ready(query, compiled=False).plan.stages):
        case.append(watermark(END))
    check(app, case)


@pytest.mark.parametrize("query", sorted(ORDERED_BY_THE_LOG))
@pytest.mark.parametrize("partitions", [1, 3])
def test_crashes_and_repetitions_make_no_difference_to_updates(query: int, partitions: int) -> None:
    app, some = ready(query, compiled=False), events(OUT_OF_ORDER, 500)
    undisturbed = results(app, in_frames(application(query), some, 50), partitions=partitions)
    assert len(undisturbed) > 5
    for each in AtEachRecord:
        inputs = in_frames(application(query), some, 50)
        found = results(app, inputs, partitions=partitions, at_each_record=each)
        assert Counter(map(astuple, found)) == Counter(map(astuple, undisturbed))


@pytest.mark.parametrize("query", [5, 7, 8, 9, 11, 15, 16, 17])
def test_nothing_is_kept_of_what_is_over(query: int) -> None:
    """Bids without an auction, and persons who sell nothing, too."""
    app = application(query)
    inputs = list(in_frames(app, events(OUT_OF_ORDER), 500))
    outcome = run(ready(query, compiled=False), inputs, until=END)
    assert set(map(len, outcome.states.values())) == {0}
    assert outcome.timers == []


def test_what_comes_when_an_auction_is_over_changes_nothing_and_leaves_nothing() -> None:
    app = ready(9, compiled=False)
    found = events(IN_ORDER, 200)
    last_at = found[-1][1].at
    auction = next(auctions_of(found))
    late = Bid(auction.id, 1, 10**12, "", "", auction.expires, "")
    again = replace(auction, id=10**6)
    over = watermark(max(each.expires for each in auctions_of(found)) + 1)
    inputs: list[Any] = [*one_by_one(application(9), found), over]
    before = run(app, inputs)
    after = run(app, [*inputs, ("bids", late), ("auctions", again), watermark(last_at + 10**12)])
    assert after.outputs == before.outputs
    assert len(before.outputs["winning-bids"]) > 3
    assert after.states == {"bidding": {}}


def test_an_event_is_made_of_its_number_alone() -> None:
    whole = generator.events(OUT_OF_ORDER, 0, 1000)
    parts = [generator.events(OUT_OF_ORDER, *part) for part in ((0, 1), (1, 49), (50, 333), (383, 617))]
    for source in SOURCES:
        for name, column in whole.columns[source].items():
            again = np.concatenate([part.columns[source][name] for part in parts])
            assert column.tolist() == again.tolist(), f"{source}.{name}"
    other = generator.events(Site(seed=OUT_OF_ORDER.seed + 1), 0, 1000)
    assert other.columns["bids"]["price"].tolist() != whole.columns["bids"]["price"].tolist()


def test_events_are_those_of_the_benchmark() -> None:
    made = generator.events(Site(), 0, 50_000)
    persons, auctions, bids = (made.columns[source] for source in SOURCES)
    assert (len(persons["id"]), len(auctions["id"]), len(bids["price"])) == (1000, 3000, 46_000)
    assert persons["id"].tolist() == list(range(1000, 2000))
    assert auctions["id"].tolist() == list(range(1000, 4000))
    assert set(auctions["category"].tolist()) == {10, 11, 12, 13, 14}
    assert 0.49 < np.mean(bids["auction"] % 100 == 0) < 0.53
    assert 0.74 < np.mean(bids["bidder"] % 100 == 1) < 0.78
    assert 0.74 < np.mean(auctions["seller"] % 100 == 0) < 0.78
    logarithms = np.log10(bids["price"] / 100)
    assert logarithms.min() >= 0
    assert logarithms.max() <= 6
    assert 2.9 < logarithms.mean() < 3.1
    sizes = [made.table(source).nbytes / made.table(source).num_rows for source in SOURCES]
    assert [150 < sizes[0] < 250, 400 < sizes[1] < 600, 80 < sizes[2] < 160] == [True] * 3, sizes


def test_auctions_are_open_as_long_as_a_hundred_are_opened() -> None:
    made = generator.events(Site(events_per_s=1000), 0, 50_000).columns["auctions"]
    lengths_s = (made["expires"] - made["at"]) / 1e9
    assert lengths_s.min() > 0
    assert lengths_s.max() <= 2 * 5000 / 3000 + 0.001
    assert 1.6 < lengths_s.mean() < 1.75


def test_no_event_arrives_later_than_it_may() -> None:
    newest, late_by = 0, []
    for _, message in events(OUT_OF_ORDER):
        newest = max(newest, message.at)
        late_by.append(newest - message.at)
    assert 3 * 10**9 < max(late_by) <= OUT_OF_ORDER.late_ms * 10**6
    in_order = [message.at for _, message in events(IN_ORDER)]
    assert in_order == sorted(in_order)


@pytest.mark.parametrize(("kind", "ending"), [("parquet", "parquet"), ("json", "jsonl")])
def test_files_of_the_command_line_are_what_sources_take(kind: str, ending: str, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    words = [str(folder), "--events", "120", "--seed", "7", "--format", kind]
    subprocess.run([sys.executable, FOLDER / "generator.py", *words], check=True, timeout=120)
    made = generator.events(Site(seed=7), 0, 120).messages()
    by_source: dict[str, Iterable[Message]] = {
        "persons": persons_of(made),
        "auctions": auctions_of(made),
        "bids": bids_of(made),
    }
    for source, message in SOURCES.items():
        schema = schema_of(message)
        wanted = Wanted(schema.arrow, takes_rows=False, messages_max=50, bytes_max=2**20)
        read = [each.body for each in portions(folder / f"{source}.{ending}", Format(kind), wanted)]
        times: list[int] = []
        for body in read:
            assert isinstance(body, pa.RecordBatch)
            times += body.column("at").to_pylist()
        assert times == [each.at for each in by_source[source]]


def test_bids_for_auctions_to_come_and_bids_that_wait_are_among_the_events() -> None:
    """What queries 9 and 20 keep for later happens."""
    known: set[int] = set()
    early = 0
    for _, message in events(OUT_OF_ORDER):
        if isinstance(message, Auction):
            known.add(message.id)
        early += isinstance(message, Bid) and message.auction not in known
    assert early > 100
    assert sources_of(application(9)) == {"auctions", "bids"}
