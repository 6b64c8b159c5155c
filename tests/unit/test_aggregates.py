"""Aggregations that are built in, against a plain calculation over the window's messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
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
        "TypeError: total=Sum(nothing): found None, expected a value; where= leaves messages out"
    ]
    assert results(found, OUT, Few) == []
    assert one.keys == 0


@dataclass
class Both:
    one: int | None
    other: int


@dataclass
class Counted:
    ones: int
    others: int


def test_a_message_that_is_a_dead_letter_is_counted_by_none() -> None:
    """Both aggregates change their accumulators in place."""
    aggregation = bettong.aggregate(Counted, ones=bettong.Distinct("other"), others=bettong.Distinct("one"))
    counted = aggregation.initial()
    for each in (Both(1, 1), Both(2, 3)):
        counted = aggregation.update(counted, each)
    with pytest.raises(TypeError, match="others=Distinct"):
        aggregation.update(counted, Both(None, 2))
    window = bettong.Window(0, 1, final=True)
    assert aggregation.output(1, counted, window) == Counted(2, 2)


def test_other_aggregates_are_another_state() -> None:
    def layout(**aggregates: Any) -> str:
        (stage,) = plan(described(bettong.sessions(timedelta(1)), Few, {**FEW, **aggregates})).stages
        return state_schema_of(stage, stage.operators[0].node, records=False).layout  # type: ignore[arg-type]

    assert layout() == layout()
    assert layout() != layout(total=bettong.Max("value"))
    assert layout() != layout(total=bettong.Sum("at"))
    assert layout() != layout(total=bettong.Sum("value", where=is_large))


@dataclass
class Chosen:
    key: bettong.u32
    end: int
    messages: int
    large: int
    total: int
    least: int | None
    mean: float | None
    last: int | None
    different: int


def is_large(amount: Amount) -> bool:
    return amount.value > 4


CHOSEN = {
    "messages": bettong.Count(),
    "large": bettong.Count(where=is_large),
    "total": bettong.Sum("value", where=lambda amount: amount.value > 4),
    "least": bettong.Min("value", where=is_large),
    "mean": bettong.Mean("value", where=is_large),
    "last": bettong.Last("value", where=is_large),
    "different": bettong.Distinct("value", where=is_large),
}


@given(values=st.lists(st.integers(-9, 9), min_size=1, max_size=12), slides=st.integers(1, 4))
def test_a_condition_leaves_out_messages_of_its_aggregate_alone(values: list[int], slides: int) -> None:
    kind = bettong.sliding(timedelta(microseconds=4 * slides), timedelta(microseconds=4))
    one = worker(python(described(kind, Chosen, CHOSEN)))
    messages = [Amount(1, 1000 * number, value) for number, value in enumerate(values)]
    found = results(fold(one, [data("in/x", 1, messages, watermark_ns=10**9)]), OUT, Chosen)
    expected = []
    for end in range(4000, 1000 * len(values) + 4000 * slides, 4000):
        inside = [each.value for each in messages if end - 4000 * slides <= each.at < end]
        large = [each for each in inside if each > 4]
        if inside:
            least, mean, last = (min(large), sum(large) / len(large), large[-1]) if large else (None,) * 3
            found_here = (len(inside), len(large), sum(large), least, mean, last, len(set(large)))
            expected.append(Chosen(1, end, *found_here))
    assert found == expected


@dataclass
class Sale:
    key: int
    at: int
    price: int | None
    is_new: bool


@dataclass
class Priced:
    new: int
    dearest: int | None


def dear(**aggregates: Any) -> Application:
    app = Application("meters")
    source = app.source("in", schema=Sale, key="key", event_time="at")
    aggregates = {"new": bettong.Count(where="is_new"), "dearest": bettong.Max("price"), **aggregates}
    kind = bettong.tumbling(timedelta(microseconds=1))
    source.window(kind, bettong.aggregate(Priced, **aggregates)).sink("out")
    return app


SALES = [
    Sale(1, 1, price=5, is_new=True),
    Sale(1, 2, price=None, is_new=True),
    Sale(1, 3, price=7, is_new=False),
]


def test_a_condition_may_be_a_field_of_the_message() -> None:
    one = worker(python(dear(dearest=bettong.Max("price", where="is_new"))))
    found = fold(one, [data("in/x", 1, [SALES[0], SALES[2]], watermark_ns=9000)])
    assert results(found, OUT, Priced) == [Priced(1, 5)]


def test_a_field_that_is_none_is_no_value_and_a_condition_leaves_it_out() -> None:
    one = worker(python(dear()))
    found = fold(one, [data("in/x", 1, SALES, watermark_ns=9000)])
    assert results(found, OUT, Priced) == [Priced(1, 7)]
    assert [each.reason for each in dead_letters(found)] == [
        "TypeError: dearest=Max(price): found None, expected a value; where= leaves messages out"
    ]
    priced = worker(python(dear(dearest=bettong.Max("price", where=lambda sale: sale.price is not None))))
    found = fold(priced, [data("in/x", 1, SALES, watermark_ns=9000)])
    assert (results(found, OUT, Priced), dead_letters(found)) == ([Priced(2, 7)], [])


def test_a_condition_that_gives_no_bool_is_a_dead_letter_that_names_the_aggregate() -> None:
    def price(sale: Any) -> Any:
        return sale.price

    one = worker(python(dear(new=bettong.Count(where=price))))
    found = fold(one, [data("in/x", 1, SALES[:1], watermark_ns=9000)])
    assert [each.reason for each in dead_letters(found)] == [
        "TypeError: new=Count(where=price): where= gave 5, expected True or False"
    ]
    assert one.keys == 0


def test_a_window_without_messages_gives_none_where_the_result_may_be_none() -> None:
    aggregates = {name: CHOSEN[name] for name in ("messages", "least")}
    one = worker(
        python(described(bettong.tumbling(timedelta(microseconds=1)), Least, aggregates, emit_empty=True))
    )
    found = fold(one, [data("in/x", 1, [Amount(1, 500, 7), Amount(1, 2500, 4)], watermark_ns=9000)])
    assert results(found, OUT, Least) == [Least(1000, 1, 7), Least(2000, 0, None), Least(3000, 1, None)]


@dataclass
class Least:
    end: int
    messages: int
    least: int | None


def odd(amount: Amount) -> Any:
    """A list, which has no hash and is no number, of every second message."""
    return [amount.value] if amount.value % 2 else amount.value


@pytest.mark.parametrize("refuses", [bettong.Distinct(odd), bettong.Sum(odd)])
def test_a_message_that_one_aggregate_refuses_is_in_no_other(refuses: Any) -> None:
    """Also where the other comes before it, and its accumulator is changed in place."""
    aggregates = {"different": bettong.Distinct("value"), "messages": bettong.Count(), "total": refuses}
    one = worker(python(described(bettong.tumbling(timedelta(microseconds=1)), Few, aggregates)))
    amounts = [Amount(1, 500, value) for value in (4, 3)]
    found = fold(one, [data("in/x", 1, amounts, watermark_ns=9000)])
    assert len(dead_letters(found)) == 1
    assert [(each.messages, each.different) for each in results(found, OUT, Few)] == [(1, 1)]


@dataclass
class Dated:
    start: datetime
    messages: int


def max_of_two(one: Amount, other: Amount) -> int:
    return max(one.value, other.value)


def cost(sale: Sale) -> int:
    return sale.price or 0


TAKES_TWO: Any = max_of_two
HALVED: Any = halved
COST: Any = cost
FEW: dict[str, Any] = {name: FACTS[name] for name in ("messages", "total", "different")}
NO_FUNCTION: Any = 3


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (
            lambda: bettong.aggregate(Few, messages=bettong.Count()),
            "aggregate(Few): nothing fills total, different",
        ),
        (
            lambda: bettong.aggregate(Dated, messages=bettong.Count()),
            "aggregate(Dated): the window fills start with Unix time in nanoseconds, and the field is datetime",
        ),
        (lambda: bettong.aggregate(int), "aggregate(int): "),
        (lambda: bettong.aggregate(Few, **FEW, more=bettong.Count()), "Few has no field 'more'"),
        (
            lambda: bettong.aggregate(Few, **{**FEW, "total": sum}),
            "total=<built-in function sum> is no aggregate",
        ),
        (
            lambda: bettong.aggregate(Few, **{**FEW, "total": bettong.Sum}),
            "total=<class 'bettong.application.windows.aggregates.Sum'> is no aggregate; expected bettong.Count()",
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
            "emit_empty: least=Min(...) has no value in a window without messages; annotate Facts.least as",
        ),
        (
            lambda: bettong.aggregate(Few, **{**FEW, "total": bettong.Max("value", where=is_large)}),
            "total=Max(...): where= may leave no message, and of none it has no value: annotate the field",
        ),
        (
            lambda: bettong.aggregate(Few, **{**FEW, "total": bettong.Sum("value", where=NO_FUNCTION)}),
            "total: where=3 is neither",
        ),
        (
            lambda: dear(new=bettong.Count(where="price")),
            "new=Count(where='price'): price is optional, expected bool",
        ),
        (lambda: dear(new=bettong.Count(where="none")), "new=Count(where='none'): Sale has no such field"),
        (
            lambda: dear(new=bettong.Count(where=TAKES_TWO)),
            "new=Count(where=max_of_two): must take one argument",
        ),
        (lambda: dear(new=bettong.Count(where=HALVED)), "new=Count(where=halved): "),
        (lambda: dear(new=bettong.Count(where=COST)), "new=Count(where=cost): must return bool, not int"),
        (
            lambda: bettong.aggregate(Few, **{**FEW, "total": bettong.Mean("value")}),
            "total=Mean(...): its result is float, and the field is int",
        ),
    ],
)
def test_what_cannot_be_filled_is_refused_when_the_application_is_built(
    build: Callable[[], object], complaint: str
) -> None:
    with pytest.raises(ApplicationError) as refused:
        build()
    assert complaint in str(refused.value)
