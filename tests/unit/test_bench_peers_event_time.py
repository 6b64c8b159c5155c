"""The workloads of `python -m benchmarks.peers` by event time: loads, right answers, who runs them, and Bettong."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import pytest

from benchmarks.peers import event_answers
from benchmarks.peers.bettong.contestant import HERE as BETTONG
from benchmarks.peers.entries import entries_of, left_out
from benchmarks.peers.event_loads import join_load, sliding_load, timer_load, tumbling_load
from benchmarks.peers.events import (
    APPROVED,
    BOUND_MS,
    COUNT,
    EVENT,
    LEFT,
    MS_NS,
    OVERDUE,
    PAIR,
    PATIENCE_MS,
    PLACED,
    RIGHT,
    SIZE_MS,
    SLIDE_MS,
    WINDOW_MS,
    on_step,
)
from benchmarks.peers.load import INPUT
from benchmarks.peers.race import RaceError
from benchmarks.peers.roster import HERE, PEERS
from benchmarks.peers.workloads import MARKET_SPREAD, WORKLOADS, PeerWorkload
from bettong.edges.application_file import load as load_application
from bettong.testing import run
from tests.samples.peer_loads import judged, load_frames

BY_EVENT_TIME = [
    name for name, of in WORKLOADS.items() if of is not MARKET_SPREAD and not of.query and not of.at_rate
]
STARTERS = 400
FRAME_MESSAGES = 700

Event = tuple[int, int, int]


def events(seed: int, count: int, span_ms: int, values: Callable[[int], int]) -> list[Event]:
    """Messages of a few keys in the order of their times, some at the same time, and one far ahead."""
    chance = random.Random(seed)
    times_ms = sorted(chance.randrange(span_ms) for _ in range(count))
    found = [(chance.randrange(5), at * MS_NS, values(number)) for number, at in enumerate(times_ms)]
    return [*found, (0, 10 * span_ms * MS_NS, values(count))]


def packed(of: Sequence[Event]) -> list[bytes]:
    return [EVENT.pack(*event) for event in of]


def windows_of(of: Sequence[Event], size_ms: int, slide_ms: int) -> Iterator[bytes]:
    """By definition: each window that has messages and ends at or before the last one's time."""
    size_ns, slide_ns = size_ms * MS_NS, slide_ms * MS_NS
    last_ns = of[-1][1]
    counted: dict[tuple[int, int], list[int]] = defaultdict(list)
    for key, at_ns, value in of:
        first = at_ns // slide_ns * slide_ns
        for start_ns in range(first, first - size_ns, -slide_ns):
            if start_ns + size_ns <= last_ns:
                counted[key, start_ns + size_ns].append(value)
    for (key, end_ns), values in counted.items():
        yield COUNT.pack(key, end_ns, len(values), sum(values))


@pytest.mark.parametrize("seed", range(5))
def test_counts_of_windows_are_those_of_the_definition(seed: int) -> None:
    tumbling = events(seed, 300, 6 * WINDOW_MS, lambda number: number)
    assert sorted(event_answers.tumbling_counts(packed(tumbling))) == sorted(
        windows_of(tumbling, WINDOW_MS, WINDOW_MS)
    )
    # Sparse, so that slides and whole windows are empty.
    sliding = events(seed, 60, 4 * SIZE_MS, lambda number: number)
    assert sorted(event_answers.sliding_counts(packed(sliding))) == sorted(
        windows_of(sliding, SIZE_MS, SLIDE_MS)
    )


@pytest.mark.parametrize("seed", range(5))
def test_pairs_are_those_of_the_definition(seed: int) -> None:
    of = events(seed, 400, 10 * BOUND_MS, lambda number: number * 3 % 800)
    pairs = [
        PAIR.pack(key, value, other)
        for key, at_ns, value in of
        for other_key, other_ns, other in of
        if (key, value % 2, other % 2) == (other_key, 0, 1) and abs(at_ns - other_ns) <= BOUND_MS * MS_NS
    ]
    assert sorted(event_answers.pairs_within(packed(of))) == sorted(pairs)
    assert any(abs(at - other) == BOUND_MS * MS_NS for _, at, _ in of for _, other, _ in of), (
        "the bound itself"
    )


@pytest.mark.parametrize("seed", range(5))
def test_overdue_orders_are_those_of_the_definition_and_of_the_peers_rule(seed: int) -> None:
    # Times are sixths of the patience, so some messages come just when a timer is due.
    chance = random.Random(seed)
    tick_ns = PATIENCE_MS * MS_NS // 6
    times = sorted(chance.randrange(100) for _ in range(100))
    of = [(chance.randrange(5), at * tick_ns, chance.choice((PLACED, APPROVED))) for at in times]
    of += [(key, 1000 * tick_ns, APPROVED) for key in range(5)]
    by_key = [[event for event in of if event[0] == key] for key in range(5)]
    overdue = [
        OVERDUE.pack(key, at_ns + PATIENCE_MS * MS_NS)
        for steps in by_key
        for (key, at_ns, kind), (_, next_ns, _) in pairwise(steps)
        if kind == PLACED and next_ns >= at_ns + PATIENCE_MS * MS_NS
    ]
    assert sorted(event_answers.overdue_orders(packed(of))) == sorted(overdue)
    assert any(
        next_ns == at_ns + PATIENCE_MS * MS_NS
        for steps in by_key
        for (_, at_ns, kind), (_, next_ns, _) in pairwise(steps)
        if kind == PLACED
    ), "a message when the timer is due"

    waiting: dict[int, int | None] = {}
    by_rule = []
    for key, at_ns, kind in of:
        waiting[key], overdue_ns = on_step(at_ns, kind, waiting.get(key))
        if overdue_ns is not None:
            by_rule.append(OVERDUE.pack(key, overdue_ns))
    assert sorted(by_rule) == sorted(overdue)


@pytest.mark.parametrize("name", BY_EVENT_TIME)
def test_a_load_is_in_order_and_says_when_everybody_has_started(name: str) -> None:
    of = WORKLOADS[name].load(10_000)
    records = of.opening + of.timed
    unpacked = [EVENT.unpack(record.value) for record in records]
    times = [at_ns for _, at_ns, _ in unpacked]
    assert times == sorted(times)
    assert [record.time_ms * MS_NS for record in records] == times
    assert [record.key for record in records] == [b"%d" % key for key, _, _ in unpacked]
    assert {record.topic for record in records} == set(of.topics)
    assert len({record.key for record in of.opening}) == STARTERS
    assert 0 < of.opening_results < of.results
    assert len(of.timed) == of.timed_messages >= 10_000
    last_ns = times[-1]
    assert len({key for key, at_ns, _ in unpacked if at_ns >= last_ns - MS_NS}) >= STARTERS, "a bell"


def test_the_bell_closes_every_window_but_its_own() -> None:
    for load, covering in ((tumbling_load, 1), (sliding_load, SIZE_MS // SLIDE_MS)):
        of = load(10_000).of_race()
        bell_ms = of.timed[-1].time_ms
        before = [record for record in of.opening + of.timed if record.time_ms < bell_ms]
        counted = sum(COUNT.unpack(result)[2] for results in of.expected.values() for result in results)
        assert counted == covering * len(before)
        assert len(before) == 10_000 + 2 * STARTERS


def test_the_sides_of_the_join_are_topics_and_its_bell_gives_a_pair_for_each_starter() -> None:
    of = join_load(10_000).of_race()
    assert of.topics == (LEFT, RIGHT)
    assert {EVENT.unpack(record.value)[2] % 2 for record in of.timed if record.topic == LEFT} == {0}
    values = [EVENT.unpack(record.value)[2] for record in of.opening + of.timed]
    assert len(set(values[2 * STARTERS : -2 * STARTERS])) == 10_000, "so a pair is there once"
    last = [PAIR.unpack(results[-1]) for results in of.expected.values()]
    assert sum(left >= 20_000 for _, left, _ in last) == STARTERS


def test_the_bell_of_the_timers_lets_nobody_wait() -> None:
    of = timer_load(10_000)
    last: dict[int, int] = {}
    for message in of.opening + of.timed:
        key, at_ns, _ = EVENT.unpack(message)
        last[key] = at_ns
    assert set(last.values()) == {EVENT.unpack(of.timed[-1])[1]}


@pytest.mark.parametrize("name", BY_EVENT_TIME)
def test_bettongs_application_gives_the_right_answer(name: str) -> None:
    of = WORKLOADS[name].load(10_000)
    app = load_application(str(BETTONG / f"{WORKLOADS[name].module}.py"))
    outcome = run(app, list(load_frames(of, FRAME_MESSAGES)))
    (results,) = (each for sink, each in outcome.outputs.items() if sink != "dead-letters")
    judged(of, results)
    assert not outcome.dead_letters
    with pytest.raises(RaceError, match="not the right ones"):
        judged(of, results[1:])


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_everybody_has_a_program_or_says_why_not(workload: PeerWorkload) -> None:
    name = workload.name
    assert (BETTONG / f"{workload.module}.py").is_file()
    for peer in PEERS:
        assert not (name in peer.programs and name in peer.lacks)
        if name in peer.programs:
            assert (HERE / peer.folder / f"{peer.programs[name]}.py").is_file()


def test_who_has_no_such_operator_is_left_out_with_a_reason_and_its_version() -> None:
    timers = WORKLOADS["timers"]
    assert left_out(timers) == {"Quix Streams": "Quix Streams has no timers (3.28.1)"}
    names = [entry.name for entry in entries_of(timers)]
    assert names == ["Bettong, resident", "Bettong, micro-batch", "bytewax", "PyFlink"]
    assert not left_out(MARKET_SPREAD)
    assert {INPUT} == set(MARKET_SPREAD.load(10_000).topics)
