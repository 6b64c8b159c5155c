"""The table that random graphs draw functions from: each with the ways in which it can run.

Compiling costs seconds a function, so graphs draw from this table and make none of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import bettong
from bettong import DeadLetter
from bettong.application.execution_mode import ExecutionMode
from bettong.application.timers import Clock
from bettong.application.windows.aggregated import Aggregated
from tests.simulation import dead_letter_functions as d
from tests.simulation import functions as f
from tests.simulation import join_functions as j
from tests.simulation import reference_rows as r
from tests.simulation import timer_functions as t
from tests.simulation import window_functions as w
from tests.simulation.messages import Alarm, Held, Item, Kept, Nest, Note, Part, Reminder, Span
from tests.simulation.twins import compiled_twin


@dataclass(frozen=True)
class Function:
    """`forms`: for each mode, the function of each message class; `python` is what the others must equal."""

    name: str
    kind: str
    returns: type[Any]
    forms: Mapping[ExecutionMode, Mapping[type[Any], Callable[..., Any]]]
    state: Callable[[], Any] | None = None
    many: bool = False
    # By mode, as `forms`: whether a state is to be deleted.
    delete_when: Mapping[ExecutionMode, Callable[[Any], bool]] | None = None
    # By field of the state and mode, as `forms`; in the order of the fields.
    timers: Mapping[str, Mapping[ExecutionMode, Callable[..., Any]]] = field(default_factory=dict)
    # By timer, what it goes by.
    clocks: Mapping[str, Clock] = field(default_factory=dict)
    # Of windows, by mode: what `forms` has the `update` of; and whether it has no result of no messages.
    aggregations: Mapping[ExecutionMode, Any] = field(default_factory=dict)
    needs_messages: bool = False
    # Of joins: the class of the right side, or of a reference table's rows.
    right: type[Any] | None = None

    @property
    def python(self) -> Mapping[type[Any], Callable[..., Any]]:
        """The plain functions, by what they take."""
        return self.forms[ExecutionMode.PYTHON]

    def __repr__(self) -> str:
        return self.name


def _function(
    kind: str,
    returns: type[Any],
    python: Mapping[type[Any], Callable[..., Any]],
    vectorized: Mapping[type[Any], Callable[..., Any]] | None = None,
    *,
    compiled: bool = False,
    **more: Any,
) -> Function:
    forms: dict[ExecutionMode, Mapping[type[Any], Callable[..., Any]]] = {ExecutionMode.PYTHON: python}
    if compiled:
        forms[ExecutionMode.COMPILED] = {takes: compiled_twin(function) for takes, function in python.items()}
    if vectorized is not None:
        forms[ExecutionMode.VECTORIZED] = vectorized
    name = more.pop("name", next(iter(python.values())).__name__)
    return Function(name, kind, returns, forms, **more)


def _aggregation(
    name: str, takes: type[Any], returns: type[Any], make: Callable[[], Any], *, compiled: bool = False
) -> Function:
    made = {ExecutionMode.PYTHON: make()}
    if compiled:
        made[ExecutionMode.COMPILED] = bettong.compiled(make())
    forms = {mode: {takes: each.update} for mode, each in made.items()}
    needs_messages = isinstance(made[ExecutionMode.PYTHON], Aggregated) and returns is not Span
    return Function(name, "window", returns, forms, aggregations=made, needs_messages=needs_messages)


def _join(
    returns: type[Any], python: Callable[..., Any], compiled: Callable[..., Any], right: type[Any]
) -> Function:
    """Of items on the left side. `compiled`: the same where neither message lacks."""
    forms = {ExecutionMode.PYTHON: {Item: python}, ExecutionMode.COMPILED: {Item: compiled_twin(compiled)}}
    return Function(python.__name__, "join", returns, forms, right=right)


def _is_full(kept: Kept) -> bool:
    """Raises for some, after a change of the state."""
    if kept.count == 5:
        raise ValueError("five")
    return kept.count % 3 == 0


_DELETES = {ExecutionMode.PYTHON: _is_full, ExecutionMode.COMPILED: compiled_twin(_is_full)}


_TIMERS = {
    "ring": {
        ExecutionMode.PYTHON: t.on_ring,
        ExecutionMode.COMPILED: compiled_twin(t.on_ring),
        ExecutionMode.VECTORIZED: t.all_on_ring,
    },
    "late": {
        ExecutionMode.PYTHON: t.on_late,
        ExecutionMode.COMPILED: compiled_twin(t.on_late),
        ExecutionMode.VECTORIZED: t.all_on_late,
    },
}

_TALLY: dict[type[Any], Callable[..., Any]] = {Item: f.tally, Part: f.tally_part}
_INSIDE: dict[type[Any], Callable[..., Any]] = {Item: f.keep_inside, Part: f.keep_part_inside}

FUNCTIONS: dict[str, Function] = {
    each.name: each
    for each in (
        _function("map", Part, {Item: f.shrink}, {Item: f.shrink_all}, compiled=True),
        _function("map", Item, {Part: f.grow}, {Part: f.grow_all}, compiled=True),
        _function("map", Note, {Item: f.write}, {Item: f.write_all}),
        _function("map", Note, {Item: f.label}),
        _function("map", Item, {Note: f.read}),
        _function("map", Part, {Part: f.relabel}),
        _function("map", Item, {Item: f.spoil}),
        _function("map", Part, {Part: f.spoil_part}),
        _function("map", Part, {Item: f.reuse}),
        _function("map", Item, {Item: f.lose}),
        _function("filter", Item, {Item: f.even}, {Item: f.all_even}, compiled=True),
        _function("filter", Item, {Item: f.pry}),
        _function("filter", Part, {Part: f.narrow}, {Part: f.all_narrow}),
        _function("filter", Note, {Note: f.reported}),
        _function("flat_map", Part, {Item: f.split}, {Item: f.split_all}, compiled=True),
        _function("flat_map", Part, {Item: f.halve}, {Item: f.halve_all}),
        _function("flat_map", Item, {Item: f.again}),
        _function("flat_map", Item, {Item: f.echo}),
        _function("flat_map", Part, {Note: f.spell}),
        _function(
            "stateful",
            Part,
            _TALLY,
            {Item: f.tally_all, Part: f.tally_all_parts},
            compiled=True,
            state=Kept,
        ),
        _function(
            "stateful", Part, {Item: f.steps}, {Item: f.all_steps}, compiled=True, state=Kept, many=True
        ),
        _function(
            "stateful",
            Part,
            _TALLY,
            compiled=True,
            state=Kept,
            name="tally_three",
            delete_when=_DELETES,
        ),
        _function(
            "stateful",
            Part,
            {Item: f.steps},
            compiled=True,
            state=Kept,
            many=True,
            name="steps_to_three",
            delete_when=_DELETES,
        ),
        _function(
            "stateful",
            Part,
            {Item: t.wake},
            {Item: t.wake_all},
            compiled=True,
            state=Alarm,
            timers=_TIMERS,
            clocks={"ring": Clock.LOG, "late": Clock.LOG},
        ),
        _function(
            "stateful",
            Part,
            {Item: t.wake},
            {Item: t.wake_all},
            compiled=True,
            state=Reminder,
            name="wake_in_time",
            timers=_TIMERS,
            clocks={"ring": Clock.EVENT, "late": Clock.LOG},
        ),
        _function(
            "stateful",
            Part,
            {Item: t.wake},
            compiled=True,
            state=Alarm,
            name="wake_three",
            delete_when=_DELETES,
            timers=_TIMERS,
            clocks={"ring": Clock.LOG, "late": Clock.LOG},
        ),
        _function("stateful", Part, {Item: f.nest}, compiled=True, state=Nest),
        _function("stateful", Part, _INSIDE, state=Held),
        _function("stateful", Note, {Note: f.whole}, state=lambda: Note("", 0, "")),
        _function("stateful", Item, {Item: f.hoard}, state=Held),
        _function("stateful", Part, {Item: f.pour}, state=Held, many=True),
        _function("stateful", Part, {Item: f.scatter}, state=Kept, many=True),
        _function("map", Note, {DeadLetter: d.mourn}),
        _function("filter", DeadLetter, {DeadLetter: d.unfit}),
        _function("flat_map", Item, {DeadLetter: d.recall}),
        _function("stateful", Part, {**_TALLY, DeadLetter: d.grieve}, state=Kept, name="grieve"),
        _aggregation("losses", DeadLetter, Item, d.Losses),
        _aggregation("sums", Item, Part, w.SlotSums),
        _aggregation("local_sums", Item, Part, w.LocalSums),
        _aggregation("part_sums", Part, Item, w.PartSums),
        _aggregation("sequences", Item, Item, w.Sequences),
        _aggregation("ranked", Item, Note, w.ranked),
        _aggregation("totals", Item, Part, w.totals, compiled=True),
        _aggregation("differing", Item, Part, w.differing, compiled=True),
        _aggregation("spans", Item, Span, w.spans, compiled=True),
        _aggregation("part_totals", Part, Item, w.part_totals, compiled=True),
        _join(Part, j.meet, j.meet_both, Item),
        _join(Item, j.weigh, j.weigh_both, Part),
        _function("reference", Part, {Item: r.grade}, right=r.Grade),
        _function("reference", Part, {Part: r.lift}, right=r.Place),
        _function("reference", Note, {Note: r.sign}, right=r.Grade),
        _function("reference", Item, {Item: r.move}, right=r.Place),
    )
}
