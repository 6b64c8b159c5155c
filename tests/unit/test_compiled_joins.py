"""Joins over columns equal those of plain Python, byte for byte: pairs, late messages, dead letters, counters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong import Application, Width
from bettong.application.joins.kinds import AsOf, How, InWindow, Latest, Within, in_window
from bettong.application.plan import plan
from bettong.application.windows.kinds import Ranges, Sessions
from bettong.frames.frame import tick_record
from bettong.identifiers import Origin
from bettong.inspection.key_history import KeyHistory
from bettong.testing import CRASH, check, watermark
from bettong.worker.balance import balance, differences
from bettong.worker.joins.as_of import SPARE_VERSIONS
from bettong.worker.partition import Assignment
from bettong.worker.stage_program import program
from tests.samples.both_speeds import parts_of
from tests.samples.compiled_joins import (
    AGEING,
    NEWEST,
    OUT,
    VERSIONS,
    WINDOWS,
    WITHIN,
    Call,
    Join,
    Reply,
    Talk,
    call,
    described,
    described_shortly,
    joined,
    ready,
    records_of,
    reported,
    same,
    table_of,
    twice,
)
from tests.samples.dying_workers import check_deaths
from tests.samples.joins import late_of
from tests.samples.lateness import Client
from tests.samples.state_tables import small_increments
from tests.samples.timers import tick as tick_of
from tests.samples.worker import FRAME_BYTES_MAX, data, dead_letters, fold, results, worker

FAR_NS = 10**6
JOINS = [*WITHIN, *VERSIONS, *NEWEST, *WINDOWS]
# Each a line, which side it is of, how far its time is ahead of the watermark, and by how much that rises behind it.
STEPS = st.lists(
    st.tuples(st.integers(1, 3), st.booleans(), st.integers(-40, 30), st.integers(-9, 25)),
    min_size=1,
    max_size=60,
)


@settings(max_examples=240)
@given(
    join=st.sampled_from([*JOINS, *AGEING]),
    steps=STEPS,
    frames=st.lists(st.integers(1, 9), min_size=1, max_size=50),
    crashes=st.sets(st.integers(0, 49)),
    sources=st.sampled_from([1, 2]),
)
def test_joins_over_columns_are_those_of_plain_python(
    join: Join, steps: list[tuple[int, bool, int, int]], frames: list[int], crashes: set[int], sources: int
) -> None:
    """Frames of several messages that are judged by the watermark before the frame; workers restored in between."""
    python, compiled = (worker(ready(join, compiled=speed, sources=sources)) for speed in (False, True))
    watermark_ns, taken = 0, 0
    for number, size in enumerate(frames, 1):
        messages = list[Call]()
        for line, answers, ahead_ns, forward_ns in steps[taken : taken + size]:
            at_ns = max(0, watermark_ns + ahead_ns)
            messages.append(call(line, at_ns, taken + len(messages), answers=answers))
            watermark_ns += max(0, forward_ns) // size
        taken += size
        if not messages:
            break
        source = ("in", "other")[number % sources]
        times = {"watermark_ns": watermark_ns, "ingest_ns": watermark_ns + 1}
        same(python, compiled, data(f"{source}/x", number, messages, previous=0, **times))
        if number in crashes:
            saved = compiled.snapshot()
            compiled = worker(ready(join, compiled=True, sources=sources))
            compiled.restore(saved)
            assert compiled.snapshot() == saved
    same(python, compiled, tick_of(FAR_NS))
    if sources == 1 and isinstance(join.kind, Within | InWindow):
        assert compiled.keys == 0
    if sources == 1 and isinstance(join.kind, Within):
        assert [side.live for side in table_of(compiled).pool.sides] == [0, 0]


@settings(max_examples=100)
@given(
    join=st.sampled_from(JOINS),
    found=st.lists(st.tuples(st.integers(1, 9), st.booleans(), st.integers(-60, 9)), min_size=1, max_size=40),
    cuts=st.sets(st.integers(1, 39)),
)
def test_neither_cuts_nor_partitions_nor_the_speed_change_what_joins_give(
    join: Join, found: list[tuple[int, bool, int]], cuts: set[int]
) -> None:
    """In each execution mode, the order of results of messages and of timers depends on where records end."""
    messages, newest_ns = list[Call](), 0
    for number, (line, answers, ahead_ns) in enumerate(found):
        messages.append(call(line, max(0, newest_ns + ahead_ns), number, answers=answers))
        newest_ns = max(newest_ns, messages[-1].at)
    parts = parts_of(messages, cuts)
    alone = [[each] for each in messages]
    for cut, partitions in ((parts, 1), (parts, 3), ([messages], 1)):
        measure = cut if isinstance(join.kind, Within) and join.how != "inner" else alone
        expected = outcome(join, measure, partitions, compiled=False)
        assert outcome(join, cut, partitions, compiled=True) == expected


def outcome(join: Join, parts: list[list[Call]], partitions: int, *, compiled: bool) -> tuple[Any, ...]:
    """All output, by key in order."""
    client, of = Client(described(join), partitions), ready(join, compiled=compiled)
    workers = [worker(of, partition=each, partitions=partitions) for each in range(partitions)]
    records = [
        record
        for number, part in enumerate(parts, 1)
        for partition, value in client.send(part, 1000 + number)
        for record in fold(workers[partition], [value])
    ]
    end = tick_record("in", 10_000, {Origin("in/a"): FAR_NS})
    records += [record for each in workers for record in fold(each, [end])]
    kept = sum(each.keys for each in workers)
    assert kept == 0 or not isinstance(join.kind, Within | InWindow)
    return (
        sorted(results(records, OUT, Talk), key=lambda each: each.line),
        Counter(repr(each) for schema in (Call, Reply) for each in late_of(records, schema)),
        Counter(reported(records)[1]),
        sum(each.counters.late for each in workers),
        kept,
    )


@pytest.mark.parametrize(
    "join",
    [
        Join(Within(-2000, 7000)),
        Join(Within(-2000, 7000), "outer"),
        Join(AsOf(3000), "left"),
        *NEWEST[1:3],
        Join(in_window("join", Ranges(9000, 3000, 0, 0)), "left"),
        Join(in_window("join", Sessions(2000, 0)), "outer"),
    ],
    ids=described_shortly,
)
def test_nothing_that_must_make_no_difference_makes_one(join: Join) -> None:
    app = joined(join, key="line")
    messages = [
        call(number % 3, 1000 * (number - 9 * (number % 7 == 6)) + 9000, number, answers=number % 5 < 2)
        for number in range(24)
    ]
    behind = [] if isinstance(join.kind, Latest) else [watermark(10**6)]
    check(app, [*(("in", each) for each in messages), CRASH, *behind])


@pytest.mark.parametrize("join", [*JOINS, *AGEING], ids=described_shortly)
def test_a_crash_at_any_record_changes_no_join(join: Join) -> None:
    """The next worker restores the saved increments, and replays the records since then."""
    chance, values, watermark_ns = Random(7), list[bytes](), 200
    far_ns = join.kind.upper_ns - join.kind.lower_ns if isinstance(join.kind, Within) else 10
    for number in range(1, 61):
        messages = [
            call(
                chance.randrange(7),
                max(0, watermark_ns + chance.randrange(chance.choice([-75 - far_ns, -12, -12]), 15)),
                10 * number + each,
                answers=chance.random() < 0.5,
            )
            for each in range(chance.randrange(1, 6))
        ]
        watermark_ns += chance.choice([0, 1, 3, 30])
        times = {"watermark_ns": watermark_ns, "ingest_ns": watermark_ns}
        values.append(data("in/x", number, messages, previous=0, **times))
    with small_increments():
        python, of = worker(ready(join, compiled=False)), ready(join, compiled=True)
        records = [fold(python, [value]) for value in values]
        outputs = [reported(each) for each in records]
        compiled, deaths = check_deaths(of, values, outputs, chance, shown=reported)
        assert compiled.counters == python.counters
        assert compiled.accounts.now() == python.accounts.now()
        assert not differences(balance({python.id: python.accounts.now()}, is_at_rest=True))
    assert deaths > 15
    assert python.counters.late > 3 or isinstance(join.kind, Latest)
    assert python.counters.deleted > 3 or join in (VERSIONS[0], VERSIONS[1], NEWEST[0], AGEING[0])
    assert (python.counters.expired > 3) == (join.lifetime is not None)
    if far_ns > 3:
        assert python.counters.dead_letters > 2
        assert len({each.line for found in records for each in results(found, OUT, Talk)}) > 3


@pytest.mark.parametrize("how", ["inner", "outer"])
def test_a_busy_key_keeps_no_more_rows_than_twice_what_it_needs(how: How) -> None:
    """Messages out of order among hundreds that are kept, in one frame with a hundred partners, and far behind.

    Few answers: of the pairs, which plain Python makes one by one, there are enough.
    """
    join, chance = Join(Within(0, 500), how), Random(3)
    python, compiled = (worker(ready(join, compiled=speed)) for speed in (False, True))
    pool, found = table_of(compiled).pool, list[Talk]()
    for frame in range(1, 31):
        messages = [
            call(1, 100 * frame + chance.randrange(100), 200 * frame + number, answers=chance.random() < 0.02)
            for number in range(100)
        ]
        records = same(python, compiled, data("in/x", frame, messages, watermark_ns=100 * frame))
        found += results(records, OUT, Talk)
    assert len(found) > 9_000
    assert 300 < sum(side.live for side in pool.sides) < 1500
    assert pool.used < 4 * 1500
    same(python, compiled, tick_of(FAR_NS))
    assert compiled.keys == 0
    assert [side.live for side in pool.sides] == [0, 0]


def test_versions_are_kept_while_somebody_may_ask_for_them_and_no_longer() -> None:
    """A hundred versions a key at once, of which several have one time, and messages that wait for most of them."""
    join, chance = VERSIONS[1], Random(5)
    python, compiled = (worker(ready(join, compiled=speed)) for speed in (False, True))
    pool, most = table_of(compiled).pool, 0
    for frame in range(1, 41):
        messages = [
            call(
                chance.randrange(2),
                40 * frame + chance.randrange(-60, 90),
                100 * frame + number,
                answers=number % 4 > 0,
            )
            for number in range(60)
        ]
        behind_ns = 2000 if frame < 20 else 0
        same(python, compiled, data("in/x", frame, messages, watermark_ns=max(0, 40 * frame - behind_ns)))
        most = max(most, pool.sides[True].live)
    assert most > 400
    same(python, compiled, tick_of(FAR_NS))
    assert pool.sides[False].live == 0
    assert pool.sides[True].live <= 2 * SPARE_VERSIONS
    for number in range(1, 200):
        messages = [call(0, FAR_NS + number, number, answers=True)]
        same(python, compiled, data("in/x", 40 + number, messages, watermark_ns=FAR_NS + number))
    assert pool.sides[True].live <= 2 * SPARE_VERSIONS + 1
    assert pool.used < 2 * most * 8


@pytest.mark.parametrize("join", [VERSIONS[1], NEWEST[0]], ids=str)
def test_increments_hold_what_changed_of_a_table(join: Join) -> None:
    python, of = worker(ready(join, compiled=False)), ready(join, compiled=True)
    compiled, chain = worker(of), list[bytes]()
    with small_increments():
        for number in range(1, 40):
            messages = [call(number * 7 % 30 + each, number, each, answers=True) for each in range(3)]
            same(python, compiled, data("in/x", number, messages, watermark_ns=number))
            chain.append(compiled.increment()[1])
            restored = worker(of)
            for each in chain:
                restored.restore(each)
            assert records_of(restored).dump() == records_of(compiled).dump()
    assert compiled.keys > 20


def test_rows_that_are_free_are_used_again() -> None:
    compiled = worker(ready(WITHIN[0], compiled=True))
    for number in range(1, 300):
        messages = [call(line, 10 * number, number, answers=line % 2 == 0) for line in range(9)]
        fold(compiled, [data("in/x", number, messages, watermark_ns=10 * number)])
    assert table_of(compiled).pool.used <= 9 * 2 * 4


@pytest.mark.parametrize("join", [WITHIN[0], VERSIONS[4], WINDOWS[0], WINDOWS[5]], ids=described_shortly)
def test_a_message_that_counts_after_all_time_is_a_dead_letter(join: Join) -> None:
    python, compiled = (worker(ready(join, compiled=speed)) for speed in (False, True))
    messages = [
        call(1, 5, 1, answers=False),
        call(1, 2**63 - 5, 2, answers=True),
        call(2, 7, 3, answers=False),
    ]
    dead = dead_letters(same(python, compiled, data("in/x", 1, messages, watermark_ns=9)))
    assert next(each.reason.partition(":")[2][:18] for each in dead) == " its event time is"
    assert compiled.keys == (0 if join is VERSIONS[4] else 2)


def test_a_history_says_what_was_kept() -> None:
    history = KeyHistory(
        ready(WITHIN[0], compiled=True), Assignment("meters", 0, 1, FRAME_BYTES_MAX), "l1", {}
    )
    messages = [call(1, 5, 1, answers=False), call(2, 6, 2, answers=True), call(1, 6, 3, answers=True)]
    first, second = history.fold(0, data("in/x", 1, messages, watermark_ns=6))
    assert first.steps[-1].before is None
    assert first.steps[-1].after == second.steps[-1].before
    assert second.steps[-1].after["count"] == 2


@pytest.mark.parametrize("join", [WITHIN[0], VERSIONS[1], NEWEST[3], WINDOWS[2]], ids=described_shortly)
def test_keys_of_several_fields_are_those_of_plain_python(join: Join) -> None:
    found, kept = [], []
    for compiled in (False, True):
        one = worker(program(plan(joined(join, key=("line", "small"))).stages[0], compiled=compiled))
        messages = [
            replace(call(1, each, each, answers=each % 3 == 0), small=each % 4 - 2) for each in range(40)
        ]
        found.append(fold(one, [data("in/x", 1, messages), tick_of(FAR_NS)]))
        kept.append(dict(one.tables["talks"].items()))
    assert reported(found[0]) == reported(found[1])
    assert kept[0] == kept[1]
    assert bool(kept[0]) == (join in (VERSIONS[1], NEWEST[3]))
    assert len(results(found[0], OUT, Talk)) > 9


def test_a_stream_that_is_joined_with_itself_meets_itself() -> None:
    found = []
    for compiled in (False, True):
        app = Application("meters")
        source = app.source("in", schema=Call, key="line", event_time="at")
        source.join_within(source, -timedelta(microseconds=1), timedelta(0), twice).sink("out")
        one = worker(program(plan(app).stages[0], compiled=compiled))
        messages = [call(each % 2, 400 * each, each, answers=False) for each in range(9)]
        found.append(fold(one, [data("in/x", 1, messages)]))
    assert found[0] == found[1]
    assert [(each.call, each.reply) for each in results(found[0], OUT, Talk)][:4] == [
        (0, 0),
        (1, 1),
        (2, 0),
        (2, 2),
    ]


def test_windows_behind_a_compiled_join_find_its_results_at_their_times() -> None:
    @dataclass
    class Talks:
        key: Annotated[str, Width(4)]
        end: int
        count: int

    found = []
    for compiled in (False, True):
        app = Application("meters")
        source = app.source("in", schema=Call, key="line", event_time="at")
        pairs = source.join_within(source, timedelta(0), timedelta(microseconds=1), twice)
        counted = bettong.aggregate(Talks, count=bettong.Count())
        pairs.window(bettong.tumbling(timedelta(microseconds=2)), counted, name="counted").sink("out")
        one = worker(program(plan(app).stages[0], compiled=compiled))
        messages = [call(each % 2, 400 * each, each, answers=False) for each in range(90)]
        found.append(fold(one, [data("in/x", 1, messages, watermark_ns=36_000), tick_of(FAR_NS)]))
    assert found[0] == found[1]
    assert sum(each.count for each in results(found[0], OUT, Talks)) > 100
