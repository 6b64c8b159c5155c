"""Nested states of compiled functions: dataclasses, arrays, bounded lists; they behave as in Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import bettong
from bettong import Application, AtMost, Width
from bettong.application.plan import plan
from bettong.errors import SnapshotError
from bettong.testing import check, run
from bettong.worker.stage_program import StageProgram, program
from bettong.worker.state.record_layout import layout_of
from bettong.worker.state.records import RecordTable
from bettong.worker.state_members import LENGTH
from tests.samples.worker import data, dead_letters, fold, results, worker

OUT = "meters.sink.out"
MOST = 3


@dataclass(frozen=True)
class Span:
    """A value in a value, with bytes that nothing fills between its fields."""

    short: bool = False
    to: float = 0.0


@dataclass(frozen=True)
class Point:
    name: Annotated[str, Width(5)] = ""
    x: bettong.u8 = 0
    span: Span = Span()
    last: bool = False


@dataclass
class Inner:
    seen: bool = False
    count: int = 0
    best: Point = Point("none", 7)


@dataclass
class Outer:
    flag: bool = False
    inner: Inner = field(default_factory=Inner)
    names: Annotated[list[Annotated[str, Width(5)]], AtMost(MOST)] = field(default_factory=list)


@dataclass
class Book:
    """All that a state can hold."""

    flag: bool = False
    outer: Outer = field(default_factory=Outer)
    other: Inner = field(default_factory=lambda: Inner(count=5))
    sums: NDArray[np.float64] = field(default_factory=lambda: np.full(4, 0.5))
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros((2, 3), np.int64))
    marks: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(3, np.bool_))
    numbers: Annotated[list[int], AtMost(MOST)] = field(default_factory=lambda: [1])
    floats: Annotated[list[float], AtMost(MOST)] = field(default_factory=list)
    flags: Annotated[list[bool], AtMost(MOST)] = field(default_factory=list)
    points: Annotated[list[Point], AtMost(MOST)] = field(default_factory=list)


@dataclass
class Step:
    key: int
    what: Annotated[str, Width(8)]
    at: int
    value: float
    name: Annotated[str, Width(5)]


@dataclass
class Seen:
    what: Annotated[str, Width(8)]
    count: int
    value: float
    name: Annotated[str, Width(5)]


def total(points: list[Point], inner: Inner) -> float:
    """A function that gets parts of a state."""
    inner.count += 1
    found = 0.0
    for each in points:
        found += each.span.to
    return found


def listed(step: Step, book: Book) -> int:
    """Operations on a list of numbers, and of text."""
    numbers, names = book.numbers, book.outer.names
    if step.what == "append" and len(numbers) < MOST and len(names) < MOST:
        numbers.append(step.at)
        names.append(step.name)
    elif step.what == "insert" and len(numbers) < MOST:
        numbers.insert(step.at, 10 * step.at)
    elif step.what == "pop":
        return numbers.pop() + numbers.pop(step.at)
    elif step.what == "del":
        del names[step.at]
    elif step.what == "set":
        numbers[step.at] = int(step.value)
        names[step.at] = step.name + "!"
    elif step.what == "item":
        return numbers[step.at] + len(names[step.at])
    elif step.what == "slice":
        return len(numbers[step.at :]) + len(names[: step.at])
    elif step.what == "in":
        return (step.at in numbers) + 2 * (step.name in names)
    elif step.what == "clear":
        numbers.clear()
        names.clear()
    elif step.what == "extend" and not numbers:
        numbers.extend([step.at, 2])
        if len(numbers) < 2:
            numbers.extend(numbers)
    return 0 if not numbers else len(numbers)


@bettong.compiled
def follow(step: Step, book: Book) -> Seen:
    book.flag = not book.flag
    before = book.outer.inner.best
    inner = book.outer.inner if step.at % 2 else book.other
    found = listed(step, book)
    if step.what == "point":
        inner.best = Point(step.name, step.at, Span(book.flag, step.value), last=True)
        inner.seen = True
        if len(book.points) == MOST:
            book.points.pop(0)
        book.points.append(inner.best)
    elif step.what == "points" and book.points:
        book.points[step.at] = before
        if before == book.points[0]:
            book.other.count += 1
    elif step.what == "array":
        book.sums[step.at] += step.value
        book.counts[step.at, step.at] -= step.at
        book.marks[step.at] = step.value > 1
    elif step.what == "arrays":
        book.sums += 1
        book.sums[1:] = book.sums[:-1] / 2
        book.counts[1, :] = book.counts[0, :] + step.at
        found += book.marks.sum() + len(book.counts)
    elif step.what == "floats":
        if len(book.floats) == MOST:
            book.floats.clear()
            book.flags.clear()
        book.floats.append(float(step.at))
        book.flags.append(step.value > 1)
    value = total(book.points, inner) + book.sums[0]
    for flag in book.flags:
        value += flag
    for each in book.floats:
        value += each / 2
    return Seen(step.what, found + inner.count, value, before.name)


WHATS = (
    *("append", "append", "point", "insert", "pop", "array", "floats", "points", "slice"),
    *("in", "extend", "arrays", "item", "set", "del", "clear"),
)
STEP = st.builds(
    Step,
    key=st.integers(1, 2),
    what=st.sampled_from(sorted({*WHATS, "points"})),
    at=st.integers(-4, 4),
    value=st.sampled_from([0.0, -1.5, 2.25, 1e15]),
    name=st.sampled_from(["", "a", "äö"]),
)


def application(function: Any = follow, state: Any = Book, **more: Any) -> Application:
    app = Application("meters")
    app.source("in", schema=Step, key="key").stateful(function, state=state, name="fold", **more).sink("out")
    return app


def made(*, compiled: bool = True, **more: Any) -> StageProgram:
    (stage,) = plan(application(**more)).stages
    return program(stage, compiled=compiled)


@pytest.fixture(scope="module")
def programs() -> tuple[StageProgram, StageProgram]:
    return made(), made(compiled=False)


def outcome(of: StageProgram, frames: list[list[Step]]) -> tuple[list[str], list[list[Any]], dict[Any, Any]]:
    """Results, dead letters and states. Between two frames it is restored from a snapshot."""
    one, found, dead = worker(of), [], []
    for sequence, steps in enumerate(frames, 1):
        records = fold(one, [data("in/a", sequence, steps)])
        found += [repr(each) for each in results(records, OUT, Seen)]
        dead.append(sorted((each.index, each.reason.partition(":")[0]) for each in dead_letters(records)))
        snapshot = one.snapshot()
        one = worker(of)
        one.restore(snapshot)
        assert one.snapshot() == snapshot
    return found, dead, dict(one.tables["fold"].items())


def test_compiled_and_python_do_the_same_to_all_that_a_state_can_hold(
    programs: tuple[StageProgram, StageProgram],
) -> None:
    compiled, python = programs
    assert compiled.kernels
    assert not python.kernels

    @settings(max_examples=150, deadline=None)
    @given(st.lists(st.lists(STEP, min_size=1, max_size=12), min_size=1, max_size=3))
    def follow_both(frames: list[list[Step]]) -> None:
        assert outcome(compiled, frames) == outcome(python, frames)

    follow_both()


def test_a_pipeline_of_such_states_passes_the_check_of_speeds_frames_and_crashes() -> None:
    steps = [Step(1, what, number % 3, number / 4, "ab") for number, what in enumerate(WHATS)]
    check(application(), [("in", step) for step in steps])


@bettong.compiled
def there_and_back(step: Step, book: Book) -> Seen:
    """Fills list items, and removes them."""
    if step.what == "fill":
        book.points.append(Point(step.name, 1, Span(True, 2.0)))  # noqa: FBT003
        book.points.append(Point(step.name, 2, Span(False, 0.0)))  # noqa: FBT003
        book.points.pop(0)
        book.points.clear()
        book.outer.names.extend([step.name, step.name])
        del book.outer.names[0]
        book.outer.names.pop()
        book.other.best = Point(step.name, 3, Span(True, 1.0))  # noqa: FBT003
    book.other.best = book.outer.inner.best
    return Seen(step.what, 0, 0.0, "")


def test_equal_states_have_equal_bytes_whatever_was_there_before_and_in_whatever_order_they_came() -> None:
    of = made(function=there_and_back)

    def dumped(*steps: Step) -> bytes:
        one = worker(of)
        fold(one, [data("in/a", number, [step]) for number, step in enumerate(steps, 1)])
        return one.tables["fold"].dump().states

    plain, other = Step(1, "", 0, 0.0, ""), Step(2, "", 0, 0.0, "")
    assert dumped(plain, other) == dumped(other, plain) == dumped(Step(2, "fill", 0, 0.0, "äö"), plain)
    assert dumped(plain) != dumped(plain, other)


POINT = st.builds(
    Point,
    st.sampled_from(["", "äö", "abcde"]),
    st.integers(0, 255),
    st.builds(Span, st.booleans(), st.floats()),
)
INNER = st.builds(Inner, st.booleans(), st.integers(-(2**63), 2**63 - 1), POINT)
BOOK = st.builds(
    Book,
    outer=st.builds(Outer, st.booleans(), INNER, st.lists(st.sampled_from(["", "abcde"]), max_size=MOST)),
    other=INNER,
    sums=st.lists(st.floats(), min_size=4, max_size=4).map(np.array),
    points=st.lists(POINT, max_size=MOST),
    floats=st.lists(st.floats(), max_size=MOST),
)


@given(st.lists(BOOK, max_size=3))
def test_a_record_keeps_all_of_a_state(books: list[Book]) -> None:
    (stage,) = plan(application()).stages
    layout = layout_of(stage.operators[0].node)  # type: ignore[arg-type]
    records = np.zeros(len(books), layout.dtype)
    layout.store(records, books)
    assert repr(layout.load(records)) == repr(books)
    assert layout.faults(records) is None


def test_states_as_columns_are_objects_of_their_classes(
    programs: tuple[StageProgram, StageProgram],
) -> None:
    one = worker(programs[0])
    fold(one, [data("in/a", 1, [Step(1, what, 1, 2.0, "äö") for what in ("append", "point")])])
    _, (outers, points, numbers) = one.tables["fold"].columns(["outer", "points", "numbers"])
    best = Point("äö", 1, Span(False, 2.0), last=True)  # noqa: FBT003
    assert outers == [Outer(False, Inner(True, 2, best), ["äö"])]  # noqa: FBT003
    assert (points, numbers) == ([[best]], [[1, 1]])


@bettong.compiled
def fill(step: Step, book: Book) -> Seen:
    book.numbers.append(step.at)
    return Seen(step.what, len(book.numbers), 0.0, "")


def test_more_items_than_the_bound_make_a_dead_letter_and_the_list_stays() -> None:
    steps = [("in", Step(1, "", number, 0.0, "")) for number in range(4)]
    outcome = run(application(fill), steps, compiled=True)
    assert [each.count for each in outcome.outputs["out"]] == [2, 3]
    assert [each.reason for each in outcome.dead_letters] == [
        "ValueError: the list is full: it holds as many items as its AtMost(n) says"
    ] * 2
    assert outcome.states["fold"][1]["numbers"] == [1, 0, 1]
    stopped = run(application(fill, on_error="stop"), steps, compiled=True)
    assert "the list is full" in str(stopped.stopped)


@bettong.compiled
def several(step: Step, book: Book) -> list[Seen]:
    """More results than there is room for at first: then the function is called again, with the state as before."""
    book.numbers[0] += 1
    return [Seen(step.what, book.numbers[0], 0.0, "") for _ in range(step.at)]


@bettong.compiled
def is_large(book: Book) -> bool:
    return book.numbers[0] > 3 or len(book.points) == MOST


def test_states_start_again_after_delete_when_and_are_as_before_when_results_are_made_again() -> None:
    app = application(several, delete_when=is_large)
    outcome = run(app, [("in", Step(1, "", 400, 0.0, "")) for _ in range(4)], compiled=True)
    assert [each.count for each in outcome.outputs["out"][::400]] == [2, 3, 4, 2]
    check(app, [("in", Step(1, "", 3, 0.0, "")) for _ in range(5)])


@bettong.compiled
def exchange_at_runtime(step: Step, book: Book) -> Seen:
    ones, book.flag = book.sums, True
    if step.at:
        book.sums = ones
    return Seen("", 0, 0.0, "")


def test_an_array_may_be_set_to_itself() -> None:
    outcome = run(application(exchange_at_runtime), [("in", Step(1, "", 1, 0.0, ""))], compiled=True)
    assert not outcome.dead_letters


@dataclass
class Pair:
    one: NDArray[np.float64] = field(default_factory=lambda: np.zeros(2))
    two: NDArray[np.float64] = field(default_factory=lambda: np.ones(2))


@bettong.compiled
def swap(step: Step, pair: Pair) -> Seen:
    pair.one = pair.two
    return Seen("", 0, 0.0, "")


def test_another_array_of_the_state_makes_a_dead_letter() -> None:
    outcome = run(application(swap, Pair), [("in", Step(1, "", 1, 0.0, ""))], compiled=True)
    (dead,) = outcome.dead_letters
    assert dead.reason == (
        "ValueError: compiled code cannot put another one into field 'one', an array:"
        " write its values, as in one[:] = 0"
    )


def test_a_saved_list_that_is_longer_than_its_bound_is_refused() -> None:
    one = worker(made())
    fold(one, [data("in/a", 1, [Step(1, "", 0, 0.0, "")])])
    table: Any = one.tables["fold"]
    for length in (MOST + 1, -1):
        table.states["outer"]["names"][LENGTH][0] = length
        saved = table.dump()
        fresh: Any = worker(made()).tables["fold"]
        assert isinstance(fresh, RecordTable)
        with pytest.raises(SnapshotError, match=rf"'outer.names' has {length} items, at most 3 can be there"):
            fresh.load(saved, log_ns=0, begins=True)
