"""Timers that kill the worker, or take long, in real processes: found, left out, and nothing else lost."""

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bettong
from bettong import NEVER, Application
from bettong.application.on_error import OnError
from bettong.application.plan import plan
from bettong.worker.exclusions import ExcludedTimer, Exclusion
from bettong.worker.fired import DueTimers
from bettong.worker.halving import Death, Unknown, halved
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.progress import OWN_WORK, FoldPosition
from bettong.worker.stage_program import StageProgram, program
from bettong_processor.crashes.trial import allowed_s
from bettong_processor.crashes.watch import Watch
from tests.samples.wild_reads import wild_read
from tests.samples.worker import FRAME_BYTES_MAX, data, dead_letters, results, tick
from tests.simulation.crash_guards import guard
from tests.simulation.twins import compiled_twin
from tests.simulation.worker_lives import DONE, fold_in_a_process, lived, output
from tests.waiting import eventually

OUT = "meters.sink.out"
SEGFAULT = "killed the worker: signal 11 (SIGSEGV)"
# What a key's timer does: nothing, or it ends the process, never ends, takes some time.
WELL, KILLS, HANGS, SLOW = 0, 1, 2, 3
SLOW_S = 0.03


@dataclass(slots=True)
class Ask:
    """Sets the timer of a key, which is ten times a number and what it does."""

    key: int
    at: int


@dataclass(slots=True)
class Answer:
    key: int
    at: int


@dataclass(slots=True)
class Waiting:
    due_at: bettong.LogTimer = NEVER


def ask(message: Ask, waiting: Waiting) -> Answer | None:
    waiting.due_at = message.at
    if message.at:
        return None
    return Answer(0, 0)


def ring(fired: bettong.Fired[int], waiting: Waiting) -> Answer:
    """By the key."""
    do(fired.key % 10)
    return Answer(fired.key, fired.at)


def do(deed: int) -> None:
    if deed == KILLS:
        ctypes.string_at(0)
    if deed == HANGS:
        threading.Event().wait(60)
    if deed == SLOW:
        threading.Event().wait(SLOW_S)


def ring_compiled(fired: bettong.Fired[int], waiting: Waiting) -> Answer:
    few = np.zeros(1)
    if fired.key % 10 == 1:
        few[0] = wild_read(64)
    while fired.key % 10 == 2:
        few[0] += 1.0
    if fired.key % 10 == 3:
        for number in range(10_000_000):
            few[0] += number % 7 * few[0]
    return Answer(fired.key, fired.at + int(few[0]))


@bettong.vectorized
def ask_all(message: Ask, waiting: Waiting, keys: bettong.RowIndexes) -> None:
    asked, state = _columns(message), _columns(waiting)
    state.due_at[keys] = asked.at


@bettong.vectorized
def ring_all(fired: bettong.Fired[int], waiting: Waiting, keys: bettong.RowIndexes) -> Answer:
    due = _columns(fired)
    for key in due.key.tolist():
        do(key % 10)
    return Answer(due.key, due.at)


def _columns(message: Any) -> Any:
    return message


FORMS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "python": (ask, ring),
    "compiled": (compiled_twin(ask), compiled_twin(ring_compiled)),
    "vectorized": (ask_all, ring_all),
}


def answer(message: Answer) -> Answer:
    do(message.key % 10)
    return message


def answer_compiled(message: Answer) -> Answer:
    few = np.zeros(1)
    if message.key % 10 == 1:
        few[0] = wild_read(64)
    return Answer(message.key, message.at + int(few[0]))


def harmless(fired: bettong.Fired[int], waiting: Waiting) -> Answer:
    return Answer(fired.key, fired.at)


def ready(how: str = "python", on_error: OnError = "dead-letter") -> StageProgram:
    app = Application("meters")
    app.source("in", schema=Ask, key="key").stateful(
        FORMS[how][0], state=Waiting, timers={"due_at": FORMS[how][1]}, name="asks", on_error=on_error
    ).sink("out")
    return program(plan(app).stages[0], compiled=True)


def behind(how: str) -> StageProgram:
    """The timer itself is harmless: its result kills in the next computation."""
    app = Application("meters")
    asks = app.source("in", schema=Ask, key="key").stateful(
        ask, state=Waiting, timers={"due_at": harmless}, name="asks"
    )
    asks.map(answer if how == "python" else compiled_twin(answer_compiled), name="answers").sink("out")
    return program(plan(app).stages[0], compiled=True)


def asked(sequence: int, keys: Sequence[int], *, at: int = 50, now: int = 1) -> bytes:
    return data("in/a", sequence, [Ask(key, at) for key in keys], ingest_ns=now)


def rang(folder: Path) -> list[int]:
    return [each.key for each in results(output(folder), OUT, Answer)]


def dead(folder: Path) -> list[tuple[str, bytes, str]]:
    found = dead_letters(output(folder))
    assert all(each.fired for each in found)
    return [(each.computation, each.message, each.reason) for each in found]


def text(key: int, at: int = 50) -> bytes:
    return b'{"key":%d,"timer":"due_at","at":%d}' % (key, at)


@pytest.mark.parametrize("how", FORMS)
@pytest.mark.parametrize("of", ["a TICK", "messages"])
def test_a_timer_that_kills_is_a_dead_letter_and_all_others_fire(how: str, of: str, tmp_path: Path) -> None:
    moves = tick(60) if of == "a TICK" else asked(2, [90, 100], at=70, now=60)
    log = [asked(1, [10, 20, 31, 40, 51, 60]), moves, tick(80)]
    assert lived(ready(how), log, tmp_path) == 3
    assert dead(tmp_path) == [("asks", text(31), SEGFAULT), ("asks", text(51), SEGFAULT)]
    assert rang(tmp_path) == [10, 20, 40, 60, *([] if of == "a TICK" else [90, 100])]
    once = output(tmp_path)
    # A replay leaves out the same, whatever killed.
    assert fold_in_a_process(ready(how), log, tmp_path, 0) == DONE
    assert output(tmp_path) == once


@pytest.mark.parametrize("how", FORMS)
def test_a_timer_that_takes_too_long_is_one_too(how: str, tmp_path: Path) -> None:
    log = [asked(1, [10, 20, 32, 40]), tick(60)]
    assert lived(ready(how), log, tmp_path, 200) == 2
    assert dead(tmp_path) == [("asks", text(32), "took longer than 200 ms (BETTONG_MESSAGE_MS_MAX)")]
    assert rang(tmp_path) == [10, 20, 40]


@pytest.mark.parametrize("how", [*FORMS, "behind"])
def test_many_timers_of_one_record_are_not_taken_for_one_message(how: str, tmp_path: Path) -> None:
    """The limit is for each timer, a tenth of which takes it on a machine that does nothing else: all together take
    twice the limit.
    """
    of = behind("python") if how == "behind" else ready(how)
    keys = [10 * number + SLOW for number in range(40)]
    assert lived(of, [asked(1, keys), tick(60)], tmp_path, 500) == 1
    assert rang(tmp_path) == keys
    assert dead(tmp_path) == []


def test_a_timer_that_a_message_of_the_record_has_set_does_not_blame_the_message(tmp_path: Path) -> None:
    log = [asked(1, [10, 31, 40], at=5, now=9)]
    assert lived(ready(), log, tmp_path) == 3
    assert dead(tmp_path) == [("asks", text(31, 5), SEGFAULT)]
    assert rang(tmp_path) == [10, 40]


@pytest.mark.parametrize("how", ["python", "compiled"])
def test_what_kills_behind_a_timer_is_found_in_plain_python_and_else_costs_all_of_its_computation(
    how: str, tmp_path: Path
) -> None:
    log = [asked(1, [10, 31, 40]), asked(2, [50], at=500, now=60), tick(501)]
    assert lived(behind(how), log, tmp_path) == 3
    expected = [31] if how == "python" else [10, 31, 40]
    assert dead(tmp_path) == [("answers", text(key), SEGFAULT) for key in expected]
    assert rang(tmp_path) == ([10, 40, 50] if how == "python" else [50])


def test_behind_many_timers_that_kill_all_of_their_computation_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bettong_processor.crashes.guard._GUILTY_MAX", 2)
    log = [asked(1, [10, 11, 21, 31, 40]), tick(60), asked(2, [50], at=70, now=61), tick(71)]
    assert lived(ready(), log, tmp_path) == 3
    assert dead(tmp_path) == [("asks", text(key), SEGFAULT) for key in (10, 11, 21, 31, 40)]
    assert rang(tmp_path) == [50]


def test_with_stop_the_partition_stops_at_the_timer(tmp_path: Path) -> None:
    log = [asked(1, [10, 31]), tick(60)]
    statuses = [fold_in_a_process(ready(on_error="stop"), log, tmp_path, 0) for _ in range(4)]
    assert statuses == [-11, -11, 8, 8]
    stopped = (tmp_path / "stopped").read_text()
    assert f"'asks' (on_error=\"stop\") cannot process a timer that fired: {SEGFAULT}" in stopped
    assert text(31).decode() in stopped
    assert not (tmp_path / "exclusions").exists()


@pytest.mark.parametrize("how", ["python", "vectorized"])
def test_a_timer_that_stands_still_is_reported(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bettong_processor.crashes.watch.STANDS_S", 0.3)
    reported: list[str] = []
    own = guard(tmp_path, reported=reported)

    def wait(deed: int) -> None:
        if deed == HANGS:
            eventually(lambda: bool(reported), what="it is reported")

    monkeypatch.setitem(globals(), "do", wait)
    worker = PartitionWorker(ready(how), Assignment("meters", 0, 1, FRAME_BYTES_MAX))
    with Watch(own.at_work, own.reports, 0):
        fold = own.of(worker)
        fold(0, asked(1, [10, 32, 40]))
        fold(1, tick(60))
    what = f"a timer of 'asks': {text(32).decode()}" if how == "python" else "a timer of 'asks', one of 3"
    assert reported[0].startswith(f"in/0: offset 1, origin log/tick, sequence 0, {what}: folded for ")


@given(
    rows=st.integers(0, 12),
    guilty=st.sets(st.integers(0, 11), max_size=4),
    before=st.lists(st.integers(0, 4), max_size=4, unique=True),
    behind_rows=st.sets(st.integers(0, 11), max_size=4),
    unnamed=st.booleans(),
)
def test_halving_finds_timers_that_kill_beside_messages(
    rows: int,
    guilty: set[int],
    before: list[int],
    behind_rows: set[int],
    unnamed: bool,  # noqa: FBT001 - hypothesis fills it in
) -> None:
    """Timers of `before` fire before the messages; each message of `behind_rows` sets one that fires after them."""

    def part(indexes: Sequence[int], timers: Sequence[ExcludedTimer]) -> Death | None:
        out = {(each.owner, each.timer) for each in timers}
        for timer in before:
            if not out & {("early", b""), ("early", b"%d" % timer)}:
                return Death("x", "early", owner="early", timer=b"" if unnamed else b"%d" % timer)
        for index in indexes:
            if index in guilty:
                return Death("x", "add", index)
        for index in indexes:
            if index in behind_rows and not out & {("late", b""), ("late", b"%d" % index)}:
                return Death("x", "late", owner="late", timer=b"%d" % index)
        return None

    found = halved(7, rows, part, guilty_max=64, is_late=lambda: False)
    assert not isinstance(found, Unknown)
    left_out = dict(found.of_frame(rows)) if found is not None else {}
    assert set(left_out) == {index for index in guilty if index < rows}
    assert found is None or found.record == ""
    names = [(each.owner, each.timer) for each in found.timers] if found is not None else []
    late = [("late", b"%d" % index) for index in sorted(behind_rows - guilty) if index < rows]
    early = [("early", b"")] * bool(before) if unnamed else [("early", b"%d" % each) for each in before]
    assert sorted(names) == sorted([*early, *late])


def test_where_timers_kill_however_they_are_left_out_the_record_is() -> None:
    death = Death("x", "add", owner="add", timer=b"1")
    found = halved(7, 3, lambda *_: death, guilty_max=64, is_late=lambda: False)
    assert found == Exclusion(7, record="x")


def test_what_the_worker_does_itself_is_not_held_against_a_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding and ordering timers takes longer the more keys there are."""
    one = PartitionWorker(ready(), Assignment("meters", 0, 1, FRAME_BYTES_MAX))
    table, seen = one.tables["asks"], list[FoldPosition]()
    take_due = table.take_due

    def look(log_ns: int, watermark_ns: int) -> Sequence[DueTimers]:
        seen.append(one.progress.at())
        return take_due(log_ns, watermark_ns)

    monkeypatch.setattr(table, "take_due", look)
    one.fold(0, asked(1, [10, 20]))
    one.fold(1, tick(60))
    assert [(each.computation, each.calls) for each in seen] == [("asks", OWN_WORK)] * 2
    assert allowed_s(200, 0, OWN_WORK) == 60
    assert one.progress.at().calls == 0
