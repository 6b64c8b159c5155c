"""Every aggregate in every kind of window is what a plain calculation over its messages gives, restored or not."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong import Application
from bettong.application.windows.kinds import Ranges
from bettong.testing import END, run
from bettong.worker.output.framing import OutputRecord
from bettong.worker.stage_program import StageProgram
from tests.samples.both_speeds import parts_of
from tests.samples.every_aggregate import RESULTS, Facts, Plain, by_windows, every, rounded
from tests.samples.timers import tick
from tests.samples.windows import KINDS, Amount, Values
from tests.samples.worker import data, fold, python, results, worker

OPTIONS: dict[str, dict[str, Any]] = {
    "drop": {},
    "fire": {"late": "fire"},
    "oldest": {"late": "oldest"},
    "early": {"early": timedelta(microseconds=1)},
}
CASES = [
    (kind, option)
    for kind in KINDS
    for option in OPTIONS
    if (kind != "counts" or option == "drop") and (kind != "ephemeral" or option != "oldest")
]
# Of each message: its key, how far its time is ahead of the watermark, its value, by how much the watermark rises.
STEPS = st.lists(
    st.tuples(st.integers(1, 2), st.integers(-14, 25), st.integers(-9, 9), st.integers(0, 6)),
    min_size=1,
    max_size=40,
)


@cache
def ready(kind: str, option: str, *, is_plain: bool) -> StageProgram:
    return python(by_windows(KINDS[kind], Plain() if is_plain else every(), **OPTIONS[option]))


def facts(records: list[OutputRecord]) -> list[Facts]:
    return list(map(rounded, results(records, RESULTS, Facts)))


@pytest.mark.parametrize(("kind", "option"), CASES)
@settings(max_examples=40)
@given(steps=STEPS, crashes=st.sets(st.integers(0, 39)))
def test_aggregates_are_what_a_plain_calculation_gives(
    kind: str, option: str, steps: list[tuple[int, int, int, int]], crashes: set[int]
) -> None:
    """A record for each message, and TICKs of both clocks; workers that are restored in between."""
    plain, one = (worker(ready(kind, option, is_plain=each)) for each in (True, False))
    watermark_ns = clock_ns = 0
    for number, (key, ahead_ns, value, forward_ns) in enumerate(steps, 1):
        amount = Amount(key, max(0, watermark_ns + ahead_ns), value)
        watermark_ns += forward_ns
        clock_ns += 400 * forward_ns
        log = [
            data("in/x", number, [amount], ingest_ns=clock_ns, watermark_ns=watermark_ns),
            tick(clock_ns + 1, watermark_ns),
        ]
        assert facts(fold(one, log)) == facts(fold(plain, log))
        if number in crashes:
            saved = one.snapshot()
            one = worker(ready(kind, option, is_plain=False))
            one.restore(saved)
            assert one.snapshot() == saved
    assert facts(fold(one, [tick(10**9, 10**6)])) == facts(fold(plain, [tick(10**9, 10**6)]))
    assert one.keys == plain.keys == 0
    assert one.counters == plain.counters


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(
    found=st.lists(
        st.tuples(st.integers(1, 2), st.integers(0, 40), st.integers(-9, 9)), min_size=1, max_size=30
    ),
    cuts=st.sets(st.integers(1, 29)),
)
def test_aggregates_are_the_same_however_messages_are_cut_into_frames(
    kind: str, found: list[tuple[int, int, int]], cuts: set[int]
) -> None:
    amounts = [Amount(*each) for each in found]
    parts = parts_of(amounts, cuts)
    outcomes = []
    for frames in (parts, [amounts]):
        one = worker(ready(kind, "drop", is_plain=False))
        log = [data("in/x", number, frame, watermark_ns=0) for number, frame in enumerate(frames, 1)]
        outcomes.append(facts(fold(one, [*log, tick(10**9, 10**6)])))
    assert outcomes[0] == outcomes[1]


class Combining(Values):
    """Counts how often it is called."""

    def __init__(self) -> None:
        self.calls = 0

    def combine(self, left: list[int], right: list[int]) -> list[int]:
        self.calls += 1
        return super().combine(left, right)[-1:]


@pytest.mark.parametrize("panes", [2, 64])
@pytest.mark.parametrize("frame_messages", [1, 16])
def test_a_firing_costs_at_most_three_calls_however_many_panes_a_window_has(
    panes: int, frame_messages: int
) -> None:
    """One message a slide, and as many windows as lie in four times their size."""
    aggregation = Combining()
    app = Application("meters")
    source = app.source("in", schema=Amount, key="key", event_time="at")
    source.window(Ranges(panes * 10, 10, 0, 0), aggregation, name="seen").sink("out")
    amounts = [Amount(1, number * 10, number) for number in range(4 * panes)]
    frames = [amounts[first : first + frame_messages] for first in range(0, len(amounts), frame_messages)]
    outputs = run(app, [("in", each) for each in frames], until=END).outputs["out"]
    assert len(outputs) == 5 * panes - 1
    assert 0 < aggregation.calls <= 3 * len(outputs)
