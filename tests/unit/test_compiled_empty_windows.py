"""Compiled windows with `emit_empty` emit what plain Python emits, byte for byte, also without messages."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong.application.windows.kinds import Ranges
from bettong.worker import firing_bounds
from bettong.worker.balance import balance, differences
from bettong.worker.exclusions import ExcludedTimer, Exclusion
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import program
from bettong.worker.state.pane_table import PaneTable
from tests.samples.both_speeds import LATES, STEPS, folded, frames_of, one_by_one, outcome_of, parts_of, same
from tests.samples.dying_workers import check_deaths
from tests.samples.filled_windows import LATE, OUT, Filled, described, ready
from tests.samples.gathering_windows import Reading, reading
from tests.samples.lateness import Client
from tests.samples.state_tables import small_increments
from tests.samples.timers import tick as tick_of
from tests.samples.worker import data, dead_letters, fold, results, worker

FAR_NS = 10**6
KINDS = [
    Ranges(10, 10, 0, 0),
    Ranges(7, 7, 3, 5),
    Ranges(12, 4, 1, 30),
    Ranges(9, 6, 0, 5),
    Ranges(50, 1, 0, 0),
]


@settings(max_examples=100)
@given(
    kind=st.sampled_from(KINDS),
    late=st.sampled_from(LATES),
    steps=STEPS,
    frames=st.lists(st.integers(1, 9), min_size=1, max_size=50),
    crashes=st.sets(st.integers(0, 49)),
)
def test_windows_without_messages_are_those_of_plain_python(
    kind: Ranges, late: str, steps: list[tuple[int, int, int]], frames: list[int], crashes: set[int]
) -> None:
    """Frames of several messages that are judged by the watermark before the frame; workers restored in between."""
    python, compiled = (worker(ready(kind, late, compiled=speed)) for speed in (False, True))
    for number, (messages, watermark_ns) in enumerate(frames_of(steps, frames, reading), 1):
        same(python, compiled, data("in/x", number, messages, watermark_ns=watermark_ns))
        if number in crashes:
            saved = compiled.snapshot()
            compiled = worker(ready(kind, late, compiled=True))
            compiled.restore(saved)
            assert compiled.snapshot() == saved
        for shop in ("s1", "s2", "s3"):
            assert open_panes(compiled, shop) == open_panes(python, shop)
    same(python, compiled, tick_of(FAR_NS))
    table = compiled.tables["readings"]
    assert isinstance(table, PaneTable)
    assert compiled.keys == table.panes.live == 0


def open_panes(one: PartitionWorker, shop: str) -> tuple[int, list[str]] | None:
    """When a key is due next, and its panes."""
    state = one.tables["readings"].state_of(shop)
    return None if state is None else (state["due"], sorted(state["panes"]))


@settings(max_examples=40)
@given(
    kind=st.sampled_from(KINDS),
    late=st.sampled_from(["drop", "fire", "side"]),
    found=st.lists(st.tuples(st.integers(1, 9), st.integers(-60, 90)), min_size=1, max_size=40),
    cuts=st.sets(st.integers(1, 39)),
)
def test_neither_cuts_nor_partitions_nor_the_speed_change_what_they_give(
    kind: Ranges, late: str, found: list[tuple[int, int]], cuts: set[int]
) -> None:
    messages = one_by_one(found, reading)
    parts = parts_of(messages, cuts)
    expected = outcome(kind, late, [[each] for each in messages], 1, compiled=False)
    for partitions in (1, 3, 16):
        assert outcome(kind, late, parts, partitions, compiled=True) == expected
    assert outcome(kind, late, [messages], 1, compiled=True) == expected


def outcome(
    kind: Ranges, late: str, parts: list[list[Reading]], partitions: int, *, compiled: bool
) -> tuple[Any, ...]:
    """All output, unordered."""
    client, of = Client(described(kind, late), partitions), ready(kind, late, compiled=compiled)
    found = folded(client, of, parts, partitions, end_ns=FAR_NS)
    return outcome_of(found, (OUT, Filled), (LATE, Reading))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("late", LATES)
def test_a_crash_at_any_record_changes_nothing(kind: Ranges, late: str) -> None:
    """The next worker restores the saved increments, and replays the records since then."""
    chance, values, watermark_ns = Random(7), list[bytes](), 20
    for number in range(1, 41):
        messages = [
            reading(chance.randrange(4), max(0, watermark_ns + chance.randrange(-75, 60)), 10 * number + each)
            for each in range(chance.randrange(1, 4))
        ]
        watermark_ns += chance.choice([0, 1, 3, 12])
        values.append(data("in/x", number, messages, previous=0, watermark_ns=watermark_ns))
    with small_increments():
        python, of = worker(ready(kind, late, compiled=False)), ready(kind, late, compiled=True)
        outputs = [fold(python, [value]) for value in values]
        compiled, deaths = check_deaths(of, values, outputs, chance)
        assert compiled.counters == python.counters
        assert compiled.accounts.now() == python.accounts.now()
        assert not differences(balance({python.id: python.accounts.now()}, is_at_rest=True))
    assert deaths > 10
    assert python.counters.late > 3
    given_empty = [each for found in outputs for each in results(found, OUT, Filled) if not each.count]
    assert len(given_empty) > 3


@pytest.mark.parametrize("kind", [Ranges(10, 10, 0, 0), Ranges(20, 10, 0, 0)])
@pytest.mark.parametrize("timer", [b"", b'{"key":"s1","timer":"due","at":30}'])
def test_windows_beyond_the_bound_of_a_record_or_left_out_are_dead_letters(
    kind: Ranges, timer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the bound, windows without messages are skipped, in both execution modes."""
    monkeypatch.setattr(firing_bounds, "FIRINGS_MAX", 8)
    stage = described(kind, "drop").stages[0]
    python, compiled = (worker(program(stage, compiled=speed)) for speed in (False, True))
    for one in (python, compiled):
        left_out = ExcludedTimer("readings", timer, "readings", "killed the worker")
        one.exclusions = {1: Exclusion(1, timers=(left_out,), is_logged=True)} if timer else {}
    times = {1: (1, 305, 999), 2: (1, 41), 3: (5, 95)}
    messages = [reading(key, at, key) for key, each in times.items() for at in each]
    same(python, compiled, data("in/x", 1, messages, watermark_ns=0))
    found = same(python, compiled, tick_of(FAR_NS))
    # The first key's, and those of the third key, which has ten.
    reasons = Counter("fired 8 times" in each.reason for each in dead_letters(found))
    assert reasons[True] >= 4
    assert reasons[False] == bool(timer)
    assert compiled.keys == 0
