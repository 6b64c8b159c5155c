"""Keys of several fields, and of none: the same partitions and states in every speed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bettong
from bettong import Application, RowIndexes, Width
from bettong.application.plan import StageInput, plan
from bettong.frames.columns import Columns
from bettong.frames.composite_keys import packed, packed_key, unpacked
from bettong.frames.key_values import key_bytes, key_text
from bettong.inspection.message_keys import indexes_of, key_of
from bettong.routing import partition_of, partitions_of
from bettong.schema.schema import schema_of
from bettong.testing import run
from bettong.worker.batch import FrameKeys
from bettong.worker.stage_program import program
from tests.samples.application import refused
from tests.samples.worker import data, fold, results, worker


@dataclass
class Trade:
    symbol: Annotated[str, Width(5)]
    venue: bettong.i16
    order: bettong.u64
    tag: Annotated[bytes, Width(3)]
    note: str
    is_buy: bool = True


@dataclass
class Count:
    symbol: Annotated[str, Width(5)]
    venue: bettong.i16
    count: bettong.i64


@dataclass
class Kept:
    count: int = 0


TRADES = schema_of(Trade)
FIXED = ("symbol", "venue", "order", "tag", "is_buy")
texts = st.text(max_size=5).filter(lambda text: len(text.encode()) <= 5 and "\0" not in text)
trades = st.builds(
    Trade,
    texts,
    st.integers(-(2**15), 2**15 - 1),
    st.integers(0, 2**64 - 1),
    st.binary(min_size=3, max_size=3),
    st.text(st.characters(codec="utf-8", exclude_characters="\0")),
    st.booleans(),
)
field_names = st.lists(st.sampled_from([*FIXED, "note"]), unique=True, max_size=4).map(tuple)


@given(messages=st.lists(trades), key=field_names)
def test_columns_and_values_lead_to_the_same_partition(messages: list[Trade], key: tuple[str, ...]) -> None:
    columns = Columns.of_messages(TRADES, messages)
    values = FrameKeys(StageInput("in", TRADES, key), columns).values()
    found = partitions_of(columns, key, 64).tolist()
    assert found == [partition_of(value, 64) for value in values]
    assert (
        found
        == partitions_of(columns, lambda trade: tuple(getattr(trade, name) for name in key), 64).tolist()
    )


def test_the_bytes_of_a_tuple_say_where_a_part_ends() -> None:
    assert key_bytes(("ab", "c")) == b"\2\0\0\0ab\1\0\0\0c"
    assert key_bytes(("ab", "c")) != key_bytes(("a", "bc"))
    assert key_bytes((b"a\0", 1)) == b"\1\0\0\0a\x08\0\0\0\1\0\0\0\0\0\0\0"
    with pytest.raises(TypeError, match="a part of a key must be str, int or bytes, not tuple"):
        key_bytes((("a", "b"), 1))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a key must be str, int, bytes or tuple, not float"):
        key_bytes(("a", 1.0))  # type: ignore[arg-type]


@given(messages=st.lists(trades), names=st.lists(st.sampled_from(FIXED), unique=True))
def test_keys_are_packed_without_loss_and_in_their_order(messages: list[Trade], names: list[str]) -> None:
    columns = Columns.of_messages(TRADES, messages)
    fields = [TRADES.fields[TRADES.position(name)] for name in names]
    keys = [tuple(getattr(trade, name) for name in names) for trade in messages]
    held = [columns.columns[TRADES.position(name)] for name in names]
    column = packed(fields, held, len(messages))
    assert unpacked(fields, column) == keys
    ordered = np.argsort(column, kind="stable").tolist()
    by_value = sorted(range(len(keys)), key=lambda row: [_comparable(part) for part in keys[row]])
    assert [keys[row] for row in ordered] == [keys[row] for row in by_value]
    for row, key in enumerate(keys):
        (one,) = packed_key(fields, key).tolist()  # type: ignore[union-attr]
        assert one == column[row]


def _comparable(part: Any) -> Any:
    return part.encode() if isinstance(part, str) else part


def test_a_key_that_no_message_can_have_is_no_column() -> None:
    fields = TRADES.fields[:2]
    for key in (("abcdef", 1), ("a", 2**63), ("a", "b"), (1, 1), ("a",), "a"):
        assert packed_key(fields, key) is None


def count(trade: Trade, kept: Kept) -> Count:
    kept.count += 1
    return Count(trade.symbol, trade.venue, kept.count)


@dataclass
class Fixed:
    """A trade without text of any width."""

    symbol: Annotated[str, Width(5)]
    venue: bettong.i16


def count_fixed(trade: Fixed, kept: Kept) -> Count:
    kept.count += 1
    return Count(trade.symbol, trade.venue, kept.count)


@bettong.compiled
def count_compiled(trade: Fixed, kept: Kept) -> Count:
    kept.count += 1
    return Count(trade.symbol, trade.venue, kept.count)


@bettong.vectorized
def count_vectorized(trades: Fixed, kept: Kept, rows: RowIndexes) -> Count:
    counts = np.empty(len(rows), np.int64)
    totals = np.array(kept.count)
    for row, key in enumerate(rows):
        totals[key] += 1
        counts[row] = totals[key]
    kept.count = totals  # type: ignore[assignment] # a column
    return Count(trades.symbol, trades.venue, counts)  # type: ignore[arg-type] # a column


SPEEDS = [count_fixed, count_compiled, count_vectorized]
MESSAGES = [Fixed(*each) for each in [("a", 1), ("a", -1), ("b", 1), ("a", 1), ("b", 1), ("", 0), ("a", 1)]]


def of(function: Callable[..., Any], key: tuple[str, ...]) -> Any:
    app = Application("meters")
    app.source("in", schema=Fixed, key=key).stateful(function, state=Kept, name="count").sink("out")
    (stage,) = plan(app).stages
    return worker(program(stage, compiled=True))


@pytest.mark.parametrize("function", SPEEDS, ids=lambda function: function.__name__)
@pytest.mark.parametrize(
    ("key", "counts"),
    [
        (("symbol", "venue"), [1, 1, 1, 2, 2, 1, 3]),
        (("venue",), [1, 1, 2, 3, 4, 1, 5]),
        ((), [1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_each_key_has_a_state_and_keeps_it_in_snapshots(
    function: Callable[..., Any], key: tuple[str, ...], counts: list[int]
) -> None:
    log = [data("in/a", 1, MESSAGES[:3]), data("in/a", 2, MESSAGES[3:])]
    whole = of(function, key)
    assert [each.count for each in results(fold(whole, log), "meters.sink.out", Count)] == counts
    first, second = of(function, key), of(function, key)
    given_ = results(fold(first, log[:1]), "meters.sink.out", Count)
    second.restore(first.snapshot())
    given_ += results(fold(second, log[1:]), "meters.sink.out", Count)
    assert [each.count for each in given_] == counts
    keys = {tuple(getattr(each, name) for name in key) for each in MESSAGES}
    table = second.tables["count"]
    assert {found for found, _ in table.items()} == keys
    last = tuple(getattr(MESSAGES[-1], name) for name in key)
    assert table.state_of(last) == {"count": counts[-1]}
    assert table.state_of((*last, "more")) is None


def test_a_key_may_be_a_function_that_gives_a_tuple() -> None:
    def by(trade: Trade) -> tuple[str, int]:
        return trade.symbol, trade.venue

    app = Application("meters")
    app.source("in", schema=Trade, key=by).stateful(count, state=Kept).sink("out")
    (stage,) = plan(app).stages
    messages = [Trade(each.symbol, each.venue, 0, b"abc", "") for each in MESSAGES]
    records = fold(worker(program(stage, compiled=True)), [data("in/a", 1, messages)])
    assert [each.count for each in results(records, "meters.sink.out", Count)] == [1, 1, 1, 2, 2, 1, 3]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (("symbol", "price"), "Trade has no field 'price'; it has symbol, venue"),
        (("symbol", 7), "Trade has no field 7"),
        (["symbol"], "['symbol'] is neither a field's name, nor a tuple of such names, nor a function"),
    ],
)
def test_fields_of_a_key_are_checked(key: Any, text: str) -> None:
    with refused(text, "key of 'in'"):
        Application("shop").source("in", schema=Trade, key=key)


def test_keys_of_other_types_never_meet() -> None:
    app = Application("shop")
    one = app.source("one", schema=Trade, key=("symbol", "venue"))
    other = app.source("other", schema=Trade, key=("symbol", "tag"))
    one.merge(other).stateful(count, state=Kept).sink("out")
    with refused("one ((text, integers)), other ((text, bytes))"):
        app.check()


@pytest.mark.parametrize("key", [("symbol", "venue"), ("tag", "is_buy"), ("note", "order"), ()])
def test_a_key_is_found_by_its_text(key: tuple[str, ...]) -> None:
    messages = [Trade("a", -1, 2**63, b"ab\0", "x"), Trade("b", 2, 7, b"\xff\0\1", "", is_buy=False)]
    columns, entry = Columns.of_messages(TRADES, messages), StageInput("in", TRADES, key)
    for row, value in enumerate(FrameKeys(entry, columns).values()):
        assert key_of(entry, key_text(value)) == value
        assert indexes_of(entry, columns, value) == ([row] if key else [0, 1])


def test_a_text_that_is_no_tuple_is_refused() -> None:
    entry = StageInput("in", TRADES, ("symbol", "venue"))
    for text, what in (
        ("a", "no array of JSON"),
        ('["a"]', "has 1 parts, expected symbol, venue"),
        ('["a","b"]', "'b' is no whole number"),
    ):
        with pytest.raises(ValueError, match=what):
            key_of(entry, text)


def test_all_messages_are_collected_under_one_key() -> None:
    app = Application("meters")
    source = app.source("in", schema=Trade, key="symbol")
    collected = source.collect()
    assert collected.name == "in-collected"
    collected.stateful(count, state=Kept).sink("out")
    first, second = plan(app).stages
    assert [entry.key for entry in second.inputs] == [()]
    log = [data("in/a", at, [Trade(symbol, 0, 0, b"abc", "")]) for at, symbol in enumerate("abcabc", 1)]
    records = fold(worker(program(first, compiled=False), partitions=8), log)
    assert {record.partition for record in records} == {partition_of((), 8)}
    found = fold(worker(program(second, compiled=False)), [record.value for record in records])
    assert [each.count for each in results(found, "meters.sink.out", Count)] == [1, 2, 3, 4, 5, 6]


@dataclass
class Minute:
    key: str
    trades: int


@dataclass
class MinuteOfVenue:
    symbol: Annotated[str, Width(5)]
    venue: bettong.i16
    trades: int


def test_windows_have_the_parts_of_a_key_and_no_field_for_all() -> None:
    app = Application("meters")
    source = app.source("in", schema=Trade, key=("symbol", "venue"), event_time=lambda trade: trade.order)
    minute = bettong.tumbling(timedelta(microseconds=1))
    source.window(minute, bettong.aggregate(Minute, trades=bettong.Count())).sink("wrong")
    with refused("window 'Minute'", "'in' is keyed by (symbol, venue)", "symbol=bettong.First('symbol')"):
        app.check()
    app = Application("meters")
    source = app.source("in", schema=Trade, key=("symbol", "venue"), event_time=lambda trade: trade.order)
    parts = {"symbol": bettong.First("symbol"), "venue": bettong.First("venue")}
    source.window(minute, bettong.aggregate(MinuteOfVenue, trades=bettong.Count(), **parts)).sink("out")
    (stage,) = plan(app).stages
    messages = [Trade(symbol, venue, 5, b"abc", "") for symbol, venue in [("b", 1), ("a", 2), ("b", 1)]]
    log = [
        data("in/a", 1, messages, watermark_ns=5),
        data("in/a", 2, [Trade("c", 0, 5000, b"abc", "")], watermark_ns=5000),
    ]
    records = fold(worker(program(stage, compiled=True)), log)
    assert results(records, "meters.sink.out", MinuteOfVenue) == [
        MinuteOfVenue("a", 2, 1),
        MinuteOfVenue("b", 1, 2),
    ]


@pytest.mark.parametrize(
    ("key", "kind", "expected"),
    [
        ("venue", "integers", "int"),
        ("tag", "bytes", "bytes"),
        (lambda trade: trade.venue, None, None),  # that a function's key does not fit shows when it runs
    ],
)
def test_a_field_for_the_key_of_a_window_can_hold_it(key: Any, kind: str | None, expected: str) -> None:
    app = Application("meters")
    source = app.source("in", schema=Trade, key=key)
    minute = bettong.tumbling(timedelta(microseconds=1))
    source.window(minute, bettong.aggregate(Minute, trades=bettong.Count())).sink("out")
    if kind is None:
        app.check()
        return
    with refused("window 'Minute': Minute.key is text", f"'in' is keyed by {kind}", f"as {expected}"):
        app.check()


@dataclass
class Split:
    KEY_PARTS: ClassVar[int] = 2
    key: int
    other: int


@bettong.compiled
def split(message: Split, kept: Kept) -> Split:
    kept.count += message.key
    return Split(message.key, kept.count)


def test_no_name_of_a_users_class_says_that_it_has_a_key_of_parts() -> None:
    app = Application("meters")
    app.source("in", schema=Split, key="key").stateful(split, state=Kept, name="split").sink("out")
    for compiled in (False, True):
        outcome = run(app, [("in", Split(3, 4))] * 2, compiled=compiled)
        assert outcome.outputs["out"] == [Split(3, 3), Split(3, 6)]
