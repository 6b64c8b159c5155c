"""Versions of reference tables: how they are loaded, encoded, searched, switched to and dropped."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong import Precision, Width, i8, i32, u8, u64
from bettong.application.reference_source import ReferenceSource, reference_source
from bettong.errors import ApplicationError, FrameError, ReferenceLostError, SchemaError
from bettong.frames.columns import Columns
from bettong.frames.frame import FrameKind, decode, encode, reference_record
from bettong.identifiers import ReferenceVersion
from bettong.schema.schema import schema_of
from bettong.snapshots.references import Offsets, next_version, superfluous
from bettong.v1 import frame_pb2
from bettong.worker.references import loaded
from bettong.worker.references.loaded import loaded_table
from bettong.worker.references.table import ReferenceTable, fingerprint_of
from bettong.worker.references.versions import ReferenceTables


@dataclass
class Price:
    symbol: str
    cents: int


@dataclass
class Wide:
    key: u64
    name: str


@dataclass
class Narrow:
    key: i8
    name: str


@dataclass
class Plain:
    key: int
    name: str


def nothing() -> list[Any]:
    return []


def source(rows: type[Any], key: str = "key") -> ReferenceSource:
    return reference_source("join_reference 'x'", nothing, key, schema_of(rows), None)


PRICES = source(Price, "symbol")
ROWS = [Price("b", 2), Price("a", 1), Price("c", 3)]
SERIES = PRICES.series("prices")


def version(number: int, letter: str) -> ReferenceVersion:
    return ReferenceVersion(SERIES, number, fingerprint_of(letter.encode()))


class Kept:
    """A store with these versions."""

    def __init__(self, **named: Any) -> None:
        self.kept: dict[ReferenceVersion, bytes | None] = {}
        self.reads = 0
        self.kept.update(named.get("kept", {}))

    def load(self, version: ReferenceVersion) -> bytes | None:
        self.reads += 1
        return self.kept.get(version)

    def versions(self, series: str) -> list[ReferenceVersion]:
        return sorted(each for each in self.kept if each.series == series)


@pytest.mark.parametrize(
    "table",
    [
        ROWS,
        pa.table({"cents": [2, 1, 3], "symbol": ["b", "a", "c"], "more": [None, None, None]}),
        pa.table(
            {
                "symbol": pa.chunked_array([["b"], ["a", "c"]], pa.large_string()).dictionary_encode(),
                "cents": pa.array([2, 1, 3], pa.int8()),
            }
        ),
        pa.RecordBatch.from_pydict({"symbol": ["b", "a", "c"], "cents": [2.0, 1.0, 3.0]}),
        pd.DataFrame({"symbol": ["b", "a", "c"], "cents": [2, 1, 3]}, index=[7, 8, 9]),
    ],
    ids=["rows", "columns more", "chunks", "batch", "pandas"],
)
def test_what_load_gives_is_read_whatever_it_is(table: object) -> None:
    found = loaded_table(PRICES, table)
    assert found.columns.messages() == [Price("a", 1), Price("b", 2), Price("c", 3)]
    assert found.encode() == loaded_table(PRICES, ROWS).encode()


class SparkFrame:
    """A stand-in for the methods used of a Spark DataFrame."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def limit(self, rows: int) -> SparkFrame:
        return SparkFrame(self._table.slice(0, rows))

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        return self._table


def test_of_a_spark_frame_no_more_is_taken_in_than_a_table_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded, "ROWS_MAX", 2)
    small = SparkFrame(pa.table({"symbol": ["b", "a"], "cents": [2, 1]}))
    assert loaded_table(PRICES, small).columns.messages() == [Price("a", 1), Price("b", 2)]
    large = SparkFrame(pa.table({"symbol": ["b", "a", "c", "d"], "cents": [2, 1, 3, 4]}))
    with pytest.raises(SchemaError, match="more than 2 rows; join a stream with what is larger"):
        loaded_table(PRICES, large)


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (pa.table({"symbol": ["a"]}), r"column\(s\) cents missing; expected symbol, cents, found symbol"),
        (pa.table({"symbol": ["a"], "cents": ["one"]}), "column 'cents' does not fit int64"),
        (pa.table({"symbol": ["a"], "cents": [1.5]}), "column 'cents' does not fit int64"),
        (pa.table({"symbol": ["a", None], "cents": [1, 2]}), "column 'symbol' has nulls"),
        (pa.table({"symbol": ["a", "b"], "cents": [1, None]}), "column 'cents' has nulls"),
        (pa.table({"symbol": ["a", "b", "a"], "cents": [1, 2, 3]}), "key 'symbol': 'a' comes twice"),
        (
            pa.table([["a"], [1], [2]], names=["symbol", "cents", "cents"]),
            "several columns have the same name",
        ),
        (7, "returned int; expected an Arrow table"),
        ([1, 2], "returned list; expected an Arrow table"),
    ],
)
def test_what_is_no_such_table_is_refused(table: object, text: str) -> None:
    with pytest.raises(SchemaError, match=text):
        loaded_table(PRICES, table)


def test_a_number_that_comes_twice_is_found() -> None:
    with pytest.raises(SchemaError, match="key 'key': 3 comes twice"):
        loaded_table(source(Plain), [Plain(3, "a"), Plain(1, "b"), Plain(3, "c")])


@given(st.dictionaries(st.text(max_size=3), st.integers(-5, 5)), st.randoms(use_true_random=False))
def test_equal_tables_have_equal_bytes_in_whatever_order(rows: dict[str, int], chance: Random) -> None:
    ordered = [Price(*each) for each in rows.items()]
    shuffled = ordered.copy()
    chance.shuffle(shuffled)
    data = loaded_table(PRICES, ordered).encode()
    assert loaded_table(PRICES, shuffled).encode() == data
    assert ReferenceTable.decode(PRICES, data).columns.messages() == sorted(
        ordered, key=lambda each: each.symbol
    )
    if rows:
        other = [Price(ordered[0].symbol, ordered[0].cents + 1), *ordered[1:]]
        assert loaded_table(PRICES, other).encode() != data


@given(
    rows=st.sampled_from([Wide, Narrow, Plain]),
    kind=st.sampled_from([u8, u64, i8, i32, int]),
    data=st.data(),
)
def test_a_number_finds_its_row_whatever_the_types_of_both(rows: Any, kind: Any, data: st.DataObject) -> None:
    table_type, asked = schema_of(rows).fields[0].dtype, schema_of(make_dataclass("Asking", [("key", kind)]))
    asked_type = asked.fields[0].dtype
    assert table_type is not None
    assert asked_type is not None

    def numbers(dtype: np.dtype[Any]) -> st.SearchStrategy[int]:
        bounds = np.iinfo(dtype)
        return st.sampled_from(sorted({0, 1, 5, 127, int(bounds.min), int(bounds.max)}))

    keys = data.draw(st.lists(numbers(table_type), unique=True))
    wanted = data.draw(st.lists(numbers(asked_type)))
    table = loaded_table(source(rows), [rows(key, str(key)) for key in keys])
    names = [row.name for row in table.columns.messages()]
    expected = [str(key) if key in keys else None for key in wanted]
    column = Columns.of_values(asked, [wanted]).columns[0]
    found = table.rows_of_column(column).tolist()
    assert [names[row] if row >= 0 else None for row in found] == expected
    assert table.rows_of_values(wanted).tolist() == found


def test_texts_and_bytes_find_their_rows() -> None:
    table = loaded_table(PRICES, ROWS)
    assert table.rows_of_values(["c", "", "a", "d"]).tolist() == [2, -1, 0, -1]


@dataclass
class Code:
    code: Annotated[bytes, Width(3)]
    country: Annotated[str, Width(2)]
    since: datetime
    rate: Annotated[Decimal, Precision(9, 2)]
    names: list[str]
    note: str | None


def code(number: int) -> Code:
    since = datetime(2020, 1, 1 + number, tzinfo=UTC)
    names = [f"name {each}" for each in range(number)]
    return Code(
        bytes([97 + number] * 3), f"c{number}", since, Decimal(number), names, None if number else "none"
    )


@pytest.mark.parametrize("key", ["code", "country"])
def test_rows_have_fields_of_any_kind_and_keys_of_a_fixed_width(key: str) -> None:
    rows = [code(number) for number in (2, 0, 1)]
    table = loaded_table(source(Code, key), rows)
    again = ReferenceTable.decode(source(Code, key), table.encode())
    assert again.columns.messages() == [code(number) for number in range(3)]
    assert again.rows_of_values([getattr(code(number), key) for number in (1, 3, 0)]).tolist() == [1, -1, 0]
    frame = pd.DataFrame([vars(row) | {"rate": Decimal(f"{row.rate}.00")} for row in rows])
    assert loaded_table(source(Code, key), frame).encode() == table.encode()


@given(st.binary(max_size=8), st.integers(0, 200))
def test_bytes_that_are_no_version_are_refused_and_never_believed(patch: bytes, at: int) -> None:
    good = loaded_table(PRICES, ROWS).encode()
    bad = good[:at] + patch + good[at + len(patch) :]
    try:
        found = ReferenceTable.decode(PRICES, bad)
    except SchemaError:
        return
    assert (
        len(found) == len(found.columns.messages()) == len({each.symbol for each in found.columns.messages()})
    )


def test_a_version_is_read_once_and_kept_while_somebody_has_it() -> None:
    data = loaded_table(PRICES, ROWS).encode()
    first = ReferenceVersion(SERIES, 1, fingerprint_of(data))
    store = Kept(kept={first: data})
    tables = ReferenceTables(store)
    held = tables.table(PRICES, tables.first(SERIES))
    assert tables.table(PRICES, first) is held
    assert store.reads == 1
    del held
    tables.table(PRICES, first)
    assert store.reads == 2


def test_a_version_that_is_gone_or_was_changed_is_named() -> None:
    data = loaded_table(PRICES, ROWS).encode()
    other = loaded_table(PRICES, ROWS[:2]).encode()
    first = ReferenceVersion(SERIES, 1, fingerprint_of(data))
    gone = rf"{SERIES}: 1-{first.fingerprint.hex()} is not in the store, but messages of the log see it: bring it back"
    with pytest.raises(ReferenceLostError, match=gone):
        ReferenceTables(Kept()).table(PRICES, first)
    with pytest.raises(ReferenceLostError, match="has other bytes than those that were stored"):
        ReferenceTables(Kept(kept={first: other})).table(PRICES, first)
    forged = ReferenceVersion(SERIES, 1, fingerprint_of(b"BTR1"))
    with pytest.raises(ReferenceLostError, match="cannot be read: 4 bytes are no version"):
        ReferenceTables(Kept(kept={forged: b"BTR1"})).table(PRICES, forged)
    with pytest.raises(ReferenceLostError, match="no version of it is stored"):
        ReferenceTables(Kept()).first(SERIES)


def test_other_rows_or_another_key_are_another_series() -> None:
    assert (
        len(
            {PRICES.series("prices"), source(Price, "cents").series("prices"), source(Plain).series("prices")}
        )
        == 3
    )


def test_a_record_names_a_version() -> None:
    named = version(3, "a")
    frame = decode(reference_record("trades", 17, named))
    assert (frame.kind, frame.reference, frame.ingest_ns, frame.count) == (FrameKind.REFERENCE, named, 17, 0)
    assert decode(encode(frame)) == frame
    assert ReferenceVersion.parse(SERIES, named.name) == named


@pytest.mark.parametrize(
    "stored",
    [
        frame_pb2.ReferenceVersion(series=SERIES, number=0, fingerprint=bytes(32)),
        frame_pb2.ReferenceVersion(series=SERIES, number=1, fingerprint=bytes(31)),
        frame_pb2.ReferenceVersion(series="", number=1, fingerprint=bytes(32)),
        frame_pb2.ReferenceVersion(series="s" * 200, number=1, fingerprint=bytes(32)),
        frame_pb2.ReferenceVersion(),
    ],
)
def test_a_record_that_names_none_is_refused(stored: frame_pb2.ReferenceVersion) -> None:
    envelope = frame_pb2.Frame(
        origin="trades/reference", kind=frame_pb2.FRAME_KIND_REFERENCE, reference=stored
    )
    with pytest.raises(FrameError, match="of a reference table of"):
        decode(envelope.SerializeToString())


def test_the_next_version_is_numbered_on_and_an_equal_one_is_none() -> None:
    one = next_version(SERIES, [], fingerprint_of(b"a"))
    assert one == version(1, "a")
    assert next_version(SERIES, [version(1, "a")], fingerprint_of(b"a")) is None
    assert next_version(SERIES, [version(1, "a"), version(2, "b")], fingerprint_of(b"a")) == version(3, "a")


@given(
    named=st.lists(st.none() | st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=5),
    begins=st.tuples(st.integers(0, 8), st.integers(0, 8)),
)
def test_a_version_goes_when_no_log_holds_a_record_that_sees_it(
    named: list[tuple[int, int] | None], begins: tuple[int, int]
) -> None:
    first = version(1, "1")
    offsets: dict[ReferenceVersion, Offsets | None] = {first: None}
    for number, each in enumerate(named, 2):
        offsets[version(number, str(number))] = None if each is None else dict(enumerate(each))
    gone = superfluous(offsets, dict(enumerate(begins)))
    for partition, begin in enumerate(begins):
        for at in range(begin, 10):
            # What a fold of the record at that offset sees, or the time that passes with it.
            known = [each for each, of in offsets.items() if of is not None and of[partition] < at]
            assert max(known, default=first) not in gone
    passed = [
        each for each, of in offsets.items() if of is not None and all(of[each] < begins[each] for each in of)
    ]
    assert gone == [each for each in offsets if passed and each < max(passed)]


def test_nothing_goes_while_nobody_knows_where_logs_begin() -> None:
    assert superfluous({version(1, "a"): None, version(2, "b"): {0: 3}}, {}) == []


@pytest.mark.parametrize(
    ("load", "key", "every", "text"),
    [
        (7, "symbol", None, "load=7 is no function; give one that returns an Arrow table"),
        (divmod, "symbol", None, "load must take no argument, or one, Spark's session"),
        (nothing, "isin", None, "key='isin': Price has no field 'isin'; it has symbol, cents"),
        (nothing, "symbol", timedelta(0), "reload_every=datetime.timedelta"),
        (
            nothing,
            "symbol",
            timedelta(milliseconds=999),
            "reload_every=0:00:00.999000: expected a second or more",
        ),
        (nothing, "symbol", 5, "reload_every=5; expected a datetime.timedelta"),
    ],
)
def test_what_cannot_be_a_source_is_refused(load: Any, key: str, every: Any, text: str) -> None:
    with pytest.raises(ApplicationError, match=text):
        reference_source("join_reference 'x'", load, key, schema_of(Price), every)


@dataclass
class Rate:
    percent: float


def test_a_key_is_a_whole_number_text_or_bytes() -> None:
    with pytest.raises(ApplicationError, match="key='percent' is float; the key of a reference table is"):
        reference_source("join_reference 'x'", nothing, "percent", schema_of(Rate), None)


def test_load_may_take_sparks_session() -> None:
    taking = reference_source("j", lambda spark: spark, "symbol", schema_of(Price), timedelta(seconds=2))
    assert (taking.takes_spark, PRICES.takes_spark) == (True, False)
    assert (taking.reload_every_ns, PRICES.reload_every_ns) == (2 * 10**9, None)
