"""Compiled windows emit the early results of plain Python, byte for byte, and the same final ones as without."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong.application.windows.kinds import Ephemeral, Ranges, Sessions, WindowKind
from bettong.errors import StateChangedError
from bettong.worker import firing_bounds
from bettong.worker.balance import balance, differences
from bettong.worker.exclusions import ExcludedTimer, Exclusion
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import program
from bettong.worker.state.pane_table import PaneTable
from tests.samples.both_speeds import LATES, STEPS, fitting_cases, frames_of, same
from tests.samples.compiled_windows import OUT, Sales
from tests.samples.dying_workers import check_deaths
from tests.samples.early_windows import EARLY, GRIDS, KINDS, UNIT_NS, described, message, ready
from tests.samples.state_tables import small_increments
from tests.samples.timers import tick as tick_of
from tests.samples.worker import data, dead_letters, fold, results, worker

FAR_NS = 10**7
SAMPLED = [(sample, kind) for sample in ("values", "gathered") for kind in KINDS] + [
    ("filled", kind) for kind in GRIDS
]
CLOCKS = st.lists(st.integers(0, 3000), min_size=50, max_size=50)


@settings(max_examples=150)
@given(
    of=st.sampled_from(SAMPLED),
    late=st.sampled_from(LATES),
    steps=STEPS,
    frames=st.lists(st.integers(1, 9), min_size=1, max_size=50),
    clocks=CLOCKS,
    crashes=st.sets(st.integers(0, 49)),
)
def test_early_results_are_those_of_plain_python(
    of: tuple[str, WindowKind],
    late: str,
    steps: list[tuple[int, int, int]],
    frames: list[int],
    clocks: list[int],
    crashes: set[int],
) -> None:
    """Frames of several messages that are judged by the watermark before the frame; workers restored in between."""
    python, compiled = (worker(ready(*of, late, compiled=speed)) for speed in (False, True))
    log_ns = 0
    for number, (messages, watermark) in enumerate(frames_of(steps, frames, partial(message, of[0])), 1):
        log_ns += clocks[number]
        frame = data("in/x", number, messages, watermark_ns=UNIT_NS * watermark, ingest_ns=log_ns)
        same(python, compiled, frame)
        assert compiled.due_ns == python.due_ns
        if number in crashes:
            saved = compiled.snapshot()
            compiled = worker(ready(*of, late, compiled=True))
            compiled.restore(saved)
            assert (compiled.snapshot(), compiled.due_ns) == (saved, python.due_ns)
        for shop in ("s1", "s2", "s3"):
            assert kept(compiled, shop) == kept(python, shop)
    same(python, compiled, tick_of(FAR_NS))
    assert compiled.keys == table_of(compiled).panes.live == 0


def table_of(one: PartitionWorker) -> PaneTable:
    table = one.tables["windows"]
    assert isinstance(table, PaneTable)
    return table


def kept(one: PartitionWorker, shop: str) -> Any:
    """The state of a key: its timers, and which windows have changed. Not the accumulators."""
    state = one.tables["windows"].state_of(shop)
    if state is None:
        return None
    windows = [
        sorted(state.get("panes", ())),
        sorted(state.get("changed", ())),
        [(*each[:2], each[3]) for each in state.get("sessions", ())],
    ]
    return state["due"], state["early"], windows


@pytest.mark.parametrize(("kind", "late"), fitting_cases(KINDS))
def test_a_crash_at_any_record_changes_nothing(kind: WindowKind, late: str) -> None:
    """The next worker restores the saved increments, and replays the records since then."""
    chance, values, watermark = Random(7), list[bytes](), 20
    for number in range(1, 41):
        messages = [
            message(
                "values",
                chance.randrange(5),
                max(0, watermark + chance.randrange(-75, 15)),
                10 * number + each,
            )
            for each in range(chance.randrange(1, 4))
        ]
        watermark += chance.choice([0, 1, 3, 12])
        values.append(
            data(
                "in/x",
                number,
                messages,
                previous=0,
                watermark_ns=UNIT_NS * watermark,
                ingest_ns=800 * number,
            )
        )
    with small_increments():
        python = worker(ready("values", kind, late, compiled=False))
        outputs = [fold(python, [value]) for value in values]
        compiled, deaths = check_deaths(ready("values", kind, late, compiled=True), values, outputs, chance)
        assert compiled.counters == python.counters
        assert compiled.accounts.now() == python.accounts.now()
        assert not differences(balance({python.id: python.accounts.now()}, is_at_rest=True))
    assert deaths > 10
    finals = Counter(each.final for found in outputs for each in results(found, OUT, Sales))
    assert finals[True] > 1
    assert finals[False] > 1


@pytest.mark.parametrize("kind", [GRIDS[0], GRIDS[3], KINDS[-1], Ephemeral(900, 2000)])
@pytest.mark.parametrize("options", [(None, EARLY), (EARLY, None)])
def test_open_windows_without_early_results_are_not_gone_on_with_as_such_with_them(
    kind: WindowKind, options: tuple[timedelta | None, timedelta | None]
) -> None:
    """They have another state schema, as in plain Python; the delay of early results may change."""
    for speed in (False, True):
        before, after, longer = (
            worker(ready("values", kind, "drop", early, compiled=speed))
            for early in (*options, timedelta(microseconds=2))
        )
        fold(before, [data("in/x", 1, [message("values", 1, 5, 1)], ingest_ns=10)])
        with pytest.raises(StateChangedError, match="early by log clock"):
            after.restore(before.snapshot())
        if options[0] is not None:
            longer.restore(before.snapshot())
            assert kept(longer, "s1") == kept(before, "s1")


@pytest.mark.parametrize("kind", [GRIDS[0], Ephemeral(1000, 0), Sessions(400, 0)])
def test_early_results_of_keys_that_are_gone_are_not_due(kind: WindowKind) -> None:
    """Of so many that their times lie in several blocks."""
    python, compiled = (worker(ready("values", kind, "drop", compiled=speed)) for speed in (False, True))
    for number, (at, watermark_ns, ingest_ns) in enumerate([(5, 0, 100), (25, 2000, 500)], 1):
        messages = [message("values", shop, at, shop) for shop in range(number, 2500, 2)]
        frame = data("in/x", number, messages, watermark_ns=watermark_ns, ingest_ns=ingest_ns)
        same(python, compiled, frame)
    assert (python.keys, python.due_ns, compiled.due_ns) == (1249, 1500, 1500)


@pytest.mark.parametrize("sample", ["filled", "values"])
@pytest.mark.parametrize("kind", [Ranges(1000, 1000, 0, 0), Ranges(2000, 1000, 0, 0)])
@pytest.mark.parametrize(
    "timer", [b"", b'{"key":"s1","timer":"early","at":1500}', b'{"key":"s1","timer":"due","at":3000}']
)
def test_early_results_beyond_the_bound_of_a_record_or_left_out_are_dead_letters(
    sample: str, kind: Ranges, timer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They count as firings of windows."""
    monkeypatch.setattr(firing_bounds, "FIRINGS_MAX", 8)
    stage = described(sample, kind, "drop").stages[0]
    python, compiled = (worker(program(stage, compiled=speed)) for speed in (False, True))
    for one in (python, compiled):
        left_out = ExcludedTimer("windows", timer, "windows", "killed the worker")
        one.exclusions = {1: Exclusion(1, timers=(left_out,), is_logged=True)} if timer else {}
    times = {1: [5, 25, *range(40, 140, 10)], 2: [1, 41], 3: [*range(5, 95, 10), 300]}
    first = [message(sample, key, at, key) for key, each in times.items() for at in each]
    same(python, compiled, data("in/x", 1, first, watermark_ns=0, ingest_ns=500))
    found = same(python, compiled, tick_of(FAR_NS))
    reasons = Counter("fired 8 times" in each.reason for each in dead_letters(found))
    assert reasons[True] >= 4
    assert compiled.keys == 0
