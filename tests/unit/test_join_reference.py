"""`Stream.join_reference`: each message gets the row of the version that the log has reached."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong.testing import (
    CRASH,
    END,
    RESTORE,
    AtEachRecord,
    Reference,
    check,
    frame,
    run,
)
from tests.samples.reference_join import (
    ON,
    How,
    Named,
    Order,
    Price,
    Priced,
    accounts,
    app_of,
    by_text,
    of_account,
    priced,
    priced_or_not,
    prices,
)

KEYS = ("a", "b", "c", "d")


def interpreted(how: How, on: Any, steps: list[Any]) -> list[Priced]:
    """The output, message by message."""
    rows = {each.sku: each for each in prices()}
    found: list[Priced] = []
    for step in steps:
        if isinstance(step, Reference):
            rows = {each.sku: each for each in step.table}
            continue
        (_, order) = step
        if on is by_text and order.sku == "d":
            continue
        row = rows.get(order.sku)
        if how == "left":
            found.append(priced_or_not(order, row))
        elif row is not None and (made := priced(order, row)) is not None:
            found.append(made)
    return found


ORDERS = st.builds(Order, st.sampled_from(KEYS), st.sampled_from(KEYS), st.integers(0, 9)).map(
    lambda order: ("orders", order)
)
VERSIONS = st.dictionaries(st.sampled_from(KEYS), st.integers(0, 3)).map(
    lambda rows: Reference("priced", [Price(*each) for each in rows.items()])
)


@st.composite
def cut(draw: st.DrawFn, steps: list[Any]) -> list[Any]:
    """The same steps with messages in larger frames, crashes and restarts between them."""
    found: list[Any] = []
    for step in steps:
        if not isinstance(step, Reference):
            last = found[-1] if found else None
            if isinstance(last, tuple) and draw(st.booleans()):
                found[-1] = ("orders", [*last[1], step[1]])
            else:
                found.append(("orders", [step[1]]))
        else:
            found.append(step)
        if found[0] is not step or len(found) > 1:
            found += draw(st.sampled_from([[], [], [CRASH], [RESTORE], [RESTORE, CRASH]]))
    return found


@settings(max_examples=120)
@given(
    how=st.sampled_from(["inner", "left"]),
    on=st.sampled_from(sorted(ON)),
    steps=st.lists(st.one_of(ORDERS, ORDERS, VERSIONS), max_size=14).filter(
        lambda steps: not steps or not isinstance(steps[0], Reference)
    ),
    partitions=st.sampled_from([1, 3, 16]),
    at_each_record=st.sampled_from([None, *AtEachRecord]),
    data=st.data(),
)
def test_a_message_gets_the_row_of_its_version_whatever_happens(
    how: How,
    on: str,
    steps: list[Any],
    partitions: int,
    at_each_record: AtEachRecord | None,
    data: st.DataObject,
) -> None:
    expected = interpreted(how, ON[on], steps)
    found = run(
        app_of(how, ON[on]), data.draw(cut(steps)), partitions=partitions, at_each_record=at_each_record
    )
    outputs = found.outputs["out"]
    if partitions == 1:
        assert outputs == expected
    assert sorted(outputs, key=repr) == sorted(expected, key=repr)
    failed = sum(not isinstance(step, Reference) and step[1].sku == "d" for step in steps)
    assert len(found.dead_letters) == (failed if on == "function" else 0)


def test_check_finds_no_difference() -> None:
    case = [
        ("orders", Order("a", "x", 1)),
        ("orders", Order("b", "y", 2)),
        Reference("priced", [Price("b", 21), Price("c", 30)]),
        ("orders", Order("b", "x", 3)),
        ("orders", Order("a", "y", 4)),
        ("orders", Order("c", "y", 5)),
    ]
    check(app_of("left"), case)
    outcome = run(app_of("left"), case)
    assert outcome.outputs["out"] == [
        Priced(1, 10),
        Priced(2, 20),
        Priced(3, 21),
        Priced(4, -1),
        Priced(5, 30),
    ]


@dataclass
class Bid:
    auction: int
    bidder: int
    price: int


@dataclass
class SideInput:
    key: int
    value: str


@dataclass
class Enriched:
    auction: int
    bidder: int
    price: int
    value: str


def enrich(bid: Bid, side: SideInput) -> Enriched:
    return Enriched(bid.auction, bid.bidder, bid.price, side.value)


def side_inputs() -> pa.Table:
    return pa.table({"value": [f"side {number}" for number in range(1000)], "key": range(1000)})


def of_auction(bid: Bid) -> int:
    return bid.auction % 1200


def test_query_13_of_nexmark_needs_no_key() -> None:
    app = bettong.Application("nexmark")
    bids = app.source("bids", schema=Bid)
    bids.join_reference(side_inputs, enrich, key="key", on=of_auction).sink("enriched")
    sent = [Bid(auction, auction % 7, 100 + auction) for auction in range(900, 3400, 50)]
    outcome = run(app, [frame("bids", *sent[:20]), frame("bids", *sent[20:])])
    assert outcome.outputs["enriched"] == [
        Enriched(bid.auction, bid.bidder, bid.price, f"side {bid.auction % 1200}")
        for bid in sent
        if bid.auction % 1200 < 1000
    ]


@pytest.mark.parametrize("key", ["account", lambda order: order.account])
def test_without_a_field_of_that_name_the_key_of_the_stream_says_which_row(key: Any) -> None:
    app = bettong.Application("shop")
    orders = app.source("orders", schema=Order, key=key)
    orders.join_reference(accounts, of_account, key="name").sink("out")
    sent = [Order("a", account, number) for number, account in enumerate("xyzx")]
    assert run(app, [frame("orders", *sent)]).outputs["out"] == [
        Named(0, is_open=True),
        Named(1, is_open=False),
        Named(3, is_open=True),
    ]


@dataclass
class Count:
    n: int = 0


@dataclass
class Counted:
    sku: str
    n: int


def counted(order: Order, state: Count) -> Counted:
    state.n += 1
    return Counted(order.sku, state.n)


def with_price(count: Counted, price: Price) -> Priced:
    return Priced(count.n, price.cents)


@dataclass
class Hour:
    key: str
    start: int
    cents: int


@dataclass
class At:
    sku: str
    at: int


@dataclass
class PricedAt:
    sku: str
    cents: int


def at_price(at: At, price: Price) -> PricedAt:
    return PricedAt(at.sku, price.cents)


def test_it_may_stand_behind_states_and_before_windows_and_other_stages() -> None:
    app = bettong.Application("shop")
    orders = app.source("orders", schema=Order, key="account")
    orders.stateful(counted, state=Count).join_reference(prices, with_price, key="sku").sink("counts")
    ats = app.source("ats", schema=At, key="sku", event_time="at")
    ats.join_reference(prices, at_price, key="sku").window(
        bettong.tumbling(timedelta(hours=1)), bettong.aggregate(Hour, cents=bettong.Sum("cents"))
    ).sink("hours")
    hour_ns = 3600 * 10**9
    case = [
        ("orders", Order("a", "x", 0)),
        ("ats", At("a", 5)),
        Reference("at_price", [Price("a", 7)]),
        Reference("with_price", [Price("b", 8)]),
        ("ats", At("a", 6)),
        ("ats", At("a", hour_ns + 6)),
        ("orders", Order("b", "x", 0)),
        ("orders", Order("a", "x", 0)),
    ]
    outcome = run(app, case, until=END)
    assert outcome.outputs["counts"] == [Priced(1, 10), Priced(2, 8)]
    assert [(each.key, each.cents) for each in outcome.outputs["hours"]] == [("a", 17), ("a", 7)]
    check(app, case)
