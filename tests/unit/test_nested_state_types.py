"""States of compiled functions: what an annotation is, on each Python and numpy, and in compiled code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

import bettong
from bettong import Application, ApplicationError, AtMost
from bettong.application.nodes.stateful import Stateful
from bettong.application.plan import plan
from bettong.testing import run
from bettong.worker.state.state_schemas import state_schema_of

Scalar = TypeVar("Scalar", bound=np.generic)
# As numpy from 2.5 on makes its own.
Alias: Any = TypeAliasType("Alias", NDArray[Scalar], type_params=(Scalar,))  # type: ignore[arg-type]
Alias_of_alias: Any = TypeAliasType("Alias_of_alias", Alias[np.int64])


@dataclass
class Item:
    key: int
    value: float


@dataclass
class Arrays:
    own: NDArray[np.int64] = field(default_factory=lambda: np.zeros(3, np.int64))
    alias: Alias[np.int64] = field(default_factory=lambda: np.zeros(3, np.int64))
    again: Alias_of_alias = field(default_factory=lambda: np.zeros(3, np.int64))


@bettong.compiled
def counted(item: Item, state: Arrays) -> Item:
    state.own[0] += 1
    state.alias[1] += 2
    state.again[2] += 3
    return Item(item.key, 100.0 * state.own[0] + 10 * state.alias[1] + state.again[2])


def application(function: Any, state: Any, **more: Any) -> Application:
    app = Application("meters")
    app.source("in", schema=Item, key="key").stateful(function, state=state, name="fold", **more).sink("out")
    return app


def test_an_array_is_one_by_whatever_alias_it_is_annotated() -> None:
    for compiled in (False, True):
        outcome = run(application(counted, Arrays), [("in", Item(1, 0.0))] * 2, compiled=compiled)
        assert [each.value for each in outcome.outputs["out"]] == [123.0, 246.0]


class Upward:
    """Holds a class whose name is that of another one."""

    @dataclass(frozen=True)
    class Pair:
        """Of two."""

        first: int = 0
        second: int = 0


class Downward:
    """See above."""

    @dataclass(frozen=True)
    class Pair:
        """Of two."""

        second: int = 0
        first: int = 0


UpwardPair, DownwardPair = Upward.Pair, Downward.Pair


@dataclass
class Pairs:
    upward: Annotated[list[Upward.Pair], AtMost(3)] = field(
        default_factory=lambda: [UpwardPair(first=1, second=2)]
    )
    downward: Annotated[list[Downward.Pair], AtMost(3)] = field(
        default_factory=lambda: [DownwardPair(first=1, second=2)]
    )


@bettong.compiled
def paired(item: Item, state: Pairs) -> Item:
    found = 0
    for each in state.upward:
        found = 100 * found + 10 * each.first + each.second
    for pair in state.downward:
        found = 100 * found + 10 * pair.first + pair.second
    if len(state.downward) < 3:
        state.downward.append(DownwardPair(first=5, second=6))
    return Item(item.key, 10.0 * found + state.downward[0].first)


def test_two_classes_of_one_name_are_two() -> None:
    for compiled in (False, True):
        outcome = run(application(paired, Pairs), [("in", Item(1, 0.0))] * 2, compiled=compiled)
        assert [each.value for each in outcome.outputs["out"]] == [12121.0, 1212561.0]


@dataclass
class Part:
    count: int = 0


@dataclass
class LargerPart(Part):
    more: int = 0


@dataclass
class Parts:
    part: Part = field(default_factory=LargerPart)


@bettong.compiled
def added(item: Item, state: Parts) -> Item:
    state.part.count += 1
    return Item(item.key, state.part.count)


def test_an_object_of_a_class_that_inherits_from_the_annotated_one_is_refused() -> None:
    with pytest.raises(ApplicationError, match=r"field 'part': LargerPart.* is no Part, but of LargerPart"):
        run(application(added, Parts), [("in", Item(1, 0.0))], compiled=True)


class Evaluated:
    """Annotations that are no text, as in a module without the import from `__future__`."""

    own: Any = field(default_factory=lambda: np.zeros(3, np.int64))


Evaluated.__annotations__["own"] = NDArray[np.int64]
PlainArrays: Any = dataclass(Evaluated)


@bettong.compiled
def kept(item: Item, _: Any) -> Item:
    return item


def state_layout(function: Any, state: Any, *, records: bool) -> str:
    (stage,) = plan(application(function, state)).stages
    node = stage.operators[0].node
    assert isinstance(node, Stateful)
    return str(state_schema_of(stage, node, records=records).layout)


@pytest.mark.parametrize(
    ("function", "state", "records", "layout"),
    [
        (
            paired,
            Pairs,
            True,
            "upward:list(:Upward.Pair(first:int:<i8, second:int:<i8) eq=True order=False, at most 3)",
        ),
        (kept, PlainArrays, True, "{own: ndarray = own:int64 (3,)}"),
        (kept, PlainArrays, False, "{own: ndarray of int64 (3,)}"),
    ],
)
def test_what_a_snapshot_says_of_its_states_is_the_same_on_each_python_and_numpy(
    function: Any,
    state: Any,
    records: bool,  # noqa: FBT001 - pytest fills it in
    layout: str,
) -> None:
    assert layout in state_layout(function, state, records=records)


@dataclass
class Counts:
    total: int = 0
    is_set: bool = False
    share: float = 0.0
    part: Part = field(default_factory=Part)


def half(item: Item, state: Counts) -> Item:
    state.total += 0.5  # type: ignore[assignment]
    return item


def quotient(item: Item, state: Counts) -> Item:
    state.total = 7 / 2  # type: ignore[assignment]
    return item


def infinite(item: Item, state: Counts) -> Item:
    state.total = item.value * 1e300  # type: ignore[assignment]
    return item


def flagged(item: Item, state: Counts) -> Item:
    state.is_set = item.value  # type: ignore[assignment]
    return item


def deeper(item: Item, state: Counts) -> Item:
    state.part.count += item.value  # type: ignore[assignment]
    return item


def maybe(item: Item, state: Counts) -> Item:
    found = item.value if item.value > 1 else None
    if found is not None:
        state.total = found  # type: ignore[assignment]
    return item


def set_total(state: Counts, value: Any) -> None:
    state.total = value


def called(item: Item, state: Counts) -> Item:
    set_total(state, 1)
    set_total(state, item.value)
    return item


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (half, "field 'total' of a Counts is an int64, not a float64"),
        (quotient, "field 'total' of a Counts is an int64, not a float64"),
        (infinite, "field 'total' of a Counts is an int64, not a float64"),
        (flagged, "field 'is_set' of a Counts is a bool, not a float64"),
        (deeper, "field 'count' of a Part is an int64, not a float64"),
        (maybe, "field 'total' of a Counts is an int64, not a float64"),
        (called, "field 'total' of a Counts is an int64, not a float64"),
    ],
)
def test_a_float_in_a_field_of_integers_is_refused_with_its_line(function: Any, text: str) -> None:
    app = application(bettong.compiled(function), Counts)
    for _ in range(2):  # no cache has it either
        with pytest.raises(ApplicationError) as caught:
            run(app, [("in", Item(1, 1.75))], compiled=True)
        assert f"cannot be compiled: {text}" in str(caught.value)
        line = (set_total if function is called else function).__code__.co_firstlineno
        assert f"test_nested_state_types.py:{line + (3 if function is maybe else 1)})" in str(caught.value)


@bettong.compiled
def fitting(item: Item, state: Counts) -> Item:
    state.total += int(item.value) + (item.value > 1)
    state.is_set = item.value > 1
    state.share += 1
    state.part.count = 7 // 2
    return Item(item.key, state.total + 10 * state.is_set + 100 * state.share + 1000 * state.part.count)


def test_whole_numbers_and_bools_are_set_in_fields_of_integers_and_floats() -> None:
    for compiled in (False, True):
        outcome = run(application(fitting, Counts), [("in", Item(1, 1.75))] * 2, compiled=compiled)
        assert [each.value for each in outcome.outputs["out"]] == [3112.0, 3214.0]
