"""Tables of loads that are wrong, and files and fields that an application does not take: each is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.errors import SettingsError
from bettong.lab.load_table import MESSAGES_MAX
from bettong.lab.spec import LoadStep, read
from tests.samples.table_loads import (
    ROWS,
    SOURCE,
    loaded,
    orders,
    write,
)


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ("load = 5\n", r"run.toml, 1 fault\(s\): load: Input should be a valid string"),
        ("[load]\n", r"load\.sources: missing"),
        ("[load]\nsources = []\n", r"load\.sources: List should have at least 1 item"),
        (SOURCE, r"load\.sources\[0\]: .*needs a file that is replayed, or fields"),
        (orders() + orders(), "source 'orders' has two tables"),
        (orders() + "share = 0\n", r"load\.sources\[0\]\.share: Input should be greater than 0"),
        (orders() + "share = nan\n", r"load\.sources\[0\]\.share"),
        (orders() + "disorder_ms = -1\n", r"load\.sources\[0\]\.disorder_ms"),
        (orders() + "fil = 'x'\n", r"load\.sources\[0\]\.fil: there is no such field; is file meant"),
        (
            orders(size='{ kind = "uniform", min = 1 }', price="5", at='{ kind = "tume" }'),
            r"3 fault\(s\).*fields\.price: expected a table whose kind is one.*size\.max: missing.*at: expected",
        ),
        (orders(size='{ kind = "uniform", min = 2, max = 1 }'), "fields.size: .*min 2 is above max 1"),
        (orders(price='{ kind = "uniform", min = nan, max = inf }'), "fields.price.min.*fields.price.max"),
        (orders(size='{ kind = "keys", count = 0 }'), r"fields\.size\.count: .*greater than or equal to 1"),
        (orders(size='{ kind = "choice", values = [] }'), r"fields\.size\.values"),
        (orders(size='{ kind = "choice", values = [1, 2], weights = [1] }'), "1 weights for 2 values"),
        (
            orders(at='{ kind = "time", span_s = 1, start = 2026-01-01T00:00:00 }'),
            r"fields\.at\.start: .*timezone",
        ),
    ],
)
def test_a_table_that_is_wrong_is_named_with_all_its_faults(tables: str, says: str, tmp_path: Path) -> None:
    first = tables if tables.startswith("load =") else ""
    with pytest.raises(SettingsError, match=says):
        loaded(tmp_path, "" if first else tables, first=f"messages = 5\n{first}")


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        (
            SOURCE.replace("orders", "order") + 'file = "x.csv"\n',
            r"sources\[0\]\.source: .*has no source 'order'; it has",
        ),
        (orders(price=""), "fields.price: no generator, and the field has no default: give it one"),
        (
            orders(prize='{ kind = "counter" }'),
            "fields.prize: the source has no such field; it has symbol, price",
        ),
        (
            orders(symbol='{ kind = "counter" }'),
            "fields.symbol: the field is of kind text: a counter is of whole",
        ),
        (
            orders(price='{ kind = "keys", count = 3 }'),
            "fields.price: the field is of kind float: keys are whole",
        ),
        (
            orders(size='{ kind = "uniform", min = 1.5, max = 2 }'),
            "fields.size: .*min and max of a whole number",
        ),
        (
            orders(urgent='{ kind = "time", span_s = 1 }'),
            "fields.urgent: .*a time is a datetime, or a whole number",
        ),
        (
            orders(size='{ kind = "uniform", min = 1, max = 3_000_000_000 }'),
            "fields.size: .*does not fit int32",
        ),
        (
            orders(size='{ kind = "uniform", min = 0, max = 1_000_000_000_000_000_000_000 }'),
            "fields.size: .*out of",
        ),
        (orders(size='{ kind = "constant", value = "a" }'), "fields.size: expected a whole number, got str"),
        (orders(at='{ kind = "constant", value = "today" }'), "fields.at: "),
        (orders(at='{ kind = "time", span_s = 1, start = 9000-01-01T00:00:00Z }'), "fields.at: "),
        (SOURCE + 'file = "missing.parquet"\n', "file: missing.parquet cannot be read: .*No such file"),
        (SOURCE + 'file = "orders.xlsx"\n', "file: orders.xlsx: expected .parquet, .csv or .jsonl"),
        (
            SOURCE + 'file = "orders.bin"\n',
            "file: orders.bin: expected .parquet, .csv or .jsonl; or, of a source that reads a topic",
        ),
        (
            orders(symbol='{ kind = "counter" }', price='{ kind = "counter" }'),
            r"x: load\.sources\[0\]\.fields\.symbol: .*; load\.sources\[0\]\.fields\.price: ",
        ),
        (
            orders(fee='{ kind = "constant", value = "1" }', urgent='{ kind = "constant", value = true }')
            + 'file = "orders.csv"\n',
            "file: all fields have generators",
        ),
    ],
)
def test_what_the_application_does_not_take_is_named(tables: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=says):
        loaded(tmp_path, tables)


def test_disorder_is_for_event_times(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="disorder_ms: the source has no field as its event_time="):
        loaded(
            tmp_path,
            SOURCE.replace("orders", "trades")
            + (
                'disorder_ms = 5\nfields.symbol = { kind = "keys", count = 2 }\nfields.at = { kind = "counter" }\n'
            ),
            behind='app.source("trades", schema=Trade, key="symbol").sink("trades-out")\n',
        )


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.jsonl", b"", "a.jsonl holds no messages: give a file that has some"),
        ("a.csv", b"symbol,price,size,at\n", "a.csv holds no messages"),
        ("a.csv", b"", "a.csv"),
        ("a.parquet", b"", "a.parquet"),
        ("a.parquet", b"PAR1 garbage PAR1", "a.parquet"),
        ("a.jsonl", b"\x00\xff\n", "a.jsonl, line 1"),
        (
            "a.jsonl",
            b'{"symbol": "A", "size": 1, "at": "2026-01-01T00:00:00Z"}\n',
            "file: .*a.jsonl, line 1: no field 'price'.*fix the file, or give a field a generator",
        ),
        ("a.csv", b"symbol,size,at\nA,1,2026-01-01T00:00:00Z\n", "a.csv.*price"),
        ("a.csv", b"symbol,price,size,at\nA,x,1,2026-01-01T00:00:00Z\n", "a.csv, row 1: .*price"),
        ("a.jsonl", b'{"symbol": "A", "price": "x", "size": 1, "at": 5}\n', "a.jsonl, line 1: field 'price'"),
    ],
)
def test_a_file_that_does_not_fit_is_named_with_row_and_column(
    name: str, content: bytes, says: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SettingsError, match=says):
        loaded(tmp_path, f'{SOURCE}file = "{tmp_path}/{name}"\n')


def test_a_parquet_file_lacks_a_column_or_has_another_type(tmp_path: Path) -> None:
    for rows, says in (
        (
            [{name: row[name] for name in ("symbol", "size", "at")} for row in ROWS],
            "no column 'price'; it has symbol",
        ),
        ([row | {"price": "much"} for row in ROWS], "row 1: column 'price'"),
    ):
        with pytest.raises(SettingsError, match=f"orders.parquet.*{says}.*fix the file, or give"):
            loaded(tmp_path, write(tmp_path / "orders.parquet", rows))


def test_more_messages_than_can_be_checked_are_refused_in_the_file_and_in_a_search(tmp_path: Path) -> None:
    with pytest.raises(
        SettingsError, match=f"load: 5,000,001 messages.*at most {MESSAGES_MAX:,}.*write the load in"
    ):
        loaded(tmp_path, orders(), first=f"messages = {MESSAGES_MAX + 1}")
    (tmp_path / "run.toml").write_text(
        f'name = "x"\napplication = "app.py"\n[[steps]]\nmessages_per_s = 1\nseconds = 9\n{orders()}'
    )
    spec = read(tmp_path / "run.toml")
    with pytest.raises(SettingsError, match="at most 5,000,000"):
        spec.over([LoadStep(messages_per_s=1_000_000, seconds=10)])
