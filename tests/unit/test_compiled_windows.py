"""Windows over columns equal those of plain Python, byte for byte: results, late messages, dead letters, counters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong import Application, ApplicationError, Width
from bettong.application.execution_mode import ExecutionMode
from bettong.application.plan import plan
from bettong.application.streams import Stream
from bettong.application.windows.kinds import Counts, Ephemeral, Ranges, Sessions, WindowKind
from bettong.application.windows.windowed import Windowed
from bettong.errors import SnapshotError
from bettong.inspection.key_history import KeyHistory
from bettong.worker.balance import balance, differences
from bettong.worker.exclusions import ExcludedTimer, Exclusion
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import program
from bettong.worker.state.pane_table import PaneTable
from tests.samples.both_speeds import (
    GROUPS,
    LATES,
    STEPS,
    fitting_cases,
    folded,
    frames_of,
    one_by_one,
    outcome_of,
    parts_of,
    same,
    without_end,
)
from tests.samples.compiled_windows import LATE, OUT, Sale, Sales, described, ready, sale, windowed
from tests.samples.dying_workers import check_deaths
from tests.samples.lateness import Client
from tests.samples.state_tables import small_increments
from tests.samples.timers import tick as tick_of
from tests.samples.windows import Amount
from tests.samples.worker import FRAME_BYTES_MAX, data, dead_letters, fold, results, worker

FAR_NS = 10**6
KINDS: list[WindowKind] = [
    Ranges(10, 10, 0, 0),
    Ranges(7, 7, 3, 5),
    Ranges(12, 4, 0, 0),
    Ranges(12, 4, 1, 30),
    Ranges(9, 6, 0, 5),
    Ranges(50, 1, 0, 0),
    *GROUPS,
    Sessions(6, 0),
    Sessions(1, 0),
    Sessions(11, 20),
]
# A window that closes after all messages of tests; the log clock depends on how messages are batched.
LASTING = [Counts(3, 8000) if isinstance(kind, Counts) else kind for kind in KINDS]


def table_of(one: PartitionWorker) -> PaneTable:
    table = one.tables["sales"]
    assert isinstance(table, PaneTable)
    return table


@settings(max_examples=150)
@given(
    kind=st.sampled_from(KINDS),
    late=st.sampled_from(LATES),
    steps=STEPS,
    frames=st.lists(st.integers(1, 9), min_size=1, max_size=50),
    crashes=st.sets(st.integers(0, 49)),
)
def test_windows_over_columns_are_those_of_plain_python(
    kind: WindowKind, late: str, steps: list[tuple[int, int, int]], frames: list[int], crashes: set[int]
) -> None:
    """Frames of several messages that are judged by the watermark before the frame; workers restored in between."""
    python, compiled = (worker(ready(kind, late, compiled=speed)) for speed in (False, True))
    for number, (messages, watermark_ns) in enumerate(frames_of(steps, frames, sale), 1):
        frame = data("in/x", number, messages, watermark_ns=watermark_ns, ingest_ns=11 * number)
        same(python, compiled, frame)
        if number in crashes:
            saved = compiled.snapshot()
            compiled = worker(ready(kind, late, compiled=True))
            compiled.restore(saved)
            assert compiled.snapshot() == saved
    same(python, compiled, tick_of(FAR_NS))
    assert compiled.keys == table_of(compiled).panes.live
    assert without_end(kind) or not compiled.keys


@settings(max_examples=60)
@given(
    kind=st.sampled_from(LASTING),
    late=st.sampled_from(["drop", "fire", "side"]),
    found=st.lists(st.tuples(st.integers(1, 9), st.integers(-60, 9)), min_size=1, max_size=40),
    cuts=st.sets(st.integers(1, 39)),
)
def test_neither_cuts_nor_partitions_nor_the_speed_change_what_windows_give(
    kind: WindowKind, late: str, found: list[tuple[int, int]], cuts: set[int]
) -> None:
    messages = one_by_one(found, sale)
    parts = parts_of(messages, cuts)
    expected = outcome(kind, late, [[each] for each in messages], 1, compiled=False)
    for partitions in (1, 3, 16):
        assert outcome(kind, late, parts, partitions, compiled=True) == expected
    assert outcome(kind, late, [messages], 1, compiled=True) == expected


def outcome(
    kind: WindowKind, late: str, parts: list[list[Sale]], partitions: int, *, compiled: bool
) -> tuple[Any, ...]:
    """All output, unordered."""
    client, of = Client(described(kind, late), partitions), ready(kind, late, compiled=compiled)
    found = folded(client, of, parts, partitions, end_ns=FAR_NS)
    return outcome_of(found, (OUT, Sales), (LATE, Sale))


@pytest.mark.parametrize(("kind", "late"), fitting_cases(KINDS))
def test_a_crash_at_any_record_changes_nothing(kind: WindowKind, late: str) -> None:
    """The next worker restores the saved increments, and replays the records since then."""
    chance, values, watermark_ns = Random(7), list[bytes](), 20
    for number in range(1, 46):
        sales = [
            sale(chance.randrange(7), max(0, watermark_ns + chance.randrange(-75, 15)), 10 * number + each)
            for each in range(chance.randrange(1, 4))
        ]
        watermark_ns += chance.choice([0, 1, 3, 12])
        values.append(
            data("in/x", number, sales, previous=0, watermark_ns=watermark_ns, ingest_ns=9 * number)
        )
    with small_increments():
        python, of = worker(ready(kind, late, compiled=False)), ready(kind, late, compiled=True)
        outputs = [fold(python, [value]) for value in values]
        compiled, deaths = check_deaths(of, values, outputs, chance)
        assert compiled.counters == python.counters
        assert compiled.accounts.now() == python.accounts.now()
        assert not differences(balance({python.id: python.accounts.now()}, is_at_rest=True))
    assert deaths > 15
    assert python.counters.late > 3 or isinstance(kind, Counts)
    assert python.counters.deleted > 3
    assert python.counters.dead_letters > 3
    assert len({each.key for found in outputs for each in results(found, OUT, Sales)}) > 2


def test_panes_are_used_again_and_are_as_many_as_were_open_at_once() -> None:
    kind = Ranges(30, 10, 0, 0)
    one = worker(ready(kind, "drop", compiled=True))
    for number in range(1, 400):
        at_ns = 10 * number
        fold(one, [data("in/x", number, [sale(key, at_ns, key) for key in range(9)], watermark_ns=at_ns)])
        assert table_of(one).panes.live == 9 * min(3, number)
    assert int(table_of(one).panes.counts[0]) == 9 * 4


@pytest.mark.parametrize("kind", [Ranges(20, 5, 0, 0), Sessions(4, 0)])
def test_more_panes_and_windows_than_there_is_room_for_at_first(kind: WindowKind) -> None:
    """A key with thousands of panes, in no order, and all windows of them fire at one record."""
    chance = Random(3)
    python, compiled = (worker(ready(kind, "drop", compiled=speed)) for speed in (False, True))
    times = [5 * number for number in range(3000)]
    chance.shuffle(times)
    for number in range(6):
        part = [sale(1 + each % 2, each, each) for each in times[500 * number : 500 * number + 500]]
        same(python, compiled, data("in/x", number + 1, part, watermark_ns=0))
    assert len(results(same(python, compiled, tick_of(FAR_NS)), OUT, Sales)) > 2000
    assert table_of(compiled).panes.live == 0


@pytest.mark.parametrize("kind", [KINDS[0], Sessions(30, 0), Ephemeral(9, 20), Ephemeral(90, 0)])
def test_a_message_whose_window_ends_after_all_time_is_a_dead_letter(kind: WindowKind) -> None:
    python, compiled = (worker(ready(kind, "fire", compiled=speed)) for speed in (False, True))
    messages = [sale(1, 5, 1), sale(3, 2**63 - 20, 2), sale(2, 7, 3), sale(4, 2**63 - 1, 4)]
    assert len(dead_letters(same(python, compiled, data("in/x", 1, messages, watermark_ns=9)))) == 2
    assert compiled.keys == 2


@pytest.mark.parametrize(
    ("kind", "timer", "left_out_letters"),
    [
        (KINDS[0], b"", 3),
        (KINDS[0], b'{"key":"s1","timer":"due","at":10}', 1),
        (Sessions(8, 0), b"", 3),
        (Sessions(8, 0), b'{"key":"s1","timer":"due","at":10}', 1),
        (Counts(3, 40), b"", 3),
        (Counts(3, 40), b'{"key":"s1","timer":"timeout","at":40}', 1),
        (Ephemeral(12, 0), b"", 3),
        (Ephemeral(12, 20), b"", 6),
        (Ephemeral(12, 20), b'{"key":"s1","timer":"due","at":13}', 1),
        (Ephemeral(12, 20), b'{"key":"s1","timer":"due","at":33}', 1),
    ],
)
def test_a_window_that_is_left_out_is_a_dead_letter(
    kind: WindowKind, timer: bytes, left_out_letters: int
) -> None:
    """The session of the second key has grown since its timer was set: nothing is left out."""
    sales = [sale(key, 1, 1) for key in (1, 2, 3)]
    log = [data("in/x", 1, [*sales, sale(2, 3, 2)], watermark_ns=1), tick_of(50)]
    python, compiled = (worker(ready(kind, "drop", compiled=speed)) for speed in (False, True))
    for one in (python, compiled):
        left_out = ExcludedTimer("sales", timer, "sales", "killed the worker")
        one.exclusions = {1: Exclusion(1, timers=(left_out,), is_logged=True)}
    same(python, compiled, log[0])
    found = same(python, compiled, log[1])
    assert len(dead_letters(found)) == left_out_letters
    assert compiled.keys == 0


@pytest.mark.parametrize("kind", [KINDS[2], Sessions(6, 0), *GROUPS])
def test_open_windows_are_shown_as_those_of_plain_python(kind: WindowKind) -> None:
    """At any time: also windows that have fired, and are remembered."""
    python, compiled = (worker(ready(kind, "drop", compiled=speed)) for speed in (False, True))
    for number, at_ns in enumerate([5, 14, 7, 15, 24, 26, 20, 80], 1):
        frame = data("in/x", number, [sale(1, at_ns, at_ns)], watermark_ns=at_ns, ingest_ns=10 * number)
        same(python, compiled, frame)
        assert table_of(compiled).state_of("s1") == python.tables["sales"].state_of("s1")
        shown = {b"s1": table_of(compiled).state_of("s1")} if compiled.keys else {}
        assert dict(table_of(compiled).items()) == shown


def test_a_history_says_what_opened_and_closed_windows() -> None:
    history = KeyHistory(
        ready(KINDS[0], "drop", compiled=True), Assignment("meters", 0, 1, FRAME_BYTES_MAX), "s1", {}
    )
    log = [data("in/x", 1, [sale(1, 5, 1), sale(2, 6, 2)], watermark_ns=6), tick_of(10)]
    opened, closed = [event for offset, value in enumerate(log) for event in history.fold(offset, value)]
    assert (opened.steps[0].before, closed.steps[0].after) == (None, None)
    assert opened.steps[0].after == closed.steps[0].before
    assert opened.steps[0].after["due"] == 10


@dataclass
class Count:
    key: bettong.u32
    end: int
    count: int


COUNTS = {"count": bettong.Count()}


def test_windows_behind_compiled_windows_find_their_results_at_their_ends() -> None:
    found = []
    for compiled in (False, True):
        app = Application("meters")
        source = app.source("in", schema=Amount, key="key", event_time="at")
        small = source.window(
            Ranges(5, 5, 0, 0), bettong.compiled(bettong.aggregate(Count, **COUNTS)), name="a"
        )
        large = bettong.compiled(bettong.aggregate(Count, count=bettong.Sum("count")))
        small.window(Ranges(20, 10, 0, 0), large, name="b").sink("out")
        one = worker(program(plan(app).stages[0], compiled=compiled))
        messages = [Amount(number % 5, number // 2, 1) for number in range(90)]
        found.append(fold(one, [data("in/x", 1, messages, watermark_ns=45), tick_of(999)]))
    assert found[0] == found[1]
    assert sum(each.count for each in results(found[0], OUT, Count)) == 2 * 90


@dataclass
class Priced:
    end: int
    shop: Annotated[str, Width(5)]
    small: bettong.i16
    least: float


def test_keys_of_several_fields_are_those_of_plain_python() -> None:
    found = []
    for compiled in (False, True):
        app = Application("meters")
        stream: Any = app.source("in", schema=Sale, key=("shop", "small"), event_time="at")
        for number, price in enumerate(("price", "least")):
            made = bettong.aggregate(
                Priced, shop=bettong.First("shop"), small=bettong.Sum("small"), least=bettong.Min(price)
            )
            kind = Ranges(10 * 3**number, 10, 0, 0)
            stream = stream.window(kind, bettong.compiled(made), name=f"w{number}", late="fire")
        stream.sink("out")
        one = worker(program(plan(app).stages[0], compiled=compiled))
        sales = [replace(sale(each % 3, each, each), small=each % 5 - 2) for each in range(80)]
        late = [replace(sale(7, each, each), small=100 * each - 120) for each in (1, 2)]
        log = [
            data("in/x", 1, sales, watermark_ns=70),
            data("in/x", 2, late, watermark_ns=80),
            tick_of(FAR_NS),
        ]
        found.append([fold(one, [value]) for value in log])
        assert one.keys == 0
    assert found[0] == found[1]
    assert all(map(any, found[0]))


@dataclass
class Named:
    key: str
    count: int


@dataclass
class Wrong:
    key: Annotated[str, Width(4)]
    count: int


def of(kind: Any = KINDS[0], result: Any = Count, /, key: Any = "key", **aggregates: Any) -> Any:
    """Builds an application, and its stage."""

    def build(**options: Any) -> None:
        app = Application("meters")
        source = app.source("in", schema=Amount, key=key, event_time="at")
        made = bettong.compiled(bettong.aggregate(result, **{**COUNTS, **aggregates}))
        source.window(kind, made, name="seen", **options).sink("out")
        program(plan(app).stages[0], compiled=True)

    return build


def doubled(amount: Amount) -> int:
    return 2 * amount.value


class Twice(bettong.Sum):
    pass


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda: of(count=bettong.Min("value"))(emit_empty=True), "has no value in a window"),
        (lambda: of(bettong.counts(3))(early=timedelta(1)), "do not go by event time"),
        (of(count=Twice("value")), "count=Twice(...) has no compiled form"),
        (of(count=bettong.Sum(doubled)), "count=Sum(...) is of a function"),
        (of(count=bettong.Count(where=lambda _: True)), "count=Count(...): where= is a function"),
        (of(count=bettong.Mean("value")), "its result is float, and the field is int"),
        (of(KINDS[0], Named), "Named.key has no fixed width"),
        (of(KINDS[0], Wrong), "Wrong.key is text, and 'in' is keyed by integers"),
        (of(key=lambda amount: amount.key), "is a function; key by fields"),
        (lambda: windowed(KINDS[0], late="later"), "late='later'"),
        (lambda: bettong.vectorized(bettong.aggregate(Count, **COUNTS)), "is no plain function"),  # type: ignore[type-var]
    ],
)
def test_what_has_no_compiled_form_is_refused_before_anything_runs(
    build: Callable[[], object], complaint: str
) -> None:
    with pytest.raises(ApplicationError) as refused:
        build()
    assert complaint in str(refused.value)


def execution_mode(stream: Stream[Any]) -> ExecutionMode:
    assert isinstance(stream.node, Windowed)
    return stream.node.mode


def test_an_aggregation_runs_as_it_is_marked() -> None:
    assert execution_mode(windowed(KINDS[0])) is ExecutionMode.COMPILED
    app = Application("meters")
    source = app.source("in", schema=Amount, key="key", event_time="at")
    plain = source.window(KINDS[0], bettong.aggregate(Count, **COUNTS), name="plain")
    assert execution_mode(plain) is ExecutionMode.PYTHON


def test_a_snapshot_whose_panes_are_not_those_of_its_keys_is_refused() -> None:
    saved = worker(ready(KINDS[0], "drop", compiled=True))
    fold(saved, [data("in/x", 1, [sale(1, 5, 1), sale(2, 15, 2)], watermark_ns=5)])
    table = table_of(saved)
    states = table.dump()
    table.states["oldest"][:1] = -1
    broken = table.dump()
    fresh = table_of(worker(ready(KINDS[0], "drop", compiled=True)))
    fresh.load(states, log_ns=0, begins=True)
    assert fresh.dump() == states
    with pytest.raises(SnapshotError):
        fresh.load(broken, log_ns=0, begins=True)
