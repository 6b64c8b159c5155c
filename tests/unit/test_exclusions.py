"""Messages that kill the worker: found by halving, left out of the fold, and what becomes of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bettong
from bettong import Application
from bettong.application.on_error import OnError
from bettong.application.plan import plan
from bettong.errors import PoisonError
from bettong.worker.exclusions import (
    Excluded,
    ExcludedTimer,
    Exclusion,
    counting,
    decode_exclusion,
    encode_exclusion,
)
from bettong.worker.halving import Death, Unknown, halved
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import program
from tests.samples.worker import data, dead_letters, fold, results, worker

KILLED = "killed the worker: signal 11 (SIGSEGV)"


@dataclass(slots=True)
class Number:
    """Input and output."""

    group: int
    value: int


@dataclass(slots=True)
class Sum:
    """The state."""

    total: int = 0


def seen(number: Number) -> Number:
    """The first computation."""
    return number


@bettong.compiled
def add(number: Number, kept: Sum) -> Number:
    """Adds up."""
    kept.total += number.value
    return Number(number.group, kept.total)


@bettong.vectorized
def added(numbers: Number, kept: Sum, indexes: Any) -> Number:
    """The same, of all a group's numbers in a frame at once."""
    values: Any = numbers.value
    totals: Any = np.array(values)
    all_kept: Any = kept.total
    for row, index in enumerate(indexes):
        all_kept[index] += values[row]
        totals[row] = all_kept[index]
    return Number(numbers.group, totals)


def made(mode: str, on_error: OnError = "dead-letter") -> PartitionWorker:
    app = Application("meters")
    source = app.source("in", schema=Number, key="group").map(seen, name="seen")
    function = added if mode == "vectorized" else add
    source.stateful(function, state=Sum, name="add", on_error=on_error).sink("out")
    return worker(program(plan(app).stages[0], compiled=mode == "compiled"))


def frame(sequence: int, values: Sequence[int]) -> bytes:
    return data("in/a", sequence, [Number(value % 2, value) for value in values])


@pytest.mark.parametrize("mode", ["python", "compiled", "vectorized"])
def test_what_is_left_out_is_a_dead_letter_and_the_others_are_as_if_it_had_not_been(mode: str) -> None:
    of = made(mode)
    of.exclusions = {1: Exclusion(1, (Excluded(1, 3, "add", KILLED),), is_logged=True)}
    found = fold(of, [frame(1, [1, 2]), frame(2, [3, 5, 4, 7]), frame(3, [9])])
    assert [(each.index, each.computation, each.reason) for each in dead_letters(found)] == [
        (1, "add", KILLED),
        (2, "add", KILLED),
    ]
    assert [each.message for each in dead_letters(found)] == [
        b'{"group":1,"value":5}',
        b'{"group":0,"value":4}',
    ]
    without = made(mode)
    expected = fold(without, [frame(1, [1, 2]), frame(2, [3, 7]), frame(3, [9])])
    assert results(found, "meters.sink.out", Number) == results(expected, "meters.sink.out", Number)
    assert (of.counters.dead_letters, of.counters.messages) == (2, 7)


def test_on_error_of_the_computation_that_it_killed_says_what_becomes_of_it() -> None:
    why = (Excluded(0, 1, "add", KILLED),)
    skips = made("python", "skip")
    skips.exclusions = {0: Exclusion(0, why, is_logged=True)}
    assert dead_letters(fold(skips, [frame(1, [1, 2])])) == []
    assert skips.counters.skipped == 1
    stops = made("python", "stop")
    stops.exclusions = {0: Exclusion(0, why)}
    with pytest.raises(
        PoisonError, match=r"signal 11 .SIGSEGV.; stage 'in', partition 0, offset 0, .* index 0"
    ):
        fold(stops, [frame(1, [1, 2])])


def test_what_the_log_has_gone_on_from_stops_nothing_any_more() -> None:
    of = made("python", "stop")
    of.exclusions = {0: Exclusion(0, (Excluded(0, 1, "add", KILLED),), is_logged=True)}
    (dead_letter,) = dead_letters(fold(of, [frame(1, [1, 2])]))
    assert dead_letter.reason == KILLED


def test_a_record_that_cannot_even_be_read_is_one_dead_letter_as_it_was_received() -> None:
    of = made("python")
    of.exclusions = {0: Exclusion(0, record=KILLED, is_logged=True)}
    found = fold(of, [frame(1, [1, 2]), frame(2, [3])])
    (dead_letter,) = dead_letters(found)
    assert (dead_letter.reason, dead_letter.as_received, dead_letter.message) == (
        KILLED,
        True,
        frame(1, [1, 2]),
    )
    assert results(found, "meters.sink.out", Number) == [Number(1, 3)]


def test_the_users_functions_never_see_what_is_left_out() -> None:
    calls: list[int] = []

    def key(number: Number) -> int:
        calls.append(number.value)
        return number.group

    app = Application("meters")
    app.source("in", schema=Number, key=key).stateful(add, state=Sum, name="add").sink("out")
    of = worker(program(plan(app).stages[0], compiled=False))
    of.exclusions = {0: Exclusion(0, (Excluded(1, 2, "add", KILLED),), is_logged=True)}
    fold(of, [frame(1, [1, 2, 3])])
    assert calls == [1, 3]


def test_a_part_of_a_frame_is_folded_alone() -> None:
    of, straight = made("python"), made("python")
    of.fold_part(0, frame(1, [1, 2, 3]), [0, 2])
    fold(straight, [frame(1, [1, 3])])
    assert dict(of.tables["add"].items()) == dict(straight.tables["add"].items())


def test_progress_says_from_another_thread_which_message_is_at_work() -> None:
    seen_at: list[tuple[str, int | None]] = []
    marked: list[tuple[str, int | None]] = []

    def look(number: Number) -> Number:
        seen_at.append(of.progress.at()[:2])
        return number

    def drop(number: Number) -> bool:
        seen_at.append(of.progress.at()[:2])
        return number.value != 2

    def count(number: Number, _kept: Sum) -> Number:
        seen_at.append(of.progress.at()[:2])
        return number

    app = Application("meters")
    source = app.source("in", schema=Number, key="group").filter(drop, name="drop").map(look, name="look")
    source.stateful(count, state=Sum, name="count").sink("out")
    of = worker(program(plan(app).stages[0], compiled=False))
    fold(of, [frame(1, [1, 2, 3])])
    wanted = [("drop", 0), ("drop", 1), ("drop", 2), ("look", 0), ("look", 2), ("count", 0), ("count", 2)]
    assert seen_at == wanted
    of.progress.mark = lambda at: marked.append((at.computation, at.message))
    fold(of, [frame(2, [1, 2, 3])])
    assert [each for each in marked if each[1] is not None] == wanted
    assert seen_at == 2 * wanted


@given(
    rows=st.integers(0, 40),
    guilty=st.sets(st.integers(0, 39), max_size=8),
    guilty_max=st.integers(0, 5),
    names_row=st.booleans(),
)
def test_halving_finds_each_guilty_row_and_no_other(
    rows: int, guilty: set[int], guilty_max: int, *, names_row: bool
) -> None:
    guilty = {each for each in guilty if each < rows}
    folds = 0

    def fold_part(indexes: Sequence[int], timers: Sequence[ExcludedTimer] = ()) -> Death | None:
        nonlocal folds
        folds += 1
        dead = [index for index in indexes if index in guilty]
        return Death("x", f"at {dead[0]}", dead[0] if names_row else None) if dead else None

    found = halved(7, rows, fold_part, guilty_max=guilty_max, is_late=lambda: False)
    assert not isinstance(found, Unknown)
    out = dict(found.of_frame(rows)) if found is not None else {}
    assert fold_part([index for index in range(rows) if index not in out]) is None
    ordered = sorted(guilty)
    if len(ordered) <= guilty_max:
        assert sorted(out) == ordered
        assert all(why.computation == f"at {index}" for index, why in out.items())
        assert folds <= 3 + len(ordered) * (3 if names_row else 7)
    else:
        assert set(out) == {*ordered[:guilty_max], *range(ordered[guilty_max], rows)}


def test_halving_that_is_late_leaves_out_the_rest() -> None:
    def fold_part(indexes: Sequence[int], timers: Sequence[ExcludedTimer]) -> Death | None:
        return Death("x", "add") if 3 in indexes else None

    found = halved(7, 10, fold_part, guilty_max=64, is_late=lambda: True)
    assert found == Exclusion(7, (Excluded(0, 10, "add", "x"),))


def test_the_message_at_which_workers_died_is_folded_alone_first() -> None:
    """Found alone, even where folding the whole frame takes longer than a child may."""
    parts: list[list[int]] = []

    def fold_part(indexes: Sequence[int], timers: Sequence[ExcludedTimer]) -> Death | Unknown | None:
        parts.append([*indexes])
        return Unknown("slow") if len(indexes) > 5 else Death("x", "add", 9) if 9 in indexes else None

    found = halved(7, 10, fold_part, guilty_max=64, is_late=lambda: False, died_at=9)
    assert found == Exclusion(7, (Excluded(9, 10, "add", "x"),))
    assert parts[:2] == [[9], []]
    again = halved(7, 10, fold_part, guilty_max=64, is_late=lambda: False, died_at=3, known=found)
    assert again == Unknown("slow")
    assert parts[-2:] == [[3], [0, 1, 2, 3, 4, 5, 6, 7, 8]]


def test_what_was_found_before_is_part_of_what_is_found_now() -> None:
    def fold_part(indexes: Sequence[int], timers: Sequence[ExcludedTimer]) -> Death | Unknown | None:
        assert 2 not in indexes
        return Death("x", "add", 5) if 5 in indexes else None

    known = Exclusion(7, (Excluded(2, 3, "seen", "y"),), is_logged=True)
    found = halved(7, 10, fold_part, guilty_max=64, is_late=lambda: False, died_at=None, known=known)
    assert found == Exclusion(7, (*known.rows, Excluded(5, 6, "add", "x")))
    assert counting(known, found) is found
    assert counting(found, known) is found


def test_of_two_exclusions_the_first_counts_unless_the_later_one_adds_to_it() -> None:
    first = Exclusion(7, (Excluded(2, 3, "add", "x"),), timers=(ExcludedTimer("add", b"1", "add", "x"),))
    other = Exclusion(7, (Excluded(4, 5, "add", "x"),))
    more = Exclusion(7, (Excluded(1, 9, "add", "x"),), timers=(ExcludedTimer("add", b"", "add", "x"),))
    whole = Exclusion(7, record="x")
    assert counting(None, first) is first
    assert counting(first, other) is first
    assert counting(first, more) is more
    assert counting(more, first) is more
    assert counting(first, replace(first, rows=(Excluded(2, 3, "add", "y"),))) is first
    assert counting(first, whole) is whole
    assert counting(whole, more) is whole


def test_a_record_that_kills_before_its_messages_are_read_is_left_out_unread() -> None:
    found = halved(7, 10, lambda *_: Death("x", ""), guilty_max=64, is_late=lambda: False)
    assert found == Exclusion(7, record="x")


@given(
    offset=st.integers(0, 2**63 - 1),
    rows=st.lists(
        st.builds(
            Excluded, st.integers(0, 2**31), st.integers(0, 2**31), st.text(max_size=9), st.text(max_size=9)
        )
    ),
    timers=st.lists(
        st.builds(
            ExcludedTimer,
            st.text(max_size=9),
            st.binary(max_size=9),
            st.text(max_size=9),
            st.text(max_size=9),
        )
    ),
    record=st.text(max_size=9),
)
def test_what_is_decided_is_read_back(
    offset: int, rows: list[Excluded], timers: list[ExcludedTimer], record: str
) -> None:
    exclusion = Exclusion(offset, tuple(rows), record, timers=tuple(timers))
    stage, found = decode_exclusion(encode_exclusion("check", exclusion))
    assert (stage, found) == ("check", replace(exclusion, is_logged=True))
