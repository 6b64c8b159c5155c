"""Nexmark by `python -m benchmarks.peers`: the records, the right answers, who runs a query, and Bettong."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any

import pytest
import typer

from benchmarks.peers.__main__ import _workloads
from benchmarks.peers.bettong.contestant import HERE as BETTONG
from benchmarks.peers.entries import entries_of, left_out
from benchmarks.peers.load import Load
from benchmarks.peers.nexmark import bidding, days, rules
from benchmarks.peers.nexmark.queries import QUERIES
from benchmarks.peers.race import RaceError
from benchmarks.peers.workloads import NAMES, WORKLOADS
from bettong.edges.application_file import load as load_application
from bettong.testing import run
from tests.samples.nexmark import COMPILED
from tests.samples.peer_loads import judged, load_frames

MESSAGES = 2000
FRAME_MESSAGES = 500
STARTERS = 400


def load_of(query: str) -> Load:
    return WORKLOADS[f"nexmark-{query}"].load(MESSAGES)


@pytest.mark.parametrize("query", QUERIES)
def test_a_load_has_starters_generated_events_and_a_bell(query: str) -> None:
    of = load_of(query)
    records = of.opening + of.timed
    for topic in of.topics:
        times = [record.time_ms for record in records if record.topic == topic]
        assert times == sorted(times)
        # Where none is opened twice, others come behind the first ones.
        keys = {record.key for record in of.opening if record.topic == topic}
        others = topic == "auctions" and QUERIES[query].auctions_end
        assert len(keys) == STARTERS * (2 if others else 1)
        assert times[-1] - times[0] > 200_000, "the pauses, and generated events"
    # The averages of the starters' category, and their day.
    assert (1 if query in {"q4", "q15"} else STARTERS) <= of.opening_results < of.results
    assert MESSAGES <= len(of.timed) == of.timed_messages
    field = QUERIES[query].keys[of.topics[0]]
    assert records[0].key == str(json.loads(records[0].value)[field]).encode()


@pytest.mark.parametrize("query", QUERIES)
def test_bettongs_application_gives_the_models_answer_from_json_to_json(query: str) -> None:
    of = load_of(query)
    app = load_application(f"{BETTONG / 'nexmark.py'}:{query}")
    outcome = run(app, list(load_frames(of, FRAME_MESSAGES)))
    (results,) = (each for sink, each in outcome.outputs.items() if sink != "dead-letters")
    assert not outcome.dead_letters
    values = [json.dumps(asdict(each)).encode() for each in results]
    judged(of, values)
    with pytest.raises(RaceError, match="not the right ones"):
        judged(of, values[:-1])


# What a peer's plain function makes of the bids, one by one.
BID_BY_BID: dict[str, Callable[[Any], list[Any]]] = {
    "q1": lambda bid: [rules.euro_bid(bid)],
    "q2": rules.prices,
    "q13": lambda bid: [rules.valued_bid(bid)],
    "q14": rules.timed_bids,
    "q21": rules.channel_bids,
    "q22": lambda bid: [rules.folder_bid(bid)],
}


@pytest.mark.parametrize("query", BID_BY_BID)
def test_the_rules_of_peers_give_the_models_answer(query: str) -> None:
    of = load_of(query)
    rows = [row for record in of.opening + of.timed for row in BID_BY_BID[query](json.loads(record.value))]
    judged(of, [json.dumps(row).encode() for row in rows])


def test_sellers_are_found_whichever_topic_is_read_first() -> None:
    of = load_of("q8")
    for topics in (of.topics, of.topics[::-1]):
        kept: dict[bytes, rules.Sides] = defaultdict(lambda: ({}, []))
        found = []
        for topic in topics:
            for record in of.opening + of.timed:
                if record.topic == topic:
                    kept[record.key], rows = rules.new_sellers(json.loads(record.value), kept[record.key])
                    found += [json.dumps(row).encode() for row in rows]
        judged(of, found)


def records_by_topic(of: Load, topics: Iterable[str]) -> Iterator[tuple[bytes, Any]]:
    """Key and JSON object of each; one topic after the other."""
    for topic in topics:
        for record in of.opening + of.timed:
            if record.topic == topic:
                yield record.key, json.loads(record.value)


@pytest.mark.parametrize("turned", [False, True])
def test_winning_bids_and_their_averages_are_the_models_whichever_topic_is_read_first(
    *, turned: bool
) -> None:
    of, averaged = load_of("q9"), load_of("q4")
    kept: dict[bytes, bidding.Bidding] = defaultdict(lambda: (None, []))
    won = []
    for key, arrived in records_by_topic(of, of.topics[::-1] if turned else of.topics):
        kept[key], rows = bidding.winning_bid(arrived, kept[key])
        won += rows
    judged(of, [json.dumps(row).encode() for row in won])
    assert len(won) == of.results, "one of each, no updates"
    sold: dict[int, bidding.Sold] = defaultdict(lambda: (0, 0))
    averages = []
    for each in won:
        sold[each["category"]], row = bidding.average(each, sold[each["category"]])
        averages.append(json.dumps(row).encode())
    judged(averaged, averages)
    with pytest.raises(RaceError, match="not the right ones"):
        judged(averaged, averages[:-1])


def test_the_highest_bids_of_an_auction_are_the_models() -> None:
    of = load_of("q19")
    kept: dict[bytes, list[bidding.Offer]] = defaultdict(list)
    ranked = []
    for key, bid in records_by_topic(of, of.topics):
        kept[key], rows = bidding.ranked_bids(bid, kept[key])
        ranked += [json.dumps(row).encode() for row in rows]
    judged(of, ranked)
    assert len(ranked) > of.results, "updates"


def test_days_are_counted_by_price() -> None:
    for query in ("q16", "q17"):
        of = load_of(query)
        distinct: dict[tuple[str, int], days.DistinctBids] = defaultdict(days.DistinctBids)
        prices: dict[tuple[str, int], days.Prices] = {}
        for key, bid in records_by_topic(of, of.topics):
            day = key.decode(), bid["at"] // days.DAY_NS * days.DAY_NS
            distinct[day].add(bid)
            prices[day] = days.with_price(prices[day], bid) if day in prices else days.first_price(bid)
        # The day of the bell is not over.
        last = max(start for _, start in prices)
        over = [day for day in prices if day[1] < last]
        rows = [
            distinct[day].row(*day) if query == "q16" else days.auction_day(int(day[0]), day[1], prices[day])
            for day in over
        ]
        judged(of, [json.dumps(row).encode() for row in rows])


def test_queries_are_chosen_by_name_and_a_wrong_one_is_named() -> None:
    assert [each.name for each in _workloads("nexmark", ["q5", "q0"])] == ["nexmark-q5", "nexmark-q0"]
    assert [each.query for each in _workloads("nexmark", [])] == list(QUERIES)
    assert [each.name for each in _workloads("market-spread", [])] == ["market-spread"]
    assert NAMES == [
        "market-spread",
        "word-count",
        "tumbling",
        "sliding",
        "interval-join",
        "timers",
        "nexmark",
    ]
    with pytest.raises(typer.BadParameter, match="has no query 'q99'"):
        _workloads("nexmark", ["q99"])
    with pytest.raises(typer.BadParameter, match="no workload 'nexmark-q5'"):
        _workloads("nexmark-q5", [])


def test_who_has_no_watermark_for_all_keys_is_left_out_of_their_windows() -> None:
    assert set(left_out(WORKLOADS["nexmark-q5"])) == {"bytewax", "Quix Streams"}
    assert set(left_out(WORKLOADS["nexmark-q7"])) == {"bytewax", "Quix Streams"}
    assert set(left_out(WORKLOADS["nexmark-q15"])) == {"bytewax", "Quix Streams"}
    assert set(left_out(WORKLOADS["nexmark-q4"])) == {"Spark Structured Streaming"}
    assert set(left_out(WORKLOADS["nexmark-q6"])) == {"bytewax", "Quix Streams", "Spark Structured Streaming"}
    names = [entry.name for entry in entries_of(WORKLOADS["nexmark-q11"])]
    assert names == [
        *("Bettong, resident", "Bettong, micro-batch", "bytewax", "Quix Streams"),
        *("Spark Structured Streaming", "PyFlink"),
    ]


def test_what_is_said_to_be_compiled_is() -> None:
    assert {query.number for query in QUERIES.values() if query.compiled} == COMPILED & {
        query.number for query in QUERIES.values()
    }
