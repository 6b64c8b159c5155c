"""Windows that kill the worker, in real processes: found, left out, and nothing else is lost."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from bettong import Application, Window
from bettong.application.plan import plan
from bettong.application.windows.kinds import Counts, Ephemeral, Ranges, Sessions, WindowKind
from bettong.worker.exclusions import ExcludedTimer, Exclusion
from bettong.worker.partition import PartitionWorker
from bettong.worker.progress import FoldPosition
from bettong.worker.stage_program import StageProgram, program
from tests.samples.timers import tick as tick_of
from tests.samples.windows import OUT, Amount, Seen, Values
from tests.samples.worker import data, dead_letters, fold, results, worker
from tests.simulation.worker_lives import DONE, fold_in_a_process, lived, output

SEGFAULT = "killed the worker: signal 11 (SIGSEGV)"
KILLS = 13


class Deadly(Values):
    """A window with the value 13 kills when it gives its result; the message 31 when it is added."""

    def update(self, accumulator: list[int], amount: Amount) -> list[int]:
        if amount.value == 31:
            ctypes.string_at(0)
        return super().update(accumulator, amount)

    def output(self, key: int, accumulator: list[int], window: Window) -> Seen | None:
        if KILLS in accumulator:
            ctypes.string_at(0)
        return super().output(key, accumulator, window)


KINDS: dict[str, tuple[WindowKind, int]] = {
    "tumbling": (Ranges(10, 10, 0, 0), 10),
    "sessions": (Sessions(9, 0), 12),
    "ephemeral": (Ephemeral(8, 0), 10),
    "counts": (Counts(3, 50), 51),
}


def ready(kind: WindowKind, *, deadly: bool = True) -> StageProgram:
    app = Application("meters")
    source = app.source("in", schema=Amount, key="key", event_time="at")
    source.window(kind, Deadly() if deadly else Values(), name="seen").sink("out")
    return program(plan(app).stages[0], compiled=False)


def log_of(*, guilty: int) -> list[bytes]:
    """Keys 1 to 4, of which 3 has the guilty message; all windows are over with the second record."""
    amounts = [Amount(key, 2, guilty if key == 3 else key) for key in (1, 2, 3, 4)]
    again = data("in/x", 2, [Amount(3, 60, 7)], ingest_ns=61, watermark_ns=60)
    return [data("in/x", 1, amounts, ingest_ns=1, watermark_ns=2), tick_of(60, 55), again, tick_of(120, 99)]


@pytest.mark.parametrize("name", KINDS)
def test_a_window_that_kills_is_a_dead_letter_and_does_not_come_back(name: str, tmp_path: Path) -> None:
    kind, due_ns = KINDS[name]
    log, timer = log_of(guilty=KILLS), "timeout" if name == "counts" else "due"
    assert lived(ready(kind), log, tmp_path) == 3
    (dead,) = dead_letters(output(tmp_path))
    text = f'{{"key":3,"timer":"{timer}","at":{due_ns}}}'.encode()
    assert (dead.computation, dead.message, dead.reason, dead.fired) == ("seen", text, SEGFAULT, True)
    found = [(each.key, each.values) for each in results(output(tmp_path), OUT, Seen)]
    assert found == [(1, "1"), (2, "2"), (4, "4"), (3, "7")]
    once = output(tmp_path)
    assert fold_in_a_process(ready(kind), log, tmp_path, 0) == DONE
    assert output(tmp_path) == once


@pytest.mark.parametrize("name", KINDS)
def test_a_message_that_kills_in_a_window_is_a_dead_letter(name: str, tmp_path: Path) -> None:
    assert lived(ready(KINDS[name][0]), log_of(guilty=31), tmp_path) == 3
    (dead,) = dead_letters(output(tmp_path))
    assert (dead.computation, dead.index, dead.reason) == ("seen", 2, SEGFAULT)
    found = [(each.key, each.values) for each in results(output(tmp_path), OUT, Seen)]
    assert found == [(1, "1"), (2, "2"), (4, "4"), (3, "7")]


def _key(amount: Amount) -> int:
    if amount.value == 17:
        ctypes.string_at(0)
    return amount.key % 2


@pytest.mark.parametrize(("guilty", "computation"), [(31, "seen-partials"), (17, "seen-keyed")])
def test_a_message_that_kills_before_it_is_combined_is_a_dead_letter(
    guilty: int, computation: str, tmp_path: Path
) -> None:
    """31 where it is added, 17 where its key is asked for."""
    app = Application("meters")
    source = app.source("in", schema=Amount, key="key", event_time="at")
    source.local(_key).window(Ranges(10, 10, 0, 0), Deadly(), name="seen").sink("out")
    before, behind = (program(stage, compiled=False) for stage in plan(app).stages)
    assert lived(before, log_of(guilty=guilty), tmp_path) == 3
    (dead,) = dead_letters(output(tmp_path))
    assert (dead.computation, dead.index, dead.reason) == (computation, 2, SEGFAULT)
    merging = worker(behind)
    log = [each.value for each in output(tmp_path) if each.topic == "meters.stage.seen-keyed"]
    found = [(each.key, each.values) for each in results(fold(merging, log), OUT, Seen)]
    assert found == [(0, "2 4"), (1, "1")]
    assert [key for key, _ in merging.tables["seen"].items()] == [1], "7 is in a window that is open"


@pytest.mark.parametrize("name", [*KINDS, "sliding"])
def test_rows_marked_one_by_one_give_what_they_give_together(name: str) -> None:
    """Behind it is a window of windows, which asks for event times."""
    kind = Ranges(12, 4, 0, 0) if name == "sliding" else KINDS[name][0]
    app = Application("meters")
    source = app.source("in", schema=Amount, key="key", event_time="at")
    seen = source.window(kind, Values(), name="seen")
    seen.sink("out")
    seen.map(amount_of).window(Ranges(30, 30, 0, 0), Values(), name="large").sink("larger")
    of = program(plan(app).stages[0], compiled=False)
    marks: list[FoldPosition] = []
    together, marked = worker(of), worker(of)
    marked.progress.mark = marks.append
    for value in log_of(guilty=5):
        assert fold(marked, [value]) == fold(together, [value])
        assert marked.snapshot() == together.snapshot()
    assert {each.timer for each in marks} > {b""}
    assert {each.message for each in marks} >= {0, 1, 2, 3}


def amount_of(seen: Seen) -> Amount:
    return Amount(seen.key, seen.start, len(seen.values))


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("all_of_them", [False, True])
def test_a_window_that_is_left_out_is_gone_and_those_behind_it_fire(
    *, marked: bool, all_of_them: bool
) -> None:
    of = ready(Ranges(20, 10, 0, 0), deadly=False)
    amounts = [Amount(key, at, at + key) for at in (12, 25) for key in (1, 2)]
    log = [data("in/x", 1, amounts, watermark_ns=12), tick_of(5, 99)]
    one: PartitionWorker = worker(of)
    if marked:
        one.progress.mark = lambda _: None
    timer = b"" if all_of_them else b'{"key":1,"timer":"due","at":30}'
    left_out = ExcludedTimer("seen", timer, "seen", "killed")
    one.exclusions = {1: Exclusion(1, timers=(left_out,), is_logged=True)}
    found = fold(one, log)
    dead = [each.message for each in dead_letters(found)]
    seen = [(each.key, each.end, each.values) for each in results(found, OUT, Seen)]
    if all_of_them:
        assert (len(dead), seen) == (6, [])
    else:
        assert dead == [timer]
        assert seen == [(1, 20, "13"), (2, 20, "14"), (2, 30, "14 27"), (1, 40, "26"), (2, 40, "27")]
    assert one.keys == 0
    assert fold(one, [tick_of(6, 200)]) == []
