"""One key's history: the same fold, with states before and after, outputs and failures."""

from __future__ import annotations

import json
from dataclasses import dataclass, make_dataclass
from functools import cache
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bettong
from bettong import Application, Width
from bettong.application.plan import StageInput, plan
from bettong.errors import LogTruncatedError, SnapshotError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, encode
from bettong.frames.refused import Refused, pack
from bettong.identifiers import Origin, SequenceNumber
from bettong.inspection.key_history import Event, KeyHistory, StateChange
from bettong.inspection.message_keys import indexes_of, key_of
from bettong.routing import partition_of
from bettong.schema.key_types import KeyValue
from bettong.schema.schema import schema_of
from bettong.worker.exclusions import Excluded, Exclusion
from bettong.worker.partition import Assignment
from bettong.worker.stage_program import StageProgram, program
from tests.samples.worker import (
    FRAME_BYTES_MAX,
    Limit,
    Reading,
    Total,
    data,
    dead_letters,
    fold,
    meters,
    opening,
    results,
    worker,
)

ASSIGNMENT = Assignment("meters", 0, 1, FRAME_BYTES_MAX)
MODES = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "python"])


@cache
def tally(*, compiled: bool) -> StageProgram:
    """Made when a test asks for it: every process of a run reads this file, and one runs it."""
    return program(meters().stages[0], compiled=compiled)


def history(of: StageProgram, key: KeyValue, log: list[bytes]) -> tuple[KeyHistory, list[Event]]:
    found = KeyHistory(of, ASSIGNMENT, key, {})
    return found, [event for offset, value in enumerate(log) for event in found.fold(offset, value)]


def kept(total: int, count: int, least: int = 0) -> dict[str, int]:
    return {"total": total, "least": least, "count": count}


@MODES
def test_each_message_of_the_key_is_reported_with_states_and_results(*, compiled: bool) -> None:
    log = [
        opening("readings/c", 0),
        data("readings/c", 1, [Reading("a", 5), Reading("b", 1), Reading("a", 7)], ingest_ns=9),
        data("limits/c", 1, [Limit("b", 50)]),
        data("limits/c", 2, [Limit("a", 50)]),
        data("readings/c", 2, [Reading("b", 1)]),
        data("readings/c", 3, [Reading("a", 1)]),
    ]
    _, events = history(tally(compiled=compiled), "a", log)
    assert [(each.offset, each.origin, each.sequence, each.index, each.time_ns) for each in events] == [
        (1, "readings/c", 1, 0, 9),
        (1, "readings/c", 1, 2, 9),
        (3, "limits/c", 2, 0, 0),
        (5, "readings/c", 3, 0, 0),
    ]
    assert [each.steps for each in events] == [
        (StateChange("tally", None, kept(5, 1)),),
        (StateChange("tally", kept(5, 1), kept(12, 2)),),
        (StateChange("tally", kept(12, 2), kept(12, 2, 50)),),
        (StateChange("tally", kept(12, 2, 50), kept(13, 3, 50)),),
    ]
    assert json.loads(events[1].message) == {"meter": "a", "value": 7}
    result = {"meter": "a", "place": 2, "total": 12, "small": 12}
    assert [(target, json.loads(text)) for target, text in events[1].outputs] == [
        ("totals", result),
        ("places", result),
    ]
    assert events[3].outputs == (), "below the limit nothing leaves"
    assert {each.verdict for each in events} == {"taken"}


def test_what_killed_its_worker_is_reported_and_left_out_as_it_was_then() -> None:
    def same(reading: Reading) -> Reading:
        return reading

    app = Application("meters")
    readings = app.source("readings", schema=Reading, key="meter")
    readings.map(same, name="same").sink("mapped")
    readings.sink("raw")
    (stage,) = plan(app).stages
    why = "killed the worker: signal 11 (SIGSEGV)"
    left_out = {0: Exclusion(0, (Excluded(1, 2, "same", why),), is_logged=True)}
    of = KeyHistory(program(stage, compiled=False), ASSIGNMENT, "a", left_out)
    good, killing = of.fold(0, data("readings/c", 1, [Reading("a", 5), Reading("a", 7)]))
    assert (killing.failures, killing.outputs) == ((("same", "dead-letter", why),), ())
    assert sorted(target for target, _ in good.outputs) == ["mapped", "raw"]
    unread = KeyHistory(program(stage, compiled=False), ASSIGNMENT, "a", {0: Exclusion(0, record=why)})
    events = unread.fold(0, data("readings/c", 1, [Reading("a", 5), Reading("b", 1), Reading("a", 7)]))
    assert [(each.index, each.outputs) for each in events] == [(0, ()), (2, ())]
    assert [each.failures for each in events] == [((stage.name, "dead-letter", why),)] * 2


@MODES
def test_what_failed_and_what_was_skipped_is_reported(*, compiled: bool) -> None:
    frame = data("readings/c", 1, [Reading("a", 5), Reading("a", -1), Reading("a", -3), Reading("a", 1000)])
    _, events = history(
        tally(compiled=compiled), "a", [frame, frame, data("readings/c", 5, [Reading("a", 1)], previous=3)]
    )
    first = events[:4]
    assert [each.failures[0][:2] for each in first[1:]] == [("tally", "dead-letter")] * 3
    reasons = [reason for each in first for _, _, reason in each.failures]
    for reason, reported in zip(
        reasons, ("ZeroDivisionError: ", "ValueError: a negative", "'small'"), strict=True
    ):
        assert reported in reason
    # What a function had changed before it raised has stayed.
    assert [step.after["count"] for each in first for step in each.steps] == [1, 2, 3, 4]
    assert [(each.verdict, each.steps, each.outputs) for each in events[4:]] == [
        *[("duplicate", (), ())] * 4,
        ("gap", (), ()),
    ]


def test_what_the_sender_refused_of_a_frame_is_no_failure_of_the_key_at_that_index() -> None:
    refused = pack([Refused(0, "ValueError: no", b"?", as_received=True)], frame_bytes_max=FRAME_BYTES_MAX)
    log = [
        data("readings/c", 1, [Reading("a", 5)], refused=refused),
        encode(
            Frame(
                origin=Origin("readings/c"),
                sequence=SequenceNumber(2),
                previous=SequenceNumber(1),
                refused=refused,
            )
        ),
        data("readings/c", 3, [Reading("a", 1)]),
    ]
    _, events = history(tally(compiled=False), "a", log)
    assert [(each.sequence, each.failures) for each in events] == [(1, ()), (3, ())]
    assert len(dead_letters(fold(worker(tally(compiled=False)), log))) == 2


FRAMES = st.lists(
    st.lists(st.builds(Reading, st.sampled_from("abc"), st.integers(-2, 300)), min_size=1, max_size=6)
    | st.lists(st.builds(Limit, st.sampled_from("abc"), st.integers(0, 300)), min_size=1, max_size=3),
    max_size=6,
)


@MODES
@given(frames=FRAMES)
def test_the_fold_is_that_of_the_processor_whatever_key_is_looked_at(
    frames: list[list[Any]], *, compiled: bool
) -> None:
    log = [
        data("readings/c" if isinstance(frame[0], Reading) else "limits/c", index + 1, frame, previous=0)
        for index, frame in enumerate(frames)
    ]
    straight = worker(tally(compiled=compiled))
    totals = results(fold(straight, log), "meters.sink.totals", Total)
    seen: list[tuple[str, Any]] = []
    for key in "abcd":
        of, events = history(tally(compiled=compiled), key, log)
        assert of._worker.snapshot() == straight.snapshot()
        assert len(events) == sum(message.meter == key for frame in frames for message in frame)
        steps = [step for event in events for step in event.steps]
        assert [step.before for step in steps[1:]] == [step.after for step in steps[:-1]]
        if steps:
            assert steps[-1].after == straight._tables["tally"].state_of(key)
        found = [json.loads(text) for event in events for target, text in event.outputs if target == "totals"]
        assert found == [
            {name: getattr(each, name) for name in ("meter", "place", "total", "small")}
            for each in totals
            if each.meter == key
        ]
        seen += [(key, each) for each in found]
    assert len(seen) == len(totals)


def test_it_goes_on_from_a_snapshot_and_never_past_a_missing_record() -> None:
    log = [data("readings/c", number, [Reading("a", number)]) for number in range(1, 5)]
    half = worker(tally(compiled=True))
    fold(half, log[:2])
    of = KeyHistory(tally(compiled=True), ASSIGNMENT, "a", {})
    of.restore([half.snapshot()])
    (event,) = of.fold(2, log[2])
    assert event.steps[0].before == kept(3, 2)
    with pytest.raises(LogTruncatedError):
        of.fold(4, log[3])
    with pytest.raises(SnapshotError):
        KeyHistory(tally(compiled=True), ASSIGNMENT, "a", {}).restore([b"garbage"])


def test_garbage_in_the_log_is_nobodys_message() -> None:
    unrelated = data("readings/c", 1, [Limit("a", 1)])
    of, events = history(
        tally(compiled=False), "a", [b"garbage", unrelated, data("other/c", 1, [Limit("a", 1)])]
    )
    assert (events, of.next_offset) == ([], 3)


@dataclass(slots=True)
class Number:
    name: str
    value: int


def keyed(annotation: Any, *, name: str = "key") -> StageInput:
    message = make_dataclass("Message", [(name, annotation)])
    return StageInput("in", schema_of(message), name)


@pytest.mark.parametrize(
    ("annotation", "text", "key"),
    [
        (str, "a", "a"),
        (Annotated[str, Width(3)], "abc", "abc"),
        (bytes, "base64:/w==", b"\xff"),
        (Annotated[bytes, Width(3)], "a", b"a\0\0"),
        (int, "-5", -5),
        (bettong.u8, "255", 255),
        (bettong.u64, str(2**64 - 1), 2**64 - 1),
        (bool, "true", 1),
    ],
)
def test_a_key_is_read_as_its_messages_have_it_and_found_among_them(
    annotation: Any, text: str, key: KeyValue
) -> None:
    entry = keyed(annotation)
    assert key_of(entry, text) == key
    message = entry.schema.message(key if annotation is not bool else True)
    other = entry.schema.message(
        {str: "", bytes: b"", int: 0}[type(key)] if annotation is not bool else False
    )
    columns = Columns.of_messages(entry.schema, [other, message, other, message])
    assert indexes_of(entry, columns, key_of(entry, text)) == [1, 3]
    assert partition_of(columns.values(0)[1], 16) == partition_of(key_of(entry, text), 16)


@pytest.mark.parametrize(
    ("annotation", "text", "why"),
    [
        (Annotated[str, Width(3)], "abcd", "does not fit 'key'"),
        (int, "five", "'five' is no whole number"),
        (bettong.u8, "256", "does not fit 'key'"),
        (bool, "yes", "'yes' is no true or false"),
        (bytes, "base64:!", "base64|padding"),
    ],
)
def test_a_key_of_the_wrong_type_says_so(annotation: Any, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        key_of(keyed(annotation), text)


def by_length(number: Number) -> int:
    return len(number.name)


def by_bytes(number: Number) -> bytes:
    return number.name.encode()


def test_a_key_of_a_function_is_of_the_type_that_it_says() -> None:
    schema = schema_of(Number)
    columns = Columns.of_messages(schema, [Number("aa", 1), Number("b", 1)])
    for function, text, key in ((by_length, "2", 2), (by_bytes, "aa", b"aa")):
        entry = StageInput("in", schema, function)
        assert key_of(entry, text) == key
        assert indexes_of(entry, columns, key) == [0]
    assert indexes_of(StageInput("in", schema, None), columns, "aa") == []


@pytest.mark.parametrize("key", ["a", "none", "far too long", 5, b"a"])
def test_a_state_is_the_same_from_both_kinds_of_fold(key: KeyValue) -> None:
    states = []
    for compiled in (True, False):
        of = worker(tally(compiled=compiled))
        fold(of, [data("readings/c", 1, [Reading("a", 5), Reading("b", 2)])])
        states.append(of._tables["tally"].state_of(key))
        assert of.keys == 2, "looking makes no state"
    expected = kept(5, 1) if key in ("a", b"a") else None
    assert states[0] == expected
    assert states[1] == (None if key == b"a" else expected)


@MODES
def test_every_key_is_reported_with_its_state(*, compiled: bool) -> None:
    of = worker(tally(compiled=compiled))
    fold(of, [data("readings/c", 1, [Reading("abcdef", 5), Reading("b", 2), Reading("abcdef", 1)])])
    names = [b"abcdef", b"b"] if compiled else ["abcdef", "b"]
    assert list(of.tables["tally"].items()) == [(names[0], kept(6, 2)), (names[1], kept(2, 1))]
    assert list(worker(tally(compiled=compiled)).tables["tally"].items()) == []


@dataclass(slots=True)
class Signed:
    number: int
    value: bettong.u64


@dataclass(slots=True)
class Largest:
    value: int = 0


@bettong.compiled
def largest(signed: Signed, kept: Largest) -> Largest:
    kept.value = signed.number
    return Largest(kept.value)


@pytest.mark.parametrize("key", ["number", "value"])
def test_keys_that_are_numbers_are_reported_as_numbers(key: str) -> None:
    app = Application("meters")
    app.source("in", schema=Signed, key=key).stateful(largest, state=Largest).sink("out")
    of = worker(program(plan(app).stages[0], compiled=True))
    fold(of, [data("in/c", 1, [Signed(-5, 2**64 - 1), Signed(7, 3)])])
    keys = [-5, 7] if key == "number" else [2**64 - 1, 3]
    assert list(of.tables["largest"].items()) == [(keys[0], {"value": -5}), (keys[1], {"value": 7})]
    assert [of.tables["largest"].state_of(each) for each in keys] == [{"value": -5}, {"value": 7}]
