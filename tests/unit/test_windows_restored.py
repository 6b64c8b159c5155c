"""Windows after a crash at any record: the same results and states, of increments in any order that a store lists."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
import structlog

import bettong
from bettong import Application
from bettong.application.plan import plan
from bettong.application.windows.kinds import Counts, Ranges
from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.identifiers import PartitionId
from bettong.inspection.key_history import KeyHistory
from bettong.snapshots.chain import Increment
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import program
from bettong_processor.programs import Programs
from bettong_processor.restoring import Restoring, WorkerLimits
from tests.samples.every_aggregate import Facts, by_windows, every
from tests.samples.state_tables import small_increments
from tests.samples.timers import tick as tick_of
from tests.samples.windows import KINDS, OUT, Amount, Seen, Values, windowed
from tests.samples.worker import FRAME_BYTES_MAX, data, fold, results, worker

SILENT = structlog.wrap_logger(structlog.ReturnLogger(), processors=[])
OPTIONS: dict[str, dict[str, Any]] = {
    "drop": {},
    "fire": {"late": "fire"},
    "oldest": {"late": "oldest"},
    "side": {"late": "side"},
    "empty": {"emit_empty": True},
    "early": {"early": timedelta(microseconds=1)},
    "aggregates": {},
}
CASES = [
    (kind, option)
    for kind in KINDS
    for option in OPTIONS
    if (kind != "counts" or option in ("drop", "aggregates"))
    and (kind != "ephemeral" or option != "oldest")
    and (kind in ("tumbling", "sliding") or option != "empty")
]


@cache
def made(kind: str, option: str) -> Programs:
    app = Application("meters")
    if option == "aggregates":
        app = by_windows(KINDS[kind], every())
    else:
        node = windowed(app, KINDS[kind], **OPTIONS[option])
        if option == "side":
            node.late.sink("late")
    of = plan(app)
    return Programs(of, {"in": program(of.stages[0], compiled=False)})


def random_log(seed: int) -> list[bytes]:
    """Few keys, some of whose messages are late; some fail; TICKs by both clocks."""
    chance, values = Random(seed), list[bytes]()
    watermark_ns, clock_ns = 20, 0
    for number in range(1, 71):
        clock_ns += chance.choice([0, 5, 30, 1000])
        if chance.random() < 0.2:
            values.append(tick_of(clock_ns, watermark_ns))
        amounts = [
            Amount(chance.randrange(7), max(0, watermark_ns + chance.randrange(-25, 15)), number)
            for _ in range(chance.randrange(1, 3))
        ]
        if number % 9 == 0:
            amounts[0].value = -1
        watermark_ns += chance.choice([0, 1, 3, 12])
        values.append(
            data("in/x", number, amounts, previous=0, ingest_ns=clock_ns, watermark_ns=watermark_ns)
        )
    return values


class ShuffledIncrements(DirectorySnapshots):
    """A store that lists increments in any order."""

    def __init__(self, path: Path, chance: Random) -> None:
        super().__init__(path)
        self._chance = chance

    def increments(self, partition: PartitionId) -> list[Increment]:
        found = super().increments(partition)
        self._chance.shuffle(found)
        return found


@pytest.mark.parametrize(
    ("kind", "option", "seed"), [(*case, number % 2) for number, case in enumerate(CASES)]
)
def test_a_crash_at_any_record_changes_neither_results_nor_states(
    tmp_path: Path, kind: str, option: str, seed: int
) -> None:
    values, chance, programs = random_log(seed), Random(seed), made(kind, option)
    with small_increments():
        straight, outputs, states = worker(programs.stages["in"]), [], []
        for value in values:
            outputs.append(fold(straight, [value]))
            states.append(straight.snapshot())
        message = Facts if option == "aggregates" else Seen
        assert sum(len(results(each, OUT, message)) for each in outputs) > 10
        assert straight.counters.deleted > 3
        assert (straight.counters.late > 3) == (kind != "counts")
        restoring = Restoring(programs, WorkerLimits(1, FRAME_BYTES_MAX), SILENT)
        store = ShuffledIncrements(tmp_path, chance)
        crashed = worker(programs.stages["in"])
        for offset, value in enumerate(values):
            assert fold(crashed, [value]) == outputs[offset]
            if chance.random() < 0.5:
                store.save(PartitionId("in", 0), *crashed.increment())
            # It dies here; the next worker replays the records since the last increment, and goes on.
            crashed = restoring.newest(store, PartitionId("in", 0))
            for again in range(crashed.next_offset, offset + 1):
                assert fold(crashed, [values[again]]) == outputs[again]
            assert crashed.snapshot() == states[offset]
            again_: PartitionWorker = worker(programs.stages["in"])
            again_.restore(states[offset])
            assert again_.snapshot() == states[offset]


def test_open_windows_are_shown_as_json_and_a_history_says_what_opened_and_closed_them() -> None:
    """What `bettong state get` and `bettong replay` show."""
    of = made("tumbling", "drop").stages["in"]
    log = [
        data("in/x", 1, [Amount(1, 5, 7), Amount(1, 14, 8), Amount(2, 6, 9)], watermark_ns=6),
        data("in/x", 2, [Amount(2, 15, 1)], watermark_ns=15),
    ]
    one = worker(of)
    fold(one, log[:1])
    opened: dict[str, Any] = {"due": 13, "early": None, "panes": {"0": [7], "1": [8]}, "changed": []}
    left: dict[str, Any] = {"due": 23, "early": None, "panes": {"1": [8]}, "changed": []}
    assert one.tables["seen"].state_of(1) == opened
    history = KeyHistory(of, Assignment("meters", 0, 1, FRAME_BYTES_MAX), 1, {})
    first, second, closed = [
        event for offset, value in enumerate(log) for event in history.fold(offset, value)
    ]
    assert first.steps[0].before is None
    assert second.steps[0].after == opened
    assert (closed.verdict, closed.steps[0].before, closed.steps[0].after) == ("time-passed", opened, left)


class NeverCombines(Values):
    """Raises where panes are combined."""

    def combine(self, left: list[int], right: list[int]) -> list[int]:
        raise ValueError(f"{left} and {right}")


def test_a_window_that_cannot_be_put_together_is_a_dead_letter_and_the_next_ones_fire() -> None:
    app = Application("meters")
    source = app.source("in", schema=Amount, key="key", event_time="at")
    source.window(Ranges(8, 4, 0, 0), NeverCombines(), name="seen").sink("out")
    one = worker(program(plan(app).stages[0], compiled=False))
    found = fold(
        one, [data("in/x", 1, [Amount(1, 4, 1), Amount(1, 8, 2), Amount(1, 20, 3)], watermark_ns=99)]
    )
    assert [each.values for each in results(found, OUT, Seen)] == ["1", "2", "3", "3"]
    assert (one.counters.dead_letters, one.keys) == (1, 0)


class Nothing(Values):
    """Windows that have no results."""

    def output(self, key: int, accumulator: list[int], window: bettong.Window) -> Seen | None:
        if accumulator[0] == 1:
            raise ValueError(f"{key} in {window}")
        return None


def test_a_group_without_a_result_is_forgotten_too() -> None:
    app = Application("meters")
    source = app.source("in", schema=Amount, key="key", event_time="at")
    source.window(Counts(2, 30), Nothing(), name="seen").sink("out")
    one = worker(program(plan(app).stages[0], compiled=False))
    fold(one, [data("in/x", 1, [Amount(key, 5, value) for value in (1, 2) for key in (1, 2)])])
    fold(one, [data("in/x", 2, [Amount(3, 5, 4), Amount(3, 5, 5)])])
    assert (one.keys, one.counters.dead_letters) == (0, 2)
    fold(one, [tick_of(1000, 5)])
    assert one.counters.dead_letters == 2, "no timeout of theirs is left"
