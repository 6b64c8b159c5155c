"""What compiled joins refuse: functions and messages without a compiled form, and states of other joins."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from datetime import timedelta
from typing import Annotated, Any

import numpy as np
import pytest

import bettong
from bettong import Application, ApplicationError, Width
from bettong.application.execution_mode import ExecutionMode
from bettong.application.joins.joined import Joined
from bettong.application.joins.kinds import JoinKind
from bettong.application.plan import plan
from bettong.errors import SnapshotError, StateChangedError
from bettong.worker.stage_program import program
from tests.samples.compiled_joins import (
    NEWEST,
    WINDOWS,
    WITHIN,
    Call,
    Join,
    Talk,
    call,
    described_shortly,
    joined,
    ready,
    records_of,
    table_of,
    twice,
)
from tests.samples.worker import data, fold, worker
from tests.simulation.key_joins import join_streams

JOIN = WITHIN[0]


@dataclass
class Loose:
    line: Annotated[str, Width(4)]
    at: int
    word: str


@bettong.vectorized
def columns_of(one: Call, other: Call) -> Talk:
    raise AssertionError


@bettong.compiled
def loose(one: Call, other: Loose) -> Talk | None:
    return None


@pytest.mark.parametrize(
    ("combine", "make", "complaint"),
    [
        (columns_of, lambda left, right, **of: left.join_within(right, **of), "none has a vectorized one"),
        (
            twice,
            lambda left, _, combine, **__: left.join_reference(list, combine, key="line"),
            "all but join_reference have a compiled form",
        ),
    ],
)
def test_joins_without_a_compiled_form_are_refused_when_the_application_is_built(
    combine: Any, make: Any, complaint: str
) -> None:
    app = Application("meters")
    left, right = (app.source(name, schema=Call, key="line", event_time="at") for name in ("in", "other"))
    with pytest.raises(ApplicationError, match=complaint):
        make(left, right, lower=timedelta(0), upper=timedelta(1), combine=combine)


@pytest.mark.parametrize("kind", [WITHIN[0].kind, WINDOWS[0].kind], ids=str)
@pytest.mark.parametrize(
    ("schema", "key", "combine", "complaint"),
    [
        (Loose, "line", loose, "Loose: word has no fixed width"),
        (Call, lambda call: call.line, twice, "is a function; key by fields"),
    ],
)
def test_what_has_no_fixed_width_is_refused_before_anything_runs(
    schema: Any, key: Any, combine: Any, complaint: str, kind: JoinKind
) -> None:
    app = Application("meters")
    left = app.source("in", schema=Call, key=key, event_time="at")
    right = app.source("other", schema=schema, key=key, event_time="at")
    join_streams(left, right, combine, kind, "inner", name="pairs").sink("out")
    with pytest.raises(ApplicationError) as refused:
        program(plan(app).stages[0], compiled=True)
    assert complaint in str(refused.value)


def guess(call: Call) -> bool:
    return bool(eval("call.answers"))  # noqa: S307 - no compiled code can


def test_what_says_that_a_message_deletes_is_compiled_too() -> None:
    app = Application("meters")
    calls = app.source("in", schema=Call, key="line", event_time="at")
    calls.join_latest(calls, twice, delete_when=guess, name="pairs").sink("out")
    with pytest.raises(ApplicationError, match=r"'guess' .* cannot be compiled"):
        program(plan(app).stages[0], compiled=True)


def test_a_message_with_more_fields_than_a_state_can_describe_is_refused() -> None:
    fields = [("line", Annotated[str, Width(4)]), *((f"field_{number:0>40}", int) for number in range(200))]
    wide = make_dataclass("Wide", fields)

    @bettong.compiled
    def line_of(one: Call, other: wide) -> Call | None:  # type: ignore[valid-type]
        return None

    app = Application("meters")
    calls = app.source("in", schema=Call, key="line")
    line_of.__annotations__ |= {"other": wide, "return": Call}
    calls.join_latest(app.source("table", schema=wide, key="line"), line_of, name="pairs").sink("out")
    with pytest.raises(ApplicationError, match="Wide: more fields than a saved state can describe"):
        program(plan(app).stages[0], compiled=True)


@pytest.mark.parametrize("held", [0, 1, -2])
def test_a_snapshot_of_a_table_in_which_a_key_has_no_message_is_refused(held: int) -> None:
    saved = worker(ready(NEWEST[0], compiled=True))
    fold(saved, [data("in/x", 1, [call(line, 5, line, answers=True) for line in (1, 2)])])
    table, fresh = (records_of(each) for each in (saved, worker(ready(NEWEST[0], compiled=True))))
    states = table.dump()
    fresh.load(states, log_ns=0, begins=True)
    assert fresh.dump() == states
    record = np.array(table.states[:2])
    wrong = record.copy()
    wrong["held"][1] = held
    assert record.tobytes() in states.states
    broken = states._replace(states=states.states.replace(record.tobytes(), wrong.tobytes()))
    with pytest.raises(SnapshotError, match="a key without a message"):
        fresh.load(broken, log_ns=0, begins=True)


@pytest.mark.parametrize("join", [JOIN, WINDOWS[0]], ids=described_shortly)
def test_a_join_goes_on_in_the_speed_in_which_it_was_begun(join: Join) -> None:
    node = joined(join).nodes["talks"]
    assert isinstance(node, Joined)
    assert node.mode is ExecutionMode.COMPILED
    python, compiled = (worker(ready(join, compiled=speed)) for speed in (False, True))
    fold(compiled, [data("in/x", 1, [call(1, 5, 1, answers=False)], watermark_ns=5)])
    with pytest.raises(StateChangedError, match="only by a reset"):
        python.restore(compiled.snapshot())


@pytest.mark.parametrize("word", ["left_kept", "right_kept"])
@pytest.mark.parametrize("kept", [-1, 0, 2, 2**62])
def test_a_snapshot_whose_messages_are_not_those_of_its_keys_is_refused(word: str, kept: int) -> None:
    saved = worker(ready(JOIN, compiled=True))
    messages = [call(line, 5, line, answers=answers) for line in (1, 2) for answers in (False, True)]
    fold(saved, [data("in/x", 1, messages, watermark_ns=5)])
    table = table_of(saved)
    states = table.dump()
    fresh = table_of(worker(ready(JOIN, compiled=True)))
    fresh.load(states, log_ns=0, begins=True)
    assert fresh.dump() == states
    length = len(table.states.dtype.descr) * 8
    record = np.array(table.states[:2])
    for name in table.states.dtype.names or ():
        if name.endswith(("first", "segment")):
            record[name] = 0
    wrong = record.copy()
    wrong[word][0] = kept
    assert len(record.tobytes()) == 2 * length
    assert record.tobytes() in states.states
    broken = states._replace(states=states.states.replace(record.tobytes(), wrong.tobytes()))
    with pytest.raises(SnapshotError):
        fresh.load(broken, log_ns=0, begins=True)
