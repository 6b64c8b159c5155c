"""Quantiles and counts of different values that are near enough: how near, and the same in whatever order they come."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from math import ceil, inf, nan, sqrt
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bettong
from bettong import Application, ApplicationError, ApproxDistinct, Quantile
from tests.samples.worker import data, dead_letters, fold, python, results, worker

OUT = "meters.sink.out"
NUMBERS = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-1000, 1000))
QUANTILE, DISTINCT = Quantile("value", 0.5), ApproxDistinct("value")


def folded(sketch: Any, values: Iterable[Any]) -> Any:
    found = None
    for value in map(sketch.value, values):
        found = sketch.first(value) if found is None else sketch.add(found, value)
    return found


def joined(sketch: Any, parts: Iterable[Any]) -> Any:
    found = None
    for part in parts:
        before = deepcopy(part)
        found = part if found is None else sketch.join(found, part)
        assert part == before, "to join changes neither"
    return found


@given(
    values=st.lists(NUMBERS, min_size=1, max_size=60),
    q=st.sampled_from([0, 0.01, 0.25, 0.5, 0.9, 0.999, 1]),
    chance=st.randoms(),
)
def test_a_quantile_is_near_the_exact_one_in_whatever_order_numbers_come(
    values: list[float], q: float, chance: Random
) -> None:
    quantile = Quantile("value", q)
    found = quantile.result(folded(quantile, values))
    exact = sorted(values)[max(0, ceil(Decimal(str(q)) * len(values)) - 1)]
    assert abs(found - exact) <= max(abs(exact) / 128, 1e-307)
    shuffled = chance.sample(values, len(values))
    stops = sorted(chance.randrange(len(values) + 1) for _ in range(3))
    cuts = [shuffled[start:stop] for start, stop in zip([0, *stops], [*stops, None], strict=True)]
    parts = [folded(quantile, part) for part in cuts if part]
    chance.shuffle(parts)
    assert quantile.result(joined(quantile, parts)) == found


def test_numbers_of_all_sizes_are_counted_in_bounded_memory() -> None:
    """They touch more than 4 times as many buckets as are kept: so these are 8 times as wide, whatever came first."""
    step = 2 ** (1 / 64)
    sizes = [2.0**exponent * step**part for exponent in range(-900, 900, 9) for part in range(64)]
    values = [sign * size for size in sizes for sign in (1, -1)]
    shuffled = Random(5).sample(values, len(values))
    outcomes = []
    for each in (values, values[::-1], shuffled):
        accumulator = folded(QUANTILE, each)
        _, counts = accumulator
        assert len(counts) <= 4096
        assert sum(counts.values()) == len(values)
        outcomes.append([Quantile("value", q).result(accumulator) for q in (0, 0.1, 0.4, 0.6, 1)])
    parts = [folded(QUANTILE, shuffled[start::7]) for start in range(7)]
    accumulator = joined(QUANTILE, parts)
    outcomes.append([Quantile("value", q).result(accumulator) for q in (0, 0.1, 0.4, 0.6, 1)])
    assert all(each == outcomes[0] for each in outcomes)
    exact = [sorted(values)[max(0, ceil(q * len(values)) - 1)] for q in (0, 0.1, 0.4, 0.6, 1)]
    assert outcomes[0] == pytest.approx(exact, rel=2**3 / 128)
    assert outcomes[0] != pytest.approx(exact, rel=1 / 128)


def test_a_number_that_is_far_from_all_others_changes_none_of_them() -> None:
    values = [2.5, 1, 1e300, 1e-300, 3, 1.7e308]
    for q, expected in ((0.5, 2.5), (0, 1e-300), (1, 1.7e308)):
        assert Quantile("value", q).result(folded(QUANTILE, values)) == pytest.approx(expected, rel=1 / 128)


def test_a_share_is_meant_as_it_is_written() -> None:
    """0.07 of a hundred are seven; the float that is nearest to 0.07 is a little more."""
    accumulator = folded(QUANTILE, range(1, 101))
    assert Quantile("value", 0.07).result(accumulator) == pytest.approx(7, rel=1 / 128)
    assert QUANTILE.result(folded(QUANTILE, [Decimal("2.5"), 1, 10**9])) == pytest.approx(2.5, rel=1 / 128)


@pytest.mark.parametrize("count", [1, 30, 64, 65, 400, 3000, 20_000])
def test_a_count_of_different_values_is_as_near_as_its_standard_error_says(count: int) -> None:
    errors = []
    for seed in range(10 if count < 20_000 else 3):
        values = [f"{seed}-{number}" for number in range(count)]
        errors.append(DISTINCT.result(folded(DISTINCT, values * 2)) / count - 1)
    assert sqrt(sum(each**2 for each in errors) / len(errors)) < 0.0163 * 1.5
    assert max(map(abs, errors)) < 0.0163 * 3


@given(values=st.lists(st.integers(0, 300), min_size=1, max_size=200), chance=st.randoms())
def test_a_count_of_different_values_is_the_same_in_whatever_order_they_come(
    values: list[int], chance: Random
) -> None:
    found = DISTINCT.result(folded(DISTINCT, values))
    assert abs(found - len(set(values))) <= 1 + len(set(values)) * 0.0163 * 4
    shuffled = chance.sample(values, len(values))
    stop = chance.randrange(len(values) + 1)
    parts = [folded(DISTINCT, part) for part in (shuffled[:stop], shuffled[stop:]) if part]
    assert DISTINCT.result(joined(DISTINCT, parts)) == found
    assert DISTINCT.result(joined(DISTINCT, parts[::-1])) == found


def test_what_is_equal_in_python_is_one_value_and_nothing_else_is() -> None:
    same: list[list[Any]] = [
        [1, 1.0, True],
        [0, 0.0, -0.0, False],
        [(1, "a"), (1.0, "a"), (True, "a")],
        [2.0**63, 2**63],
    ]
    for values in same:
        assert len(set(map(DISTINCT.value, values))) == 1
    different: list[Any] = ["1", b"1", 1, 1.5, (1,), ("1",), ((1,),), "", b"", (), 1e300, 2**64 - 1, -1]
    assert len(set(map(DISTINCT.value, different))) == len(different)


def test_a_value_has_the_same_hash_in_every_process() -> None:
    """Snapshots of one are read by the next."""
    code = "import bettong; print([bettong.ApproxDistinct('x').value(each) for each in ('tea', b'', 7, (1.5, 'a'))])"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {f"{[DISTINCT.value(each) for each in ('tea', b'', 7, (1.5, 'a'))]}\n"}


@pytest.mark.parametrize(
    ("sketch", "value", "complaint"),
    [
        (QUANTILE, "12", "Quantile of '12', expected a number"),
        (QUANTILE, nan, "Quantile of nan, expected a finite number"),
        (QUANTILE, -inf, "Quantile of -inf, expected a finite number"),
        (DISTINCT, [1], "ApproxDistinct of [1], expected text, bytes, a number, or a tuple of these"),
        (DISTINCT, (1, Decimal(1)), "ApproxDistinct of Decimal('1'), expected"),
    ],
)
def test_what_cannot_be_added_is_refused_before_anything_is(sketch: Any, value: Any, complaint: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        sketch.value(value)
    assert complaint in str(refused.value)


@dataclass
class Visit:
    page: str
    at: int
    person: str
    took: float
    day: timedelta


@dataclass
class Visits:
    key: str
    persons: int
    usual: float | None


def visits(**aggregates: Any) -> Application:
    app = Application("meters")
    source = app.source("in", schema=Visit, key="page", event_time="at")
    given = {"persons": ApproxDistinct("person"), "usual": Quantile("took", 0.5), **aggregates}
    kind = bettong.tumbling(timedelta(microseconds=1))
    source.window(kind, bettong.aggregate(Visits, **given), name="visits").sink("out")
    return app


def test_sketches_are_restored_small_and_large() -> None:
    took = [float(number) for number in range(1, 301)]
    made = [Visit("/", 1, f"p{number}", took[number], timedelta(1)) for number in range(300)]
    for count in (50, 300):
        one, restored = (worker(python(visits())) for _ in range(2))
        fold(one, [data("in/x", 1, made[: count // 2], watermark_ns=0)])
        restored.restore(one.snapshot())
        last = data("in/x", 2, made[count // 2 : count], watermark_ns=9000)
        (found,) = results(fold(restored, [last]), OUT, Visits)
        assert [found] == results(fold(one, [last]), OUT, Visits)
        assert found.persons == pytest.approx(count, rel=0.05)
        assert found.usual == pytest.approx(count / 2, rel=1 / 128)


def test_open_windows_with_sketches_are_shown_as_json() -> None:
    """What `bettong state get` shows."""
    one = worker(python(visits()))
    made = [Visit("/", 1, f"p{number}", 1.5, timedelta(1)) for number in range(100)]
    fold(one, [data("in/x", 1, made, watermark_ns=0)])
    assert '[0, {"' in json.dumps(one.tables["visits"].state_of("/"))


def test_a_window_whose_messages_no_condition_fits_has_no_quantile() -> None:
    def never(visit: Visit) -> bool:
        return False

    app = visits(persons=ApproxDistinct("person", where=never), usual=Quantile("took", 0.5, where=never))
    one = worker(python(app))
    found = fold(one, [data("in/x", 1, [Visit("/", 1, "ann", 1.0, timedelta(1))], watermark_ns=9000)])
    assert (results(found, OUT, Visits), dead_letters(found)) == ([Visits("/", 0, None)], [])


HALF: Any = "half"


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda: Quantile("took", HALF), "Quantile(..., 'half'): expected a number from 0 to 1"),
        (lambda: Quantile("took", 50), "Quantile(..., 50): expected a number from 0 to 1"),
        (
            lambda: visits(usual=Quantile("person", 0.5)),
            "usual=Quantile('person'): person is text, expected int, float or decimal; or give a function",
        ),
        (
            lambda: visits(persons=ApproxDistinct("day")),
            "persons=ApproxDistinct('day'): day is timedelta, expected text, bytes, int, float or bool",
        ),
        (
            lambda: visits(usual=ApproxDistinct("day"), persons=Quantile("took", 0.5)),
            "persons=Quantile(...): its result is float, and the field is int",
        ),
    ],
)
def test_what_has_no_sketch_is_refused_when_the_application_is_built(
    build: Callable[[], object], complaint: str
) -> None:
    with pytest.raises(ApplicationError) as refused:
        build()
    assert complaint in str(refused.value)
