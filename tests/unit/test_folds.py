"""Stateful computations as plain Python: state by key, exceptions by message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bettong
from bettong import Application, ApplicationError
from bettong.errors import SnapshotError
from bettong.worker.state import codec
from bettong.worker.state.table import SavedStates
from tests.samples.worker import data, dead_letters, fold, python, results, worker

OUT = "meters.sink.out"


@dataclass
class Item:
    key: str
    value: int


@dataclass
class Sum:
    key: str
    total: int


@dataclass
class Kept:
    total: int = 0
    seen: list[int] = field(default_factory=list)


def add(item: Item, kept: Kept) -> Sum | None:
    kept.seen.append(item.value)
    if item.value < 0:
        raise ValueError("negative")
    kept.total += item.value
    return Sum(item.key, kept.total) if item.value else None


def application(
    function: Callable[..., Any] = add, state: Callable[[], Any] = Kept, key: Any = "key"
) -> Application:
    app = Application("meters")
    app.source("in", schema=Item, key=key).stateful(function, state=state, name="fold").sink("out")
    return app


ITEMS = st.lists(st.builds(Item, st.sampled_from(["", "a", "ä", "a\0"]), st.integers(-1, 3)), max_size=10)


@given(st.lists(ITEMS, max_size=4))
def test_each_key_has_a_state_of_its_own(log: list[list[Item]]) -> None:
    values = [data("in/a", index + 1, items, previous=0) for index, items in enumerate(log) if items]
    records = fold(worker(python(application())), values)
    totals: dict[str, int] = defaultdict(int)
    expected, negatives = [], 0
    for item in (each for items in log for each in items):
        if item.value < 0:
            negatives += 1
        elif item.value:
            totals[item.key] += item.value
            expected.append(Sum(item.key, totals[item.key]))
    assert results(records, OUT, Sum) == expected
    assert len(dead_letters(records)) == negatives


def test_a_function_that_raises_keeps_what_it_had_changed_and_the_fold_goes_on() -> None:
    app = application()
    one = worker(python(app))
    records = fold(one, [data("in/a", 1, [Item("k", 2), Item("k", -1), Item("k", 3)])])
    assert results(records, OUT, Sum) == [Sum("k", 2), Sum("k", 5)]
    (dead_letter,) = dead_letters(records)
    assert (dead_letter.computation, dead_letter.reason, dead_letter.index) == (
        "fold",
        "ValueError: negative",
        1,
    )
    again = worker(python(app))
    again.restore(one.snapshot())
    assert again._tables["fold"]._states["k"].seen == [2, -1, 3]  # type: ignore[attr-defined]


@pytest.mark.parametrize("index", [0, 1, 2])
def test_an_exception_at_any_index_of_a_frame_is_of_that_index(index: int) -> None:
    items = [Item("k", -1 if each == index else 1) for each in range(3)]
    records = fold(worker(python(application())), [data("in/a", 1, items)])
    assert [each.index for each in dead_letters(records)] == [index]
    assert [each.total for each in results(records, OUT, Sum)] == [1, 2]


def test_a_frame_in_which_everything_raises_is_all_dead_letters() -> None:
    records = fold(worker(python(application())), [data("in/a", 1, [Item("k", -1)] * 3)])
    assert [each.index for each in dead_letters(records)] == [0, 1, 2]
    assert results(records, OUT, Sum) == []


def several(item: Item, kept: Kept) -> Iterator[Sum]:
    for step in range(item.value):
        if step == 3:
            raise RuntimeError("too many")
        kept.total += 1
        yield Sum(item.key, kept.total)


def test_a_function_that_returns_several_gives_all_or_none_of_a_message() -> None:
    items = [Item("k", 2), Item("k", 5), Item("k", 1)]
    records = fold(worker(python(application(several))), [data("in/a", 1, items)])
    assert [each.total for each in results(records, OUT, Sum)] == [1, 2, 6]
    (dead_letter,) = dead_letters(records)
    assert (dead_letter.index, dead_letter.reason) == (1, "RuntimeError: too many")


@dataclass
class Running:
    key: str = ""
    total: int = 0


def state_itself(item: Item, running: Running) -> Running:
    running.key, running.total = item.key, running.total + item.value
    return running


def state_in_a_list(item: Item, running: Running) -> list[Running]:
    return [state_itself(item, running)]


def state_yielded(item: Item, running: Running) -> Iterator[Running]:
    yield state_itself(item, running)


def one_object_yielded(item: Item, running: Running) -> Iterator[Running]:
    found = Running(item.key)
    for _ in range(2):
        running.total += item.value
        found.total = running.total
        yield found


@pytest.mark.parametrize(
    ("function", "totals"),
    [
        (state_itself, [1, 3, 6]),
        (state_in_a_list, [1, 3, 6]),
        (state_yielded, [1, 3, 6]),
        (one_object_yielded, [1, 2, 4, 6, 9, 12]),
    ],
)
def test_a_result_is_what_it_was_when_it_was_given(function: Callable[..., Any], totals: list[int]) -> None:
    one = worker(python(application(function, Running)))
    records = fold(one, [data("in/a", 1, [Item("k", value) for value in (1, 2, 3)])])
    assert [each.total for each in results(records, OUT, Running)] == totals


def interrupted(item: Item, kept: Kept) -> Sum:
    if item.value < 0:
        raise SystemExit("enough")
    return Sum(item.key, item.value)


def test_a_function_that_would_end_the_process_leads_to_a_dead_letter() -> None:
    items = [Item("k", 1), Item("k", -1), Item("k", 2)]
    records = fold(worker(python(application(interrupted))), [data("in/a", 1, items)])
    assert [each.reason for each in dead_letters(records)] == ["SystemExit: enough"]
    assert [each.total for each in results(records, OUT, Sum)] == [1, 2]


@dataclass
class Broken:
    def __init__(self) -> None:
        Broken.made += 1
        if Broken.made > 1:
            raise OSError("no more states")

    made = 0


def test_a_state_that_cannot_be_made_is_a_dead_letter() -> None:
    def touch(item: Item, broken: Broken) -> Sum:
        del broken
        return Sum(item.key, 1)

    # One when it is given, one for the check of the program, one for what a new state has, one for the first key.
    Broken.made = -3
    records = fold(
        worker(python(application(touch, Broken))), [data("in/a", 1, [Item("a", 1), Item("b", 1)])]
    )
    assert results(records, OUT, Sum) == [Sum("a", 1)]
    assert dead_letters(records)[0].reason == "OSError: no more states"


def by_sign(item: Item) -> int:
    if item.value == 0:
        raise ZeroDivisionError("no sign")
    return 1 if item.value > 0 else -1


def test_a_key_may_be_a_function() -> None:
    def count_up(item: Item, kept: Kept) -> Sum:
        kept.total += 1
        return Sum(item.key, kept.total)

    app = application(count_up, key=by_sign)
    records = fold(worker(python(app)), [data("in/a", 1, [Item("a", 5), Item("b", -5), Item("c", 7)])])
    assert results(records, OUT, Sum) == [Sum("a", 1), Sum("b", 1), Sum("c", 2)]


def test_a_key_function_that_raises_later_than_it_did_is_a_dead_letter() -> None:
    """Its log was partitioned by another version of the function."""
    app = application(several, key=by_sign)
    records = fold(worker(python(app)), [data("in/a", 1, [Item("a", 1), Item("b", 0), Item("c", 1)])])
    assert [each.key for each in results(records, OUT, Sum)] == ["a", "c"]
    (dead_letter,) = dead_letters(records)
    assert (dead_letter.index, dead_letter.reason) == (1, "ZeroDivisionError: no sign")


def test_a_key_that_is_no_key_is_a_dead_letter() -> None:
    def unhashable(item: Item) -> Any:
        return [item.key]

    app = application(several, key=unhashable)
    assert (
        "unhashable" in dead_letters(fold(worker(python(app)), [data("in/a", 1, [Item("a", 1)])]))[0].reason
    )


def test_rows_keep_the_key_of_the_message_that_they_come_from() -> None:
    def renamed(item: Item) -> list[Item]:
        return [Item("other", item.value)] * 2

    app = Application("meters")
    app.source("in", schema=Item, key="key").flat_map(renamed).stateful(add, state=Kept).sink("out")
    records = fold(worker(python(app)), [data("in/a", 1, [Item("a", 1), Item("b", 10)])])
    assert [each.total for each in results(records, OUT, Sum)] == [1, 2, 10, 20]


def test_a_state_that_no_snapshot_can_hold_is_refused_before_anything_runs() -> None:
    def use(item: Item, kept: Any) -> Sum:
        return Sum(item.key, len(kept))

    with pytest.raises(ApplicationError, match="stateful 'fold': a new state cannot be saved"):
        python(application(use, lambda: defaultdict(lambda: 0)))


@dataclass
class Started:
    total: int


WITHOUT_DEFAULT: Any = Started


def test_a_state_without_a_default_is_refused_with_what_to_write() -> None:
    def use(item: Item, kept: Any) -> Sum:
        return Sum(item.key, kept.total)

    app = Application("meters")
    app.source("in", schema=Item, key="key").stateful(use, state=WITHOUT_DEFAULT).sink("out")
    with pytest.raises(ApplicationError) as caught:
        python(app)
    assert "'use': a new state cannot be made: TypeError: " in str(caught.value)
    assert "a new key begins with Started(): give all fields a default" in str(caught.value)


def test_a_state_of_garbage_is_refused() -> None:
    one = worker(python(application()))
    for junk in (b"", b"junk", b"\x80\x05."):
        with pytest.raises(SnapshotError, match="state of 'fold'"):
            one._tables["fold"].load(SavedStates(junk), log_ns=0, begins=True)


def test_a_state_that_can_no_longer_be_saved_names_its_computation() -> None:
    def use(item: Item, kept: Kept) -> Sum:
        kept.seen.append(lambda: item)  # type: ignore[arg-type]
        return Sum(item.key, 0)

    one = worker(python(application(use)))
    fold(one, [data("in/a", 1, [Item("k", 1)])])
    with pytest.raises(ApplicationError, match="stateful 'fold': a state cannot be saved"):
        one.increment()


def test_states_of_too_many_values_name_what_helps_against_that(monkeypatch: pytest.MonkeyPatch) -> None:
    def use(item: Item, kept: Kept) -> Sum:
        kept.seen.append(item.value)
        return Sum(item.key, 0)

    monkeypatch.setattr(codec, "_VALUES_MAX", 3)
    one = worker(python(application(use)))
    fold(one, [data("in/a", 1, [Item("k", value) for value in range(3)])])
    one.increment()
    fold(one, [data("in/a", 2, [Item("k", 3)], previous=1)])
    with pytest.raises(
        ApplicationError,
        match=r"holds more than 3 values; keep less .*more partitions \(`bettong repartition`\)",
    ):
        one.increment()


def test_functions_that_are_all_marked_or_none() -> None:
    @bettong.compiled
    def marked(item: Item, kept: Kept) -> Sum | None:
        return add(item, kept)

    def plain(total: Sum, kept: Kept) -> Sum | None:
        return total if kept.total else None

    app = Application("meters")
    items, sums = app.source("items", schema=Item, key="key"), app.source("sums", schema=Sum, key="key")
    with pytest.raises(
        ApplicationError, match=r"stateful 'both': mark all of its functions @bettong\.compiled, or"
    ):
        items.merge(sums).stateful({items: marked, sums: plain}, state=Kept, name="both")
