"""on_error="stop" names the first message that cannot be processed, and calls nothing behind it, at every speed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest

import bettong
from bettong import Application, RowIndexes, Stream, Width
from bettong.application.plan import StageInput, plan
from bettong.errors import PoisonError
from bettong.frames.columns import Columns
from bettong.schema.schema import schema_of
from bettong.worker.batch import Batch
from bettong.worker.calling.compiled import CompiledCalling
from bettong.worker.stage_program import program
from tests.samples.worker import data, fold, worker
from tests.simulation.twins import compiled_twin, twin


@dataclass
class Number:
    key: Annotated[str, Width(4)]
    value: bettong.i64


@dataclass
class Kept:
    count: int = 0


VALUES = [1, 2, 0, 3, 4, 0, 5]  # the third cannot be divided by, nor can the sixth
FRAME = data("in/a", 1, [Number("abcdefg"[index], value) for index, value in enumerate(VALUES)])


def one(number: Number) -> Number:
    return Number(number.key, 100 // number.value)


def kept(number: Number) -> bool:
    return 100 // number.value > 0


def several(number: Number) -> list[Number]:
    return [Number(number.key, 100 // number.value)]


def counted(number: Number, state: Kept) -> Number:
    state.count += 1
    return Number(number.key, 100 // number.value)


def counted_several(number: Number, state: Kept) -> list[Number]:
    state.count += 1
    return [Number(number.key, 100 // number.value)]


def columns(state: Kept) -> Any:
    """What a vectorized function gets: the fields are columns."""
    return state


def divided(number: Any) -> Any:
    return Number(number.key, 100 // number.value)


def one_of_all(number: Number) -> Number:
    given: Number = divided(number)
    return given


def kept_of_all(number: Number) -> bool:
    found: bool = divided(number).value > 0
    return found


def several_of_all(number: Number) -> tuple[Number, RowIndexes]:
    return divided(number), np.arange(len(np.asarray(number.value)))


def counted_of_all(number: Number, state: Kept, key: RowIndexes) -> Number:
    np.add.at(columns(state).count, key, 1)
    given: Number = divided(number)
    return given


def counted_several_of_all(number: Number, state: Kept, key: RowIndexes) -> tuple[Number, RowIndexes]:
    np.add.at(columns(state).count, key, 1)
    return divided(number), np.arange(len(key))


STATELESS = {"map": (one, one_of_all), "filter": (kept, kept_of_all), "flat_map": (several, several_of_all)}
STATEFUL = {"one": (counted, counted_of_all), "several": (counted_several, counted_several_of_all)}


def marked(
    function: Callable[..., Any], mark: Callable[..., Any] | None, seen: list[list[int]]
) -> Callable[..., Any]:
    """The same function, which notes the values that each call is given."""

    def noting(number: Any, *more: Any) -> Any:
        seen.append(np.atleast_1d(number.value).tolist())
        return function(number, *more)

    noting.__annotations__ = function.__annotations__
    noting.__wrapped__ = function  # type: ignore[attr-defined]
    return mark(noting) if mark is not None else noting


def stopped(stream: Stream[Any], *, compiled: bool = False) -> Any:
    """The worker of a stream that leads to a sink, when it has stopped where it must."""
    stream.sink("out")
    of = worker(program(plan(stream.app).stages[0], compiled=compiled))
    with pytest.raises(PoisonError) as caught:
        fold(of, [FRAME])
    assert (caught.value.computation, caught.value.index) == ("f", 2)
    return of


def source() -> Stream[Any]:
    return Application("meters").source("in", schema=Number, key="key")


@pytest.mark.parametrize("speed", [0, 1], ids=["python", "vectorized"])
@pytest.mark.parametrize("kind", STATELESS)
def test_a_function_without_state_is_called_for_nothing_behind_the_first(kind: str, speed: int) -> None:
    seen: list[list[int]] = []
    function = marked(STATELESS[kind][speed], bettong.vectorized if speed else None, seen)
    stopped(getattr(source(), kind)(function, name="f", on_error="stop"))
    calls = [each for each in seen if each]  # a vectorized function is tried with no rows
    assert calls[-1] == [0]
    assert speed or calls == [[1], [2], [0]]
    # Over columns: all, its halves, and theirs, until the row stands alone.
    assert not speed or calls == [VALUES, [1, 2, 0], [1], [2, 0], [2], [0]]


@pytest.mark.parametrize("kind", STATELESS)
def test_compiled_it_gives_nothing_behind_the_first_either(kind: str) -> None:
    """Machine code cannot note its calls: what they give would show them."""
    messages = Columns.of_messages(
        schema_of(Number), [Number("k", each) for each in [*VALUES[:5], *VALUES[6:]]]
    )
    stream = getattr(source(), kind)(compiled_twin(STATELESS[kind][0]), name="f", on_error="stop")
    stream.sink("out")
    (stage,) = plan(stream.app).stages
    calling = CompiledCalling(program(stage, compiled=True).kernels["f"], "stop")
    given = calling.call(Batch.of_frame(StageInput("in", messages.schema, "key"), messages), None)
    assert [row for row, _ in given.failures] == [2]
    assert given.rows is not None
    assert given.rows.tolist() == [0, 1]
    stopped(
        getattr(source(), kind)(compiled_twin(STATELESS[kind][0]), name="f", on_error="stop"),
        compiled=True,
    )


@pytest.mark.parametrize("speed", ["python", "compiled", "vectorized"])
@pytest.mark.parametrize("kind", STATEFUL)
def test_a_stateful_function_touches_no_state_behind_the_first(kind: str, speed: str) -> None:
    function = twin(STATEFUL[kind][speed == "vectorized"])
    if speed != "python":
        function = getattr(bettong, speed)(function)
    of = stopped(
        source().stateful(function, state=Kept, name="f", on_error="stop"), compiled=speed == "compiled"
    )
    counts = [(of.tables["f"].state_of(key) or {"count": 0})["count"] for key in "abcdefg"]
    assert counts == [1, 1, 1, 0, 0, 0, 0]
