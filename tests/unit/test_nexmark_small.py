"""The queries of examples/nexmark over the small data set, against the answers that came with it."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bettong.application.application import Application
from bettong.application.external.partitioned_files import PartitionedFiles
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame
from bettong.identifiers import Origin, SequenceNumber
from bettong.schema.schema import schema_of
from bettong.testing import clock, run
from bettong.testing.running import ReadyApplication
from bettong_receiver.connectors.partitioned_files import PartitionedFilesConnector, read_folder_lines
from bettong_receiver.progress import SinkPartition
from generator import BEGIN_NS
from model import Auction, Bid, Person
from tests.samples.nexmark import (
    FOLDER,
    QUERIES,
    UPDATED_BY,
    application,
    application_that_waits,
    one_by_one,
    ready,
    results,
    rows,
)
from tests.samples.nexmark_answers import ANSWERS, Event, bids_of
from tests.samples.sink_batches import sink_batch

SEED = 20150715
MS = 10**6
# As long as all of it: any order will do.
SPAN = timedelta(seconds=26)


def ns(ms: int) -> int:
    return BEGIN_NS + ms * MS


def ms(at: int) -> int:
    return (at - BEGIN_NS) // MS


def small() -> dict[str, Any]:
    text = (FOLDER.parent / "data" / "nexmark" / "small.json").read_text()
    data: dict[str, Any] = json.loads(text)
    return data


def events(data: dict[str, Any]) -> list[Event]:
    """By time; of those of one time, persons, then auctions, then bids."""
    found: list[tuple[int, Event]] = []
    for row in data["persons"]:
        state = row["state"].upper()
        person = Person(row["id"], row["name"], "", "", row["city"], state, ns(row["t"]), "")
        found.append((row["t"], ("persons", person)))
    for row in data["auctions"]:
        auction = Auction(
            **{name: row[name] for name in ("id", "initial_bid", "reserve", "seller", "category")},
            item="",
            description="",
            at=ns(row["t"]),
            expires=ns(row["expires"]),
            extra="",
        )
        found.append((row["t"], ("auctions", auction)))
    for row in data["bids"]:
        of = {name: row[name] for name in ("auction", "bidder", "price", "channel", "url")}
        found.append((row["t"], ("bids", Bid(**of, at=ns(row["t"]), extra="c" * row["c_in_extra"]))))
    return [event for _, event in sorted(found, key=lambda each: each[0])]


def of_bid(b: Any) -> tuple[Any, ...]:
    return b.auction, b.bidder, b.price, ms(b.at)


def day_of(start_ns: int) -> str:
    return datetime.fromtimestamp(start_ns // 10**9, UTC).date().isoformat()


def of_ranks(day: Any) -> tuple[Any, ...]:
    kinds = ("bids", "bidders", "auctions")
    return tuple(getattr(day, name) for each in kinds for name in (each, *(f"{r}_{each}" for r in RANKS)))


RANKS = ("low", "middle", "high")
# By query: which answer, and a result in its form.
EXPECTED: dict[int, tuple[str, Callable[[Any], tuple[Any, ...]]]] = {
    1: ("q1", lambda r: (r.auction, r.bidder, round(r.price, 3), ms(r.at))),
    2: ("q2_mod", lambda r: (r.auction, r.price)),
    3: ("q3", lambda r: (r.name, r.city, r.state.lower(), r.auction)),
    4: ("q4", lambda r: (r.category, r.price)),
    5: ("q5", lambda r: (ms(r.start), ms(r.end), r.auction, r.bids)),
    7: ("q7", lambda r: (r.auction, r.price, r.bidder, ms(r.at))),
    8: ("q8", lambda r: (r.person, r.name, ms(r.start))),
    9: ("q9", of_bid),
    11: ("q11", lambda r: (r.key, ms(r.start), ms(r.end - 1), r.bids)),
    12: ("q12_event_time", lambda r: (r.key, ms(r.start), r.bids)),
    14: (
        "q14",
        lambda r: (r.auction, r.bidder, round(r.price, 3), r.time_of_day, ms(r.at), r.cs),
    ),
    15: ("q15", lambda r: (day_of(r.start), *of_ranks(r))),
    16: ("q16", lambda r: (r.key, *of_ranks(r))),
    17: (
        "q17",
        lambda r: (
            *(r.key, r.bids, r.low_bids, r.middle_bids, r.high_bids),
            *(r.min_price, r.max_price, r.mean_price, r.sum_price),
        ),
    ),
    18: ("q18", of_bid),
    19: ("q19", lambda r: (r.auction, r.bidder, r.price, r.rank)),
    20: ("q20", lambda r: (r.auction, r.bidder, r.price, r.seller, r.category)),
    21: ("q21", lambda r: (r.auction, r.bidder, r.price, r.channel, r.channel_id)),
    22: ("q22", lambda r: (r.auction, r.bidder, r.price, r.channel, r.folder_1, r.folder_2, r.folder_3)),
}


def expected(data: dict[str, Any], answer: str) -> Counter[Any]:
    found = data["expect"][answer]
    return Counter(map(tuple, found if not found or isinstance(found[0], list) else [found]))


def by_log_clock(bids: list[Bid]) -> list[Any]:
    """Each bid comes when it was made."""
    inputs = [each for bid in bids for each in (clock(at=bid.at), ("bids", bid))]
    return [*inputs, clock(timedelta(seconds=20))]


def test_every_query_has_an_answer() -> None:
    assert set(QUERIES) == {*EXPECTED, 0, 6, 10, 13}


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("query", sorted(EXPECTED.keys() - {12}))
def test_a_query_gives_the_answer_that_is_known(query: int, partitions: int) -> None:
    data = small()
    app = ready(query, compiled=False)
    found = results(app, one_by_one(application(query), events(data)), partitions=partitions)
    answer, in_its_form = EXPECTED[query]
    assert last_in_form(query, found, in_its_form) == expected(data, answer)


def last_in_form(query: int, found: list[Any], in_its_form: Callable[[Any], tuple[Any, ...]]) -> Counter[Any]:
    """Results in the form of the answers; of updates, the last ones."""
    if query in UPDATED_BY:
        found = list({astuple_of(each, UPDATED_BY[query]): each for each in found}.values())
    return Counter(map(in_its_form, found))


def astuple_of(result: Any, fields: tuple[int, ...]) -> tuple[Any, ...]:
    row = astuple(result)
    return tuple(row[field] for field in fields)


# Of bids of one bidder for one auction at one time, query 18 has the first one to come: another one after a shuffle.
@pytest.mark.parametrize("query", sorted(EXPECTED.keys() - {12, 18}))
def test_the_order_of_events_makes_no_difference(query: int) -> None:
    data = small()
    app = ReadyApplication(application_that_waits(query, SPAN), compiled=False)
    answer, in_its_form = EXPECTED[query]
    for seed in range(SEED, SEED + 3):
        shuffled = random.Random(seed).sample(events(data), 110)
        found = results(app, one_by_one(application(query), shuffled), partitions=2)
        assert last_in_form(query, found, in_its_form) == expected(data, answer), f"seed {seed}"


@pytest.mark.parametrize("query", [0, 6, 10, 18])
def test_a_query_without_a_known_answer_gives_that_of_the_loop(query: int) -> None:
    app = ReadyApplication(application_that_waits(query, SPAN), compiled=False)
    for seed in range(SEED, SEED + 3):
        shuffled = random.Random(seed).sample(events(small()), 110)
        found = results(app, one_by_one(application(query), shuffled), partitions=2)
        assert rows(query, found) == Counter(ANSWERS[query](shuffled)), f"seed {seed}"


def test_the_loops_give_the_answers_that_are_known() -> None:
    data = small()
    known = {0: 50, 6: len(data["expect"]["q9"]), 10: 50}
    for query, count in known.items():
        assert len(ANSWERS[query](events(data))) == count
    for query in EXPECTED.keys() & ANSWERS.keys():
        assert len(ANSWERS[query](events(data))) == expected(data, EXPECTED[query][0]).total()


@pytest.mark.parametrize("partitions", [1, 3])
def test_bids_are_counted_when_they_come(partitions: int) -> None:
    data = small()
    bids = list(bids_of(events(data)))
    answer, in_its_form = EXPECTED[12]
    found = run(application(12), by_log_clock(bids), partitions=partitions).outputs["bidder-counts"]
    assert Counter(map(in_its_form, found)) == expected(data, answer)
    # All of them at once, however old they say they are.
    at_once = run(application(12), [clock(at=bids[-1].at), ("bids", bids), clock(timedelta(seconds=20))])
    counts = Counter((each.key, each.bids) for each in at_once.outputs["bidder-counts"])
    assert counts == Counter(Counter(bid.bidder for bid in bids).items())


def test_every_bid_is_in_the_file_of_its_minute(tmp_path: Path) -> None:
    data = small()
    assert data["expect"]["q10"] == "every bid with its day and minute"
    found = run(application(10), [("bids", list(bids_of(events(data))))]).outputs["bids-by-minute"]
    deliver(application(10), found, tmp_path)
    lines = Counter(
        (str(path.parent.relative_to(tmp_path)), bid["auction"], bid["bidder"], bid["price"], ms(bid["at"]))
        for path in tmp_path.rglob("*.jsonl")
        for bid in map(json.loads, path.read_text().splitlines())
    )
    assert lines == Counter(
        (
            f"day=2015-07-15/minute=00%3A{row['t'] // 60_000:02}",
            *(row["auction"], row["bidder"], row["price"], row["t"]),
        )
        for row in data["bids"]
    )


def deliver(app: Application, results: list[Any], folder: Path) -> None:
    """Hands results, in one frame, to the connector of the only sink."""
    (sink,) = app.sinks
    assert isinstance(sink.to, PartitionedFiles)
    schema = schema_of(type(results[0]))
    columns = Columns.of_messages(schema, results).payload()
    frame = Frame(
        origin=Origin("notes/bids/0"),
        sequence=SequenceNumber(1),
        previous=SequenceNumber(0),
        schema=schema.fingerprint,
        columns=columns,
    )
    placed = read_folder_lines(schema, sink.to.fields)(frame)
    with closing(
        PartitionedFilesConnector(folder, application="app", sink="notes", monotonic_s=lambda: 0.0)
    ) as connector:
        connector.open({SinkPartition("notes", 0): 0})
        connector.deliver([sink_batch(0, placed, 1)])
        connector.finish()
