"""States of compiled functions: what cannot be in them is refused at the start, by its path; as is wrong use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bettong
from bettong import Application, ApplicationError, AtMost, Width
from bettong.application.plan import plan
from bettong.errors import SchemaError, SnapshotError, StateChangedError
from bettong.frames.columns import Columns
from bettong.schema.schema import schema_of
from bettong.testing import run
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import program
from bettong.worker.state.stored_arrays import bytes_of
from bettong.worker.state.table import SavedStates
from bettong.worker.state_members import ITEMS, LENGTH
from tests.samples.worker import data, fold, results, worker


@dataclass
class Item:
    key: int
    value: float


@dataclass(frozen=True)
class Span:
    start: int = 0
    stop: int = 0


@dataclass
class Part:
    span: Span = Span()
    count: int = 0


@dataclass
class Loose:
    text: str = ""
    at: datetime | None = None


@dataclass
class Deeper:
    loose: Loose = field(default_factory=Loose)


@dataclass
class Endless:
    again: Endless | None = None


def array_of(make: Callable[[], Any]) -> Any:
    """A state class with such an array."""

    @dataclass
    class State:
        values: NDArray[Any] = field(default_factory=make)

    State.__annotations__["values"] = NDArray[Any]
    return State


def list_of(annotation: Any) -> Any:
    @dataclass
    class State:
        items: Any = field(default_factory=list)

    State.__annotations__["items"] = annotation
    return State


def application(function: Any, state: Any, **more: Any) -> Application:
    app = Application("meters")
    app.source("in", schema=Item, key="key").stateful(function, state=state, name="fold", **more).sink("out")
    return app


def made(function: Any, state: Any, **more: Any) -> PartitionWorker:
    (stage,) = plan(application(function, state, **more)).stages
    return worker(program(stage, compiled=True))


def refused(function: Any, state: Any) -> str:
    with pytest.raises(ApplicationError) as caught:
        made(function, state)
    return str(caught.value)


@bettong.compiled
def kept(item: Item, _: Any) -> Item:
    return item


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (Deeper, "Deeper: loose.text has no fixed width; use Annotated[str, Width(n)]"),
        (list_of(list[int]), "State: items (list): it has no bound; use Annotated[list[...], AtMost(n)]"),
        (list_of(Annotated[list[str], AtMost(3)]), "State: items[] has no fixed width; use Annotated[str"),
        (list_of(Annotated[list[datetime], AtMost(3)]), "State: items[] (datetime): numbers, bools, text"),
        (list_of(Annotated[list[Part], AtMost(3)]), "State: items[] (Part): a list holds numbers"),
        (
            list_of(Annotated[list[Annotated[list[int], AtMost(2)]], AtMost(3)]),
            "State: items[]: a list holds no lists",
        ),
        (list_of(Annotated[list[list[int]], AtMost(3)]), "State: items[] (list): it has no bound"),
        (
            list_of(dict[str, int]),
            "State: items (dict): numbers, bools, text and bytes of a fixed width, dataclasses",
        ),
        (list_of(tuple[int, ...]), "State: items (list): numbers, bools"),
        (list_of(int | None), "State: items (optional): numbers, bools"),
        (
            list_of(Annotated[list[Span], AtMost(65_536)]),
            "State: a state takes 1048584 bytes, at most 1048576",
        ),
        (array_of(lambda: np.zeros(3, np.float32)), "State: values: an array of float32; use one of float64"),
        (array_of(lambda: np.zeros(3, object)), "State: values: an array of object; use one of float64"),
        (array_of(lambda: np.zeros((2, 2), order="F")), "State: values: an array that lies by columns"),
        (array_of(lambda: np.zeros((2, 0))), "State: values: an array of shape (2, 0) holds no values"),
        (
            array_of(lambda: [1.0]),
            "State: values (array): a new state has list there; use field(default_factory",
        ),
    ],
)
def test_what_no_record_can_hold_is_refused_by_its_path(state: Any, text: str) -> None:
    assert f"compiled 'fold': {text}" in refused(kept, state)


def test_a_class_that_holds_itself_is_refused() -> None:
    Endless.__annotations__["again"] = Endless
    assert "does a class hold itself?" in refused(kept, Endless)


def test_vectorized_states_stay_flat() -> None:
    def counted(item: Item, part: Part, rows: bettong.RowIndexes) -> Item:
        return item

    assert "vectorized 'fold': Part: span (object): numbers" in refused(bettong.vectorized(counted), Part)


@dataclass
class State:
    part: Part = field(default_factory=Part)
    span: Span = Span()
    sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    numbers: Annotated[list[int], AtMost(3)] = field(default_factory=list)
    spans: Annotated[list[Span], AtMost(3)] = field(default_factory=list)


@bettong.compiled
def exchanged_object(item: Item, state: State) -> Item:
    state.part = Part(Span(0, 0), 1)
    return item


@bettong.compiled
def exchanged_list(item: Item, state: State) -> Item:
    state.numbers = [1, 2]
    return item


@bettong.compiled
def exchanged_array(item: Item, state: State) -> Item:
    state.sums = np.zeros(3)
    return item


@bettong.compiled
def changed_value(item: Item, state: State) -> Item:
    state.span.start = 3  # type: ignore[misc]
    return item


@bettong.compiled
def other_value(item: Item, state: State) -> Item:
    state.span = item  # type: ignore[assignment]
    return item


@bettong.compiled
def lost_fraction(item: Item, state: State) -> Item:
    state.numbers.append(item.value)  # type: ignore[arg-type]
    return item


@bettong.compiled
def lost_fraction_in_value(item: Item, state: State) -> Item:
    state.span = Span(1, item.value)  # type: ignore[arg-type]
    return item


@bettong.compiled
def wrong_item(item: Item, state: State) -> Item:
    state.spans.append(item)  # type: ignore[arg-type]
    return item


@bettong.compiled
def unknown_method(item: Item, state: State) -> Item:
    state.numbers.sort()
    return item


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (
            exchanged_object,
            "compiled code cannot put another one where the state holds a Part: set its fields, or make",
        ),
        (
            exchanged_list,
            "compiled code cannot put another one where the state holds a list: use clear() and extend()",
        ),
        (
            exchanged_array,
            "compiled code cannot put another one where the state holds an array: write its values",
        ),
        (changed_value, "compiled code cannot change field 'start' of a Span: make a new one"),
        (other_value, "Item is no Span"),
        (lost_fraction, "a list of int64 takes no float64"),
        (lost_fraction_in_value, "field 'stop' of a Span is an int64, not a float64"),
        (wrong_item, "a list of Span(int64, int64) takes no Item(int64, float64)"),
        (unknown_method, "Unknown attribute 'sort' of type list"),
    ],
)
def test_what_would_mean_something_else_is_refused_with_its_line(function: Any, text: str) -> None:
    message = refused(function, State)
    assert text in message
    assert f"test_nested_state_checks.py:{function.__code__.co_firstlineno + 2})" in message


@bettong.compiled
def grown(item: Item, state: State) -> Item:
    state.numbers.append(len(state.numbers))
    state.part.count += 1
    state.sums[1] += item.value
    state.span = Span(state.span.start + 1, state.part.count)
    state.spans.append(state.span)
    return Item(item.key, state.sums[1] + state.part.count)


@dataclass
class Renewed:
    part: Part = field(default_factory=Part)
    sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros(4))
    numbers: Annotated[list[int], AtMost(4)] = field(default_factory=list)
    name: Annotated[str, Width(3)] = "new"


@bettong.compiled
def grown_again(item: Item, state: Renewed) -> Item:
    state.numbers.append(len(state.numbers))
    state.part.count += 1
    state.sums[0] += item.value
    return Item(item.key, 100 * len(state.numbers) + state.sums[0] + state.part.count + len(state.name))


def migrated(old: Any, _version: int) -> Renewed:
    part = Part(Span(old.span.start, old.spans[-1].stop), old.part.count)
    return Renewed(part, np.append(old.sums[::-1], 0.5)[1:].repeat(2)[:4], [*old.numbers, 7])


def after(one: PartitionWorker, snapshot: bytes) -> list[float]:
    one.restore(snapshot)
    return [
        each.value for each in results(fold(one, [data("in/a", 2, [Item(1, 2.0)])]), "meters.sink.out", Item)
    ]


def test_nested_states_go_on_after_a_restart_and_become_others_by_a_migration() -> None:
    one = made(grown, State)
    fold(one, [data("in/a", 1, [Item(1, 1.5), Item(1, 2.5)])])
    snapshot = one.snapshot()
    assert after(made(grown, State), snapshot) == [6.0 + 3]
    new = made(grown_again, Renewed, migrate=migrated)
    assert after(new, snapshot) == [400 + 4.0 + 2.0 + 3 + 3]
    assert new.tables["fold"].state_of(1) == {
        "part": {"span": {"start": 2, "stop": 2}, "count": 3},
        "sums": [6.0, 4.0, 0.0, 0.0],
        "numbers": [0, 1, 7, 3],
        "name": "new",
    }


def test_records_that_nobody_can_have_saved_are_no_old_states() -> None:
    one = made(grown_again, Renewed, migrate=migrated)
    table: Any = one.tables["fold"]
    keys = np.zeros((1, 1), np.uint64)
    for forged in (
        np.zeros(1, [("numbers", [(LENGTH, "<i8"), (ITEMS, "<i8")])]),
        np.zeros(1, [("numbers", [(LENGTH, "<f8"), (ITEMS, "<i8", (3,))])]),
    ):
        forged["numbers"][LENGTH] = 1.5
        with pytest.raises(SnapshotError, match="no state has such fields"):
            table.load(
                SavedStates(bytes_of(keys, forged)),
                log_ns=0,
                begins=True,
                migration=lambda old: migrated(old, 1),
            )


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (list_of(Annotated[list[int], AtMost(4)]), "items:list(:int:<i8, at most 4)"),
        (list_of(Annotated[list[float], AtMost(3)]), "items:list(:float:<f8, at most 3)"),
    ],
)
def test_another_bound_or_another_item_is_another_state_and_is_named(changed: Any, named: str) -> None:
    one = made(kept, list_of(Annotated[list[int], AtMost(3)]))
    fold(one, [data("in/a", 1, [Item(1, 1.5)])])
    with pytest.raises(StateChangedError) as caught:
        made(kept, changed).restore(one.snapshot())
    assert named in str(caught.value)
    assert "items:list(:int:<i8, at most 3)" in str(caught.value)


@dataclass
class Listed:
    values: Annotated[list[int], AtMost(2)]


def test_a_bound_holds_for_lists_of_messages_too() -> None:
    schema, free = schema_of(Listed), schema_of(list_of(list[int]))
    tokens = [each.fields[0].token for each in (schema, free)]
    assert tokens == ["values:list(item:int:<i8, at most 2)", "items:list(item:int:<i8)"]
    with pytest.raises(SchemaError, match="field 'values': 3 items, at most 2 can be there"):
        Columns.of_messages(schema, [Listed([1, 2]), Listed([1, 2, 3])])
    form: Any = schema.fields[0].form
    assert form.from_json([1, 2]) == [1, 2]
    with pytest.raises(SchemaError, match="3 items, at most 2"):
        form.from_json([1, 2, 3])
    longer: Any = free.fields[0].form
    with pytest.raises(SchemaError, match="3 items, at most 2"):
        form.check(longer.array([[1, 2], [1, 2, 3]]))


@pytest.mark.parametrize("items", [0, -1, 65_537])
def test_a_bound_is_one_item_or_more(items: int) -> None:
    with pytest.raises(SchemaError, match=r"AtMost\(-?\d+\): expected 1 to 65536 items"):
        AtMost(items)


@bettong.compiled
def beyond(item: Item, state: State) -> Item:
    return Item(item.key, state.sums[int(item.value)] + state.numbers[0])


def test_an_index_beyond_an_array_or_a_list_is_an_error_in_every_speed() -> None:
    for compiled in (False, True):
        outcome = run(
            application(beyond, State),
            [("in", Item(1, value)) for value in (3.0, -4.0, 0.0)],
            compiled=compiled,
        )
        assert [each.reason.partition(":")[0] for each in outcome.dead_letters] == ["IndexError"] * 3
        assert outcome.dead_letters[2].reason == "IndexError: list index out of range"
