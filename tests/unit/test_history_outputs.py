"""A key's history shows what became of its messages: their steps, what left the stage, why one failed or stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from bettong import Application, Stream
from bettong.application.on_error import OnError
from bettong.application.plan import plan
from bettong.inspection.key_history import Event, KeyHistory, StateChange
from bettong.worker.partition import Assignment
from bettong.worker.stage_program import StageProgram, program
from tests.samples.worker import FRAME_BYTES_MAX, data, python


def history(of: StageProgram, key: str, log: list[bytes]) -> tuple[KeyHistory, list[Event]]:
    found = KeyHistory(of, Assignment("meters", 0, 1, FRAME_BYTES_MAX), key, {})
    return found, [event for offset, value in enumerate(log) for event in found.fold(offset, value)]


@dataclass(slots=True)
class Number:
    name: str
    value: int


@dataclass(slots=True)
class Sum:
    total: int = 0


def halves(number: Number) -> list[Number]:
    return [Number(number.name, 10 // number.value), number]


def add(number: Number, sums: Sum) -> Sum:
    sums.total += number.value
    if sums.total > 100:
        raise ValueError("too much")
    return Sum(sums.total)


def branches(on_error: OnError) -> StageProgram:
    """In -> {raw, halves -> add -> sums}."""
    app = Application("meters")
    numbers = app.source("in", schema=Number, key="name")
    numbers.sink("raw")
    numbers.flat_map(halves, on_error=on_error).stateful(add, state=Sum, on_error=on_error).sink("sums")
    return program(plan(app).stages[0], compiled=False)


def test_a_message_that_becomes_several_rows_has_a_step_for_each() -> None:
    _, (event,) = history(branches("skip"), "a", [data("in/c", 1, [Number("b", 1), Number("a", 5)])])
    assert event.steps == (
        StateChange("add", None, {"total": 2}),
        StateChange("add", {"total": 2}, {"total": 7}),
    )
    assert event.outputs == (("raw", event.message), ("sums", '{"total":2}'), ("sums", '{"total":7}'))


def test_what_was_skipped_is_reported_with_the_reason_that_the_processor_does_not_keep() -> None:
    _, events = history(branches("skip"), "a", [data("in/c", 1, [Number("a", 0), Number("a", 200)])])
    assert events[0].failures[0][:2] == ("halves", "skip")
    assert events[1].failures == (("add", "skip", "ValueError: too much"),)
    assert events[1].outputs == (("raw", events[1].message), ("sums", '{"total":0}'))


def test_where_the_processor_stopped_the_history_ends_with_the_reason() -> None:
    log = [data("in/c", 1, [Number("a", 5)]), data("in/c", 2, [Number("b", 1), Number("a", 200)])]
    of, events = history(branches("stop"), "a", log)
    assert of.stopped is not None
    assert "'add' (on_error=\"stop\")" in str(of.stopped)
    assert (events[-1].offset, events[-1].outputs) == (1, ())
    assert [step.after for step in events[0].steps] == [{"total": 2}, {"total": 7}]


def larger(number: Number) -> Number:
    return Number(number.name, number.value + 1)


def one_byte(number: Number) -> bytes:
    return bytes([number.value])


def digit(number: Number) -> str:
    return "0123456789"[number.value]


@pytest.mark.parametrize(
    ("leave", "target"),
    [
        (lambda merged: merged.sink("out", encoder=one_byte), "out"),
        (lambda merged: merged.key_by(digit, name="out").sink("sums"), "out"),
    ],
    ids=["sink", "key_by"],
)
def test_rows_of_merged_branches_leave_as_in_the_processor_and_a_failing_one_hides_no_other(
    leave: Callable[[Stream[Any]], object], target: str
) -> None:
    app = Application("meters")
    numbers = app.source("in", schema=Number, key="name")
    numbers.flat_map(halves, name="first").sink("some")
    leave(numbers.map(larger).merge(numbers.flat_map(halves), numbers))
    _, (good, bad) = history(
        program(plan(app).stages[0], compiled=False),
        "a",
        [data("in/c", 1, [Number("a", 5), Number("a", 300)])],
    )

    def values(event: Event) -> list[int]:
        return [json.loads(text)["value"] for name, text in event.outputs if name == target]

    assert values(good) == [6, 2, 5, 5]
    assert [name for name, _ in good.outputs] == ["some"] * 2 + [target] * 4
    # Of 301, 0, 300 and 300 one fits a byte, or a digit.
    assert values(bad) == [0]
    assert [name for name, _, _ in bad.failures] == [target] * 3


def test_what_a_frame_did_behind_the_message_that_stops_is_reported_of_no_message() -> None:
    """The computation before the one that stops has seen all of the frame, and its states are gone with the worker."""

    def positive(total: Sum) -> Sum:
        if total.total > 10:
            raise ValueError("enough")
        return total

    app = Application("meters")
    numbers = app.source("in", schema=Number, key="name")
    numbers.stateful(add, state=Sum).map(positive, on_error="stop").sink("sums")
    frame = [Number("a", 4), Number("b", 50), Number("a", 5)]
    of, (first,) = history(python(app), "a", [data("in/c", 1, frame)])
    assert (first.index, first.outputs, first.failures) == (0, (), ())
    assert first.steps == (StateChange("add", None, {"total": 4}),)
    assert of.stopped is not None
    assert (of.stopped.computation, of.stopped.index) == ("positive", 1)
    _, (stopping,) = history(python(app), "b", [data("in/c", 1, frame)])
    assert (stopping.index, stopping.steps, stopping.outputs) == (1, (), ())
    assert stopping.failures == (("positive", "stop", "ValueError: enough"),)
