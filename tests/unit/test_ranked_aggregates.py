"""The greatest and the smallest values of a window: a list of so many, in memory for so many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bettong
from bettong import Application, ApplicationError, Top
from tests.samples.worker import data, dead_letters, fold, python, results, worker

OUT = "meters.sink.out"
# Ranks of which many are equal, and how the values that have them come in parts.
PARTS = st.lists(st.lists(st.integers(0, 5), max_size=8), min_size=1, max_size=5)


def folded(top: Top, pairs: list[tuple[int, int]]) -> Any:
    found = None
    for each in pairs:
        found = top.first(each) if found is None else top.add(found, each)
    return found


@given(parts=PARTS, count=st.integers(1, 6), smallest=st.booleans())
def test_of_equal_values_the_first_ones_stay_however_they_come_in_parts(
    parts: list[list[int]],
    count: int,
    smallest: bool,  # noqa: FBT001 - hypothesis fills it in
) -> None:
    top = Top(count, "value", by="rank", smallest=smallest)
    numbers = iter(range(100))
    panes = [[(rank, next(numbers)) for rank in part] for part in parts]
    whole = folded(top, [pair for pane in panes for pair in pane])
    joined = None
    for pane in panes:
        found = folded(top, pane)
        kept = None if found is None else list(found)
        both = found if joined is None else joined if found is None else top.join(joined, found)
        assert found == kept, "to join changes neither"
        joined = both
    assert joined == whole
    pairs = [pair for pane in panes for pair in pane]
    ordered = sorted(pairs, key=lambda pair: pair[0] if smallest else -pair[0])
    assert top.result(whole) == [value for _, value in ordered[:count]]


def test_no_more_is_kept_than_the_result_has() -> None:
    top = Top(3, "value")
    accumulator = top.first((0, 0))
    for number in range(1000):
        accumulator = top.add(accumulator, (number * 7919 % 1000, number))
        assert len(accumulator) <= 3
    assert [rank for rank, _ in accumulator] == [997, 998, 999]


@dataclass
class Sale:
    shop: str
    at: int
    item: str
    price: float


@dataclass
class Best:
    key: str
    dearest: list[str]
    first_by_name: tuple[str, ...]
    sales: list[Sale] | None


def shop(**aggregates: Any) -> Application:
    app = Application("meters")
    given = {
        "dearest": Top(2, "item", by="price"),
        "first_by_name": Top(2, "item", smallest=True),
        "sales": Top(1, itself, by=lambda sale: sale.price),
        **aggregates,
    }
    source = app.source("in", schema=Sale, key="shop", event_time="at")
    source.window(bettong.tumbling(timedelta(microseconds=1)), bettong.aggregate(Best, **given)).sink("out")
    return app


def itself(sale: Sale) -> Sale:
    return sale


SALES = [
    Sale("a", 1, "tea", 4.0),
    Sale("a", 2, "cup", 9.0),
    Sale("a", 3, "pot", float("nan")),
    Sale("a", 4, "can", 9.0),
]


def test_values_go_by_a_field_a_function_or_themselves() -> None:
    one = worker(python(shop()))
    fold(one, [data("in/x", 1, SALES[:2], watermark_ns=0)])
    restored = worker(python(shop()))
    restored.restore(one.snapshot())
    found = fold(restored, [data("in/x", 2, SALES[2:], watermark_ns=9000)])
    assert results(found, OUT, Best) == [Best("a", ["cup", "can"], ("can", "cup"), [SALES[1]])]
    assert [each.reason for each in dead_letters(found)] == [
        "ValueError: nan has no place among numbers; where= leaves messages out"
    ]


def test_of_no_message_the_list_is_empty() -> None:
    one = worker(python(shop(sales=Top(1, itself, by="price", where=lambda _: False))))
    found = fold(one, [data("in/x", 1, SALES[:1], watermark_ns=9000)])
    assert results(found, OUT, Best) == [Best("a", ["tea"], ("tea",), [])]


@pytest.mark.parametrize(
    "rank",
    [
        lambda sale: (sale.price, sale.at),
        lambda sale: (sale.shop, [sale.price]),
        lambda sale: Decimal(sale.price),
    ],
    ids=["tuple", "list in a tuple", "decimal"],
)
@pytest.mark.parametrize("smallest", [False, True])
def test_a_rank_that_holds_nan_is_refused(rank: Callable[[Sale], Any], smallest: bool) -> None:  # noqa: FBT001
    app = shop(dearest=Top(3, "item", by=rank, smallest=smallest))
    for first in (SALES, SALES[::-1]):
        sent = [replace(sale, at=1) for sale in first]
        found = fold(worker(python(app)), [data("in/x", 1, sent, watermark_ns=9000)])
        (best,) = results(found, OUT, Best)
        assert set(best.dearest) == {"tea", "cup", "can"}
        (refused,) = [each.reason for each in dead_letters(found)]
        assert refused.startswith("ValueError: ")
        assert refused.endswith(" has no place among numbers; where= leaves messages out")


NO_COUNT: Any = "3"
YES: Any = "yes"


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda: Top(0, "item"), "Top(0, ...): expected a number from 1 to 10000"),
        (lambda: Top(NO_COUNT, "item"), "Top('3', ...): expected a number"),
        (lambda: Top(10_001, "item"), "Top(10001, ...): expected a number"),
        (lambda: Top(1, "item", smallest=YES), "Top(..., smallest='yes'): expected True or False"),
        (lambda: shop(key=Top(1, "item")), "key=Top(...): its result is list, and the field is text"),
        (lambda: shop(dearest=Top(1, "thing")), "dearest=Top('thing'): Sale has no such field"),
        (lambda: shop(dearest=Top(1, "item", by="cost")), "dearest=Top(by='cost'): Sale has no such field"),
    ],
)
def test_what_is_no_list_of_so_many_is_refused_when_the_application_is_built(
    build: Callable[[], object], complaint: str
) -> None:
    with pytest.raises(ApplicationError) as refused:
        build()
    assert complaint in str(refused.value)
