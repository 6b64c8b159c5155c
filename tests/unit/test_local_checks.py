"""What `local` accepts and refuses, and the names of its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any

import pytest

import bettong
from bettong import Application, ApplicationError, Precision
from bettong.application.windows.kinds import Ranges
from bettong.testing import END, run
from tests.samples.windows import Amount


@dataclass
class Price:
    key: str
    price: float
    cents: int
    exact: Annotated[Decimal, Precision(18, 4)]
    long: Annotated[Decimal, Precision(30, 4)]
    took: timedelta


@dataclass
class Summed:
    key: str
    total: float


@dataclass
class SummedExactly:
    key: str
    total: Annotated[Decimal, Precision(28, 4)]


@dataclass
class SummedTime:
    key: str
    total: timedelta


def whole(price: Price) -> int:
    return price.cents


def rounded(price: Price) -> float:
    return price.price


def prices(local: Any, **options: Any) -> Any:
    source = Application("prices").source("in", schema=Price)
    return lambda kind: source.local("key").window(kind, local, name="seen", **options)


SECOND = bettong.tumbling(timedelta(seconds=1))


@pytest.mark.parametrize(
    ("of", "result"),
    [("price", Summed), (rounded, Summed), (lambda price: price.cents, Summed), ("long", SummedExactly)],
)
@pytest.mark.parametrize("aggregate", [bettong.Sum, bettong.Mean])
def test_sums_that_are_rounded_are_refused(of: Any, result: type[Any], aggregate: Any) -> None:
    if aggregate is bettong.Mean and result is SummedExactly:
        result = Summed
    with pytest.raises(
        ApplicationError, match=r"window 'seen': local: total=(Sum|Mean)\(.*Sum whole numbers"
    ):
        prices(bettong.aggregate(result, total=aggregate(of)))(SECOND)


@pytest.mark.parametrize(
    ("of", "result"),
    [("cents", Summed), (whole, Summed), ("exact", SummedExactly), ("took", SummedTime)],
)
def test_sums_that_are_exact_are_taken(of: Any, result: type[Any]) -> None:
    assert prices(bettong.aggregate(result, total=bettong.Sum(of)))(SECOND).name == "seen"


def test_windows_that_cannot_be_equal_are_refused() -> None:
    count = bettong.aggregate(Summed, total=bettong.Count())
    for kind in (bettong.sessions(timedelta(1)), bettong.counts(3), bettong.ephemeral(timedelta(1))):
        with pytest.raises(ApplicationError, match=r"tumbling and sliding windows only: put key_by"):
            prices(count)(kind)
    with pytest.raises(ApplicationError, match="compiled windows add messages"):
        Application("prices").source("in", schema=Amount).local("key").window(
            SECOND, bettong.compiled(bettong.aggregate(Counted, total=bettong.Count())), name="seen"
        )
    with pytest.raises(ApplicationError, match="'nokey'"):
        Application("prices").source("in", schema=Price).local("nokey").window(SECOND, count)


def test_nothing_but_windows_follows_it() -> None:
    local: Any = Application("prices").source("in", schema=Price).local("key")
    with pytest.raises(ApplicationError, match=r"'stateful' after local\('key'\) of 'in'.*key_by"):
        local.stateful(whole, state=dict)


def test_names_tell_apart_several_windows_of_one_key() -> None:
    app = Application("prices")
    local = app.source("in", schema=Price, event_time=lambda price: price.cents).local("key")
    count = bettong.aggregate(Summed, total=bettong.Count())
    for name, kind in (("second", SECOND), ("minute", bettong.tumbling(timedelta(minutes=1)))):
        local.window(kind, count, name=name).sink(f"{name}s")
    assert set(app.nodes) == {
        "in",
        *("second-partials", "second-keyed", "second", "seconds"),
        *("minute-partials", "minute-keyed", "minute", "minutes"),
    }


def test_fields_of_a_key_may_have_the_names_that_partials_have() -> None:
    @dataclass
    class Odd:
        accumulator: str
        messages: int
        packed_key: bytes

    app = Application("odd")
    count = bettong.aggregate(Counted, total=bettong.Count())
    source = app.source("in", schema=Odd)
    source.local(("accumulator", "messages", "packed_key")).window(SECOND, count, name="seen").sink("out")
    source.local(_odd_key).window(SECOND, count, name="again").sink("again-out")
    outcome = run(app, [("in", [Odd("a", 1, b"x"), Odd("a", 1, b"x"), Odd("a", 2, b"x")])], until=END)
    assert sorted(each.total for each in outcome.outputs["out"]) == [1, 2]
    assert [each.total for each in outcome.outputs["again-out"]] == [3]


@dataclass
class Counted:
    total: int


def _odd_key(odd: Any) -> str:
    return str(odd.accumulator)


class Greatest:
    """It has no accumulator without messages, and none is combined with an empty one."""

    def initial(self) -> int | None:
        return None

    def update(self, accumulator: int | None, amount: Amount) -> int | None:
        return amount.value if accumulator is None else max(accumulator, amount.value)

    def combine(self, left: int | None, right: int | None) -> int | None:
        assert left is not None
        assert right is not None
        return max(left, right)

    def output(self, key: int, accumulator: int | None, window: bettong.Window) -> Found:
        return Found(key, window.start, -1 if accumulator is None else accumulator)


@dataclass
class Found:
    key: int
    start: int
    value: int


def test_what_a_window_without_messages_has_is_combined_with_nothing() -> None:
    outputs = []
    for is_local in (False, True):
        app = Application("meters")
        source = app.source("in", schema=Amount, event_time="at")
        of_key: Any = source.local("key") if is_local else source.key_by("key")
        of_key.window(Ranges(10, 10, 0, 0), Greatest(), name="greatest", emit_empty=True).sink("out")
        frames = [("in", [Amount(1, at, at) for at in times]) for times in ((1, 2, 35), (36, 37), (39,))]
        outcome = run(app, frames, until=END)
        assert outcome.dead_letters == []
        outputs.append(outcome.outputs["out"])
    assert outputs[0] == outputs[1] == [Found(1, 10 * n, value) for n, value in enumerate((2, -1, -1, 39))]
