"""Top, Distinct, ApproxDistinct and Quantile over columns equal those of plain Python, byte for byte."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import product
from random import Random
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong import Application, ApplicationError
from bettong.application.windows.kinds import Counts, Ephemeral, Ranges, Sessions, WindowKind
from bettong.errors import SnapshotError
from bettong.schema.fields import Kind
from bettong.worker.partition import PartitionWorker
from bettong.worker.state.pane_pool import VALUES
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.windows.value_hashes import hashes_of
from tests.samples.both_speeds import (
    LATES,
    STEPS,
    fitting_cases,
    folded,
    frames_of,
    one_by_one,
    outcome_of,
    parts_of,
    same,
)
from tests.samples.dying_workers import check_deaths
from tests.samples.gathering_windows import (
    GATHERED,
    LATE,
    OUT,
    RANKS,
    Gathered,
    Ranks,
    Reading,
    described,
    reading,
    ready,
    words_in_use,
)
from tests.samples.lateness import Client
from tests.samples.state_tables import small_increments
from tests.samples.timers import tick as tick_of
from tests.samples.worker import data, fold, results, worker

FAR_NS = 10**7
TUMBLING, DELAYED = Ranges(40, 40, 0, 0), Ranges(70, 70, 3, 50)
SLIDING, MANY_PANES = Ranges(60, 20, 0, 5), Ranges(45, 10, 3, 0)
# The log clock depends on how messages are batched into frames, so one timeout lasts until the end.
GROUPS, LASTING, EPHEMERAL = Counts(5, 60), Counts(9, 8000), Ephemeral(50, 60)
SESSIONS, DELAYED_SESSIONS = Sessions(9, 0), Sessions(11, 25)
# Which windows of which aggregates.
CASES: list[tuple[WindowKind, Any]] = [
    (TUMBLING, Gathered),
    (DELAYED, Gathered),
    (SLIDING, Gathered),
    (MANY_PANES, Gathered),
    (TUMBLING, Ranks),
    (SLIDING, Ranks),
    (LASTING, Gathered),
    (LASTING, Ranks),
    (EPHEMERAL, Gathered),
    (EPHEMERAL, Ranks),
    (SESSIONS, Gathered),
    (DELAYED_SESSIONS, Ranks),
]
TIMED = [(GROUPS, Gathered), (GROUPS, Ranks)]


def table_of(one: PartitionWorker) -> PaneTable:
    table = one.tables["readings"]
    assert isinstance(table, PaneTable)
    return table


@settings(max_examples=80)
@given(
    case=st.sampled_from([*CASES, *TIMED]),
    late=st.sampled_from(LATES),
    steps=STEPS,
    frames=st.lists(st.integers(1, 9), min_size=1, max_size=50),
    crashes=st.sets(st.integers(0, 49)),
)
def test_gathering_windows_over_columns_are_those_of_plain_python(
    case: tuple[WindowKind, Any],
    late: str,
    steps: list[tuple[int, int, int]],
    frames: list[int],
    crashes: set[int],
) -> None:
    """Frames of several messages that are judged by the watermark before the frame; workers restored in between."""
    kind, result = case
    python, compiled = (worker(ready(kind, late, result, compiled=speed)) for speed in (False, True))
    for number, (messages, watermark_ns) in enumerate(frames_of(steps, frames, reading), 1):
        frame = data("in/x", number, messages, watermark_ns=watermark_ns, ingest_ns=11 * number)
        same(python, compiled, frame)
        if number in crashes:
            saved = compiled.snapshot()
            compiled = worker(ready(kind, late, result, compiled=True))
            compiled.restore(saved)
            assert compiled.snapshot() == saved
    same(python, compiled, tick_of(FAR_NS))
    assert compiled.keys == table_of(compiled).panes.live == 0


@settings(max_examples=25)
@given(
    case=st.sampled_from(CASES),
    late=st.sampled_from(["drop", "fire", "side"]),
    found=st.lists(st.tuples(st.integers(1, 9), st.integers(-60, 9)), min_size=1, max_size=40),
    cuts=st.sets(st.integers(1, 39)),
)
def test_neither_cuts_nor_partitions_nor_the_speed_change_what_gathering_windows_give(
    case: tuple[WindowKind, Any], late: str, found: list[tuple[int, int]], cuts: set[int]
) -> None:
    messages = one_by_one(found, reading)
    parts = parts_of(messages, cuts)
    expected = outcome(case, late, [[each] for each in messages], 1, compiled=False)
    for partitions in (1, 3):
        assert outcome(case, late, parts, partitions, compiled=True) == expected
    assert outcome(case, late, [messages], 1, compiled=True) == expected


def outcome(
    case: tuple[WindowKind, Any], late: str, parts: list[list[Reading]], partitions: int, *, compiled: bool
) -> tuple[Any, ...]:
    """All output, unordered."""
    kind, result = case
    client, of = (
        Client(described(kind, late, result), partitions),
        ready(kind, late, result, compiled=compiled),
    )
    found = folded(client, of, parts, partitions, end_ns=FAR_NS)
    return outcome_of(found, (OUT, result), (LATE, Reading))


@pytest.mark.parametrize(
    ("case", "late"),
    [(case, late) for case in [*CASES, *TIMED] for _, late in fitting_cases([case[0]])],
)
def test_a_crash_at_any_record_changes_nothing_of_what_windows_gather(
    case: tuple[WindowKind, Any], late: str
) -> None:
    """The next worker restores the saved increments, and replays the records since then."""
    (kind, result), chance, values, watermark_ns = case, Random(7), list[bytes](), 20
    for number in range(1, 46):
        found = [
            reading(chance.randrange(7), max(0, watermark_ns + chance.randrange(-75, 45)), 10 * number + each)
            for each in range(chance.randrange(1, 9))
        ]
        watermark_ns += chance.choice([0, 1, 3, 12])
        values.append(
            data("in/x", number, found, previous=0, watermark_ns=watermark_ns, ingest_ns=9 * number)
        )
    with small_increments():
        python = worker(ready(kind, late, result, compiled=False))
        outputs = [fold(python, [value]) for value in values]
        compiled, deaths = check_deaths(ready(kind, late, result, compiled=True), values, outputs, chance)
        assert deaths > 9
        assert compiled.counters == python.counters
        assert compiled.accounts.now() == python.accounts.now()


@pytest.mark.parametrize(("kind", "fired"), [(TUMBLING, 5), (SLIDING, 11), (Sessions(20, 0), 3)])
def test_many_different_values_are_gathered_as_in_plain_python(kind: WindowKind, fired: int) -> None:
    """More registers than are kept one by one, and more buckets than a quantile may have; restored in between.

    The last frame makes one session of two.
    """
    chance = Random(3)
    python, compiled = (worker(ready(kind, "drop", Gathered, compiled=each)) for each in (False, True))
    for number in range(30):
        # Registers of the first and the last time are so few that they are kept one by one.
        times = {7: 80, 8: 0, 507: 80, 508: 0}
        found = [
            replace(
                reading(
                    1 + (each > 950), times.get(each, 40 if number == 29 else (20, 59)[number % 2]), 13 * each
                ),
                amount=chance.randrange(2**40),
                took=chance.choice([-1, 1]) * 2.0 ** chance.uniform(-900, 900),
                name=f"n{chance.randrange(7000)}",
                ratio=0.5 * number,
                large=number,
            )
            for each in range(1000)
        ]
        same(python, compiled, data("in/x", number + 1, found, watermark_ns=0))
        if number % 7 == 3:
            saved = compiled.snapshot()
            compiled = worker(ready(kind, "drop", Gathered, compiled=True))
            compiled.restore(saved)
            assert compiled.snapshot() == saved
    shown, plain = (one.tables["readings"].state_of("s1") for one in (compiled, python))
    assert shown == plain
    names, panes, of_python = list(GATHERED), panes_in(shown), panes_in(plain)
    for of in ("amounts", "names"):
        # In the order of arrival.
        values = [[list(pane[names.index(of)]) for pane in each] for each in (panes, of_python)]
        assert values[0] == values[1]
    assert max(pane[names.index("median")][0] for pane in panes) > 0
    assert {type(pane[names.index("about_amounts")]) for pane in panes} == {str, dict}
    assert len(results(same(python, compiled, tick_of(FAR_NS)), OUT, Gathered)) == fired
    assert table_of(compiled).panes.live == words_in_use(table_of(compiled)) == 0


def panes_in(shown: Any) -> list[Any]:
    """The accumulators of a state that is shown, by time."""
    if "sessions" in shown:
        return [each[2] for each in shown["sessions"]]
    return [shown["panes"][number] for number in sorted(shown["panes"], key=int)]


@pytest.mark.parametrize("kind", [TUMBLING, SLIDING, GROUPS, Counts(130, 60), EPHEMERAL])
def test_what_windows_gather_uses_the_room_of_those_that_are_over(kind: WindowKind) -> None:
    one, used = worker(ready(kind, "drop", Gathered, compiled=True)), set[int]()
    for number in range(1, 13):
        found = [reading(each % 3, 40 * number + each % 40, each) for each in range(600)]
        fold(one, [data("in/x", number, found, watermark_ns=40 * number)])
        used.add(int(table_of(one).panes.items.arrays.used[0]))
    fold(one, [tick_of(FAR_NS)])
    assert len(used) <= 4
    assert words_in_use(table_of(one)) == 0


def test_open_gathering_windows_are_shown_as_those_of_plain_python() -> None:
    for kind, result in product((TUMBLING, LASTING, EPHEMERAL), (Ranks, Gathered)):
        python, compiled = (worker(ready(kind, "drop", result, compiled=each)) for each in (False, True))
        found = [reading(1, 5 * each, each) for each in range(8)]
        same(python, compiled, data("in/x", 1, found, watermark_ns=3))
        shown = table_of(compiled).state_of("s1")
        assert in_order(shown) == in_order(python.tables["readings"].state_of("s1"))


def in_order(shown: Any) -> str:
    """As text, because NaN does not equal itself; its order among other values is not known."""
    if isinstance(shown, dict):
        return repr(sorted((key, in_order(each)) for key, each in shown.items()))
    return repr([in_order(each) for each in shown] if isinstance(shown, list) else shown)


@pytest.mark.parametrize(
    ("kind", "values", "dtype"),
    [
        (Kind.INT, [0, 1, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63 - 1], "i8"),
        (
            Kind.INT,
            [-1, -32, -33, -128, -129, -(2**15), -(2**15) - 1, -(2**31), -(2**31) - 1, -(2**63)],
            "i8",
        ),
        (Kind.INT, [0, 200, 70000, 2**63, 2**64 - 1], "u8"),
        (Kind.INT, [-128, -1, 0, 127], "i1"),
        (Kind.BOOL, [True, False], "u1"),
        (Kind.FLOAT, [0.0, -0.0, 1.5, -3.0, 2.0**63, 2.0**64, 2.0**64 - 2048, -(2.0**63), 1e300], "f8"),
        (Kind.FLOAT, [float("inf"), float("-inf"), float("nan"), 1e-310, -0.1], "f8"),
        (Kind.FLOAT, [0.5, 3.0, -7.0, 2.0**64], "f4"),
        (Kind.TEXT, ["", "a", "é" * 20, *("x" * n for n in (31, 32, 125, 126, 127, 255, 256, 300))], "S300"),
        (Kind.BYTES, [bytes(n) + b"a" * (260 - n) for n in (0, 3, 259)], "S260"),
        (Kind.BYTES, [b"ab\0", b"\0\0\0"], "S3"),
    ],
)
def test_columns_are_hashed_as_values_are(kind: Kind, values: list[Any], dtype: str) -> None:
    raw = [each.encode() for each in values] if kind is Kind.TEXT else values
    hashes = hashes_of(kind, np.array(raw, dtype)).tolist()
    assert [divmod(each, 4096) for each in hashes] == [divmod(hash_of(each), 4096) for each in values]


def hash_of(value: Any) -> int:
    """Equal values have equal hashes."""
    if isinstance(value, float) and value.is_integer() and -(2**63) <= value < 2**64:
        value = int(value)
    packed = msgpack.packb(int(value) if isinstance(value, bool) else value)
    return int.from_bytes(blake2b(packed, digest_size=8).digest(), "little")


def test_a_snapshot_with_more_values_of_top_than_it_keeps_is_refused() -> None:
    saved = worker(ready(TUMBLING, "drop", Ranks, compiled=True))
    fold(saved, [data("in/x", 1, [reading(1, 5, each) for each in range(9)], watermark_ns=5)])
    pool = table_of(saved).panes
    assert len(pool.counters) == sum(isinstance(each, bettong.Top) for each in RANKS.values())
    for word, most in pool.counters.tolist():
        kept = int(pool.words[0, VALUES + word])
        assert 1 <= kept <= most
        for held, fits in ((0, True), (most, True), (most + 1, False), (2**62, False), (-1, False)):
            pool.words[0, VALUES + word] = held
            fresh = table_of(worker(ready(TUMBLING, "drop", Ranks, compiled=True)))
            with nullcontext() if fits else pytest.raises(SnapshotError, match="more values of an aggregate"):
                fresh.load(table_of(saved).dump(), log_ns=0, begins=True)
        pool.words[0, VALUES + word] = kept


@dataclass
class Found:
    found: list[int]


def first_of(each: Reading) -> int:
    return each.amount


@pytest.mark.parametrize(
    ("result", "found", "complaint"),
    [
        (Found, bettong.Top(3, first_of), "found=Top(...) is of a function"),
        (Found, bettong.Top(3, "amount", by=first_of), "found=Top(...): by= is a function"),
        (
            Found,
            bettong.Top(999, "amount"),
            "999 values of 16 bytes, with what they go by, take more than 4096",
        ),
    ],
)
def test_what_has_no_compiled_form_is_refused(result: Any, found: Any, complaint: str) -> None:
    source = Application("meters").source("in", schema=Reading, key="shop", event_time="at")
    made: Any = bettong.compiled(bettong.aggregate(result, found=found))
    with pytest.raises(ApplicationError) as refused:
        source.window(SLIDING, made, name="seen")
    assert complaint in str(refused.value)
