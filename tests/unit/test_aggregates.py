"""Aggregations that are built in, against a plain calculation over the window's messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bettong
from bettong import Application, ApplicationError
from bettong.application.plan import plan
from bettong.worker.state.state_schemas import state_schema_of
from tests.samples.windows import OUT, Amount
from tests.samples.worker import data, dead_letters, fold, python, results, worker


@dataclass
class Facts:
    key: bettong.u32
    start: int
    end: int
    messages: int
    total: int
    least: int
    most: int
    mean: float
    first: int
    last: int
    different: int


def halved(amount: Amount) -> int:
    return amount.value // 2


FACTS = {
    "messages": bettong.Count(),
    "total": bettong.Sum("value"),
    "least": bettong.Min("value"),
    "most": bettong.Max("value"),
    "mean": bettong.Mean("value"),
    "first": bettong.First("value"),
    "last": bettong.Last("value"),
    "different": bettong.Distinct(halved),
}


def described(
    kind: Any, result: Any = Facts, aggregates: dict[str, Any] = FACTS, **options: Any
) -> Application:
    app = Application("meters")
    source = app.source("in", schema=Amount, key="key", event_time="at")
    source.window(kind, bettong.aggregate(result, **aggregates), **options).sink("out")
    return app


@given(values=st.lists(st.integers(-9, 9), min_size=1, max_size=12), slides=st.integers(1, 4))
def test_each_is_what_a_plain_calculation_gives(values: list[int], slides: int) -> None:
    kind = bettong.sliding(timedelta(microseconds=4 * slides), timedelta(microseconds=4))
    one = worker(python(described(kind)))
    messages = [Amount(1, 1000 * number, value) for number, value in enumerate(values)]
    found = results(fold(one, [data("in/x", 1, messages, watermark_ns=10**9)]), OUT, Facts)
    ends = range(4000, 1000 * len(values) + 4000 * slides, 4000)
    expected = []
    for end in ends:
        start = end - 4000 * slides
        inside = [each.value for each in messages if start <= each.at < end]
        if inside:
            expected.append(
                Facts(
                    1,
                    start,
                    end,
                    len(inside),
                    sum(inside),
                    min(inside),
                    max(inside),
                    sum(inside) / len(inside),
                    inside[0],
                    inside[-1],
                    len({each // 2 for each in inside}),
                )
            )
    assert found == expected
    assert one.keys == 0


@dataclass
class Few:
    end: int
    messages: int
    total: int
    different: int


def test_a_window_without_messages_has_no_count_and_no_sum() -> None:
    aggregates = {name: FACTS[name] for name in ("messages", "total", "different")}
    one = worker(
        python(described(bettong.tumbling(timedelta(microseconds=1)), Few, aggregates, emit_empty=True))
    )
    found = fold(one, [data("in/x", 1, [Amount(1, 500, 3), Amount(1, 2500, 4)], watermark_ns=9000)])
    assert results(found, OUT, Few) == [Few(1000, 1, 3, 1), Few(2000, 0, 0, 0), Few(3000, 1, 4, 1)]


def nothing(amount: Amount) -> None:
    return None


def test_what_gives_no_value_is_a_dead_letter_and_adds_nothing() -> None:
    aggregates = {
        "messages": bettong.Count(),
        "total": bettong.Sum(nothing),
        "different": bettong.Distinct("value"),
    }
    one = worker(python(described(bettong.tumbling(timedelta(microseconds=1)), Few, aggregates)))
    found = fold(one, [data("in/x", 1, [Amount(1, 500, 3)], watermark_ns=9000)])
    assert [each.reason for each in dead_letters(found)] == [
        "TypeError: nothing returned None, expected a value"
    ]
    assert results(found, OUT, Few) == []
    assert one.keys == 0


def test_other_aggregates_are_another_state() -> None:
    def layout(**aggregates: Any) -> str:
        (stage,) = plan(described(bettong.sessions(timedelta(1)), Few, {**FEW, **aggregates})).stages
        return state_schema_of(stage, stage.operators[0].node, records=False).layout  # type: ignore[arg-type]

    assert layout() == layout()
    assert layout() != layout(total=bettong.Max("value"))
    assert layout() != layout(total=bettong.Sum("at"))


def max_of_two(one: Amount, other: Amount) -> int:
    return max(one.value, other.value)


TAKES_TWO: Any = max_of_two
FEW: dict[str, Any] = {name: FACTS[name] for name in ("messages", "total", "different")}
NO_FUNCTION: Any = 3


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (
            lambda: bettong.aggregate(Few, messages=bettong.Count()),
            "aggregate(Few): nothing fills total, different",
        ),
        (lambda: bettong.aggregate(int), "aggregate(int): "),
        (lambda: bettong.aggregate(Few, **FEW, more=bettong.Count()), "Few has no field 'more'"),
        (
            lambda: bettong.aggregate(Few, **{**FEW, "total": sum}),
            "total=<built-in function sum> is no aggregate",
        ),
        (lambda: bettong.aggregate(Few, **{**FEW, "total": bettong.Sum(NO_FUNCTION)}), "of=3 is neither"),
        (
            lambda: described(bettong.sessions(timedelta(1)), Few, {**FEW, "total": bettong.Sum("none")}),
            "total=Sum('none'): Amount has no such field; it has key, at, value",
        ),
        (
            lambda: described(bettong.sessions(timedelta(1)), Few, {**FEW, "total": bettong.Sum(TAKES_TWO)}),
            "total=Sum(max_of_two): must take one argument",
        ),
        (
            lambda: described(bettong.tumbling(timedelta(1)), emit_empty=True),
            "emit_empty: least=Min(...) has no value in a window without messages",
        ),
    ],
)
def test_what_cannot_be_filled_is_refused_when_the_application_is_built(
    build: Callable[[], object], complaint: str
) -> None:
    with pytest.raises(ApplicationError) as refused:
        build()
    assert complaint in str(refused.value)
