"""The queries of examples/nexmark over a million events each, against loops over lists; `-m long -s` shows speeds."""

from __future__ import annotations

import time
from collections import Counter
from itertools import chain
from typing import Any

import pytest

import generator
from bettong.testing import END, check, clock, run, watermark
from generator import Site
from tests.samples.nexmark import (
    COMPILED,
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
from tests.samples.nexmark_answers import ANSWERS, Events, bids_of, q12

pytestmark = pytest.mark.long

EVENTS = 1_000_000
FRAME = 5000
# A hundred seconds of event time.
SITE = Site(seed=1, events_per_s=10_000, late_ms=3000)


@pytest.fixture(scope="module")
def events() -> Events:
    return list(chain.from_iterable(each.messages() for each in generator.blocks(SITE, EVENTS)))


def report(query: int, events: Events, took_s: float, found: Counter[Any], *, compiled: bool) -> None:
    sources = sources_of(application(query))
    taken = sum(source in sources for source, _ in events)
    speed = "compiled" if compiled else "Python"
    print(  # noqa: T201 - for whoever measures
        f"\nq{query} ({speed}): {taken} messages in {took_s:.1f} s, {taken / took_s:,.0f} a second;"
        f" {found.total()} rows are those of the loop"
    )


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("query", sorted(ANSWERS))
def test_a_million_events_give_what_a_loop_gives(query: int, events: Events) -> None:
    compiled = query in COMPILED
    app = ready(query, compiled=compiled)
    begun_s = time.monotonic()
    found = results(app, in_frames(application(query), events, FRAME), partitions=2)
    took_s = time.monotonic() - begun_s
    found_rows = rows(query, found)
    assert found_rows == Counter(ANSWERS[query](events))
    report(query, events, took_s, found_rows, compiled=compiled)


@pytest.mark.timeout(1200)
def test_a_million_events_that_come_in_time_are_counted_by_query_12(events: Events) -> None:
    bids = list(bids_of(events))
    begin, step = generator.BEGIN_NS, 500_000_000
    inputs: list[Any] = []
    arrivals = []
    for number, first in enumerate(range(0, len(bids), FRAME)):
        frame = bids[first : first + FRAME]
        inputs += [clock(at=begin + number * step), ("bids", frame)]
        arrivals += [(begin + number * step, bid) for bid in frame]
    begun_s = time.monotonic()
    outcome = run(application(12), [*inputs, clock(20 * 10**9)], partitions=2, compiled=True)
    took_s = time.monotonic() - begun_s
    found_rows = rows(12, outcome.outputs["bidder-counts"])
    assert found_rows == Counter(q12(arrivals))
    report(12, events, took_s, found_rows, compiled=True)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("query", sorted(set(QUERIES) - ORDERED_BY_THE_LOG))
def test_crashes_repetitions_frames_and_partitions_make_no_difference_to_more_events(query: int) -> None:
    app = application(query)
    some = generator.events(Site(seed=5, events_per_s=2, late_ms=4000), 50, 100).messages()
    case: list[Any] = one_by_one(app, some)
    if any(stage.needs_time for stage in ready(query, compiled=False).plan.stages):
        case.append(watermark(END))
    check(app, case)
