"""States as bytes: they are read equal and of the same types; what is not data is refused by name."""

from __future__ import annotations

import math
import random
import string
import sys
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import make_dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from datetime import time as time_of_day
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong import ApplicationError
from bettong.worker.state import codec as state_codec
from bettong.worker.state.codec import UnfitError
from bettong.worker.state.objects import check_state
from tests.samples.states import (
    ByName,
    Checked,
    Colour,
    Derived,
    Empty,
    Frozen,
    Kept,
    Level,
    NoDataclass,
    Nothing,
    OwnWay,
    Point,
    Rights,
    Slots,
    again,
    fold,
    read,
    written,
)


def alike(one: Any, other: Any) -> bool:
    """Whether two values are equal, of the same types all through, in the same order; NaN is NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list | tuple | deque):
        same_bound = getattr(one, "maxlen", None) == getattr(other, "maxlen", None)
        return same_bound and len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        made = getattr(one, "default_factory", None) is getattr(other, "default_factory", None)
        return made and alike(list(one.items()), list(other.items()))
    if isinstance(one, set | frozenset):
        return one == other and {*map(type, one)} == {*map(type, other)}
    if isinstance(one, np.ndarray | np.generic):
        same_type = one.dtype == other.dtype and one.shape == other.shape
        return bool(same_type and one.tobytes() == other.tobytes())
    if isinstance(one, Slots):
        return alike((one.total, one.text), (other.total, other.text))
    if hasattr(one, "__dataclass_fields__"):
        own = [vars(each) if hasattr(each, "__dict__") else {"total": each.total} for each in (one, other)]
        return alike(own[0], own[1])
    if isinstance(one, datetime):
        return (one, one.fold, repr(one.tzinfo)) == (other, other.fold, repr(other.tzinfo))
    return repr(one) == repr(other)


keys = st.one_of(
    st.integers(),
    st.text(),
    st.binary(),
    st.booleans(),
    st.none(),
    st.dates(),
    st.sampled_from([*Colour, *Level]),
    st.tuples(st.integers(), st.text()),
    st.frozensets(st.text()),
    st.builds(Frozen, st.integers()),
)
leaves = st.one_of(
    keys,
    st.floats(),
    st.text(st.characters()),
    st.binary().map(bytearray),
    st.complex_numbers(allow_nan=False),
    st.decimals(),
    st.uuids(),
    st.timedeltas(),
    st.times(),
    st.datetimes(timezones=st.none() | st.just(UTC) | st.just(ZoneInfo("UTC"))),
    st.just(Rights.READ | Rights.WRITE),
    st.integers(0, 2**64 - 1).map(np.uint64),
    st.floats(width=32).map(np.float32),
    st.lists(st.integers(-5, 5), max_size=4).map(lambda each: np.array(each, dtype=np.int16)),
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.tuples(st.lists(inner, max_size=4), st.none() | st.integers(4, 9)).map(lambda each: deque(*each)),
        st.sets(keys, max_size=4),
        st.dictionaries(keys, inner, max_size=4),
        st.dictionaries(keys, inner, max_size=4).map(OrderedDict),
        st.dictionaries(keys, inner, max_size=4).map(lambda each: defaultdict(list, each)),
        st.dictionaries(keys, st.integers(), max_size=4).map(Counter),
        st.builds(Kept, st.integers(), inner),
        st.builds(Point, inner, inner),
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(st.lists(values, max_size=6))
def test_whatever_states_hold_comes_back_equal_and_of_the_same_types(states: list[Any]) -> None:
    assert alike(again(*states), states)
    assert written(*again(*states)) == written(*states)


def derived() -> Derived:
    made = Derived(3)
    made.double = 9
    return made


def lacking() -> Derived:
    made = Derived(3)
    del made.total
    return made


@pytest.mark.parametrize(
    "make",
    [
        lambda n: Kept(n, ["a"]),
        lambda n: Slots(n, "t"),
        Frozen,
        lambda _: derived(),
        Checked,
        lambda n: ByName(total=n),
        lambda _: Empty(),
        lambda _: Nothing(),
        lambda n: Point(n, Point(1)),
        lambda n: Kept(n) if n % 2 else Slots(n),
        lambda n: [None, True, 1, 1.0, "1", b"1", 2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, 2**4000][
            n : n + 9
        ],
        lambda n: Kept(n, "\ud800 is no text of UTF-8"),
        lambda n: Counter(a=n),
        lambda n: defaultdict(Counter, {n: Counter(a=1)}),
        lambda n: defaultdict(None, {n: 1}),
        lambda _: [datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))],
        lambda _: timezone(timedelta(hours=2), "summer"),
        lambda _: time_of_day(1, 2, 3, 4, tzinfo=UTC),
        lambda n: [Decimal("-0.00"), Decimal("sNaN7"), Decimal(n), UUID(int=n), date.max],
        lambda n: np.arange(6, dtype=">i4").reshape(2, 3)[:, ::-1] + n,
        lambda n: np.array([(n, "a", [1.5, 2])], dtype=[("n", "i4"), ("t", "U3"), ("v", "f8", (2,))]),
        lambda _: np.zeros((0, 3)),
        lambda n: [np.float64(n), np.datetime64(n, "ms"), np.str_("n"), np.bytes_(b"n"), np.bool_(n)],
        lambda _: frozenset({1, "a", (1, frozenset({2.5, None}))}),
        Rights,
        lambda n: n,
        lambda _: None,
    ],
)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_states_come_back_equal(make: Callable[[int], Any], count: int) -> None:
    states = [make(number) for number in range(count)]
    assert alike(again(*states), states)


def test_attributes_besides_the_fields_and_fields_without_a_value_are_kept() -> None:
    states: list[Any] = [Kept(1), Kept(2), lacking()]
    states[1].more = 9
    found = again(*states)
    assert [vars(each) for each in found] == [vars(each) for each in states]


def test_no_code_of_a_class_runs_when_its_objects_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    data = written(Checked(3), Kept(4))

    def fails(*_: Any, **__: Any) -> None:
        raise AssertionError("called")

    for kind in (Checked, Kept):
        monkeypatch.setattr(kind, "__init__", fails)
        monkeypatch.setattr(kind, "__setattr__", fails)
    assert [each.total for each in read(data)] == [4, 4]


def test_equal_states_have_equal_bytes() -> None:
    """Sets of text have another order in each process."""
    names = list(string.ascii_letters)
    random.Random(1).shuffle(names)
    assert written({*names, 1, None}) == written({None, *sorted(names), 1})
    assert written(frozenset([(2, "b"), (1, "a")])) == written(frozenset([(1, "a"), (2, "b")]))


def test_what_is_held_twice_is_two_objects_afterwards() -> None:
    shared = [1]
    (found,) = again([shared, shared])
    assert found == [[1], [1]]
    assert found[0] is not found[1]


def test_an_object_that_holds_itself_is_an_error() -> None:
    alone: list[Any] = []
    alone.append(alone)
    many: list[Any] = []
    many.extend([many] * 100)
    kept = Kept()
    kept.held = {"kept": [kept]}
    for each in (alone, many, kept):
        with pytest.raises(ApplicationError, match="an object that holds itself"):
            written(each)
    deep: list[Any] = []
    for _ in range(200):
        deep = [deep]
    with pytest.raises(ApplicationError, match="deeper than 100 levels"):
        written(deep)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (NoDataclass, "NoDataclass"),
        (lambda: lambda: 0, "builtins.function"),
        (lambda: sys.stdout, "TextIO|EncodedFile|StringIO"),
        (threading.Lock, "lock"),
        (lambda: OwnWay(1), "OwnWay"),
        (lambda: make_dataclass("Local", [("total", int)])(1), "Local"),
        (lambda: defaultdict(lambda: 0), "defaultdict that calls .*lambda"),
        (lambda: np.array([object()]), "array of dtype object"),
        (lambda: SimpleNamespace(a=1), "SimpleNamespace"),
        (lambda: NoDataclass, "builtins.type"),
        (lambda: OSError("x"), "OSError"),
        (lambda: iter([1]), "list_iterator"),
    ],
)
def test_what_is_no_data_is_named_with_the_remedy(value: Callable[[], Any], names: str) -> None:
    for held in (value(), Kept(1, [value()])):
        with pytest.raises(ApplicationError, match=rf"stateful 'fold'.*{names}.*state_codec=bettong\.Pickle"):
            written(held)
    with pytest.raises(ApplicationError, match=rf"Kept\.held holds .*{names}"):
        written(Kept(1, value()))


def test_a_state_that_does_not_fit_is_refused_before_anything_runs() -> None:
    with pytest.raises(ApplicationError, match=r"a new state cannot be saved: .*NoDataclass"):
        check_state(fold(NoDataclass)._node)


def test_objects_of_one_class_name_it_once() -> None:
    data = written(*(Kept(number) for number in range(100)))
    assert data.count(b"Kept") == 1
    with pytest.raises(UnfitError):
        state_codec.encode([1], [lambda: 0], fold()._codec._classes)  # type: ignore[attr-defined]
