"""Loads that tables of run files describe, of a small application."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from bettong.lab.computed_load import ComputedLoad
from bettong.lab.load import LabLoad, LoadPart, SinkResults
from bettong.lab.spec import read
from bettong.lab.table_load import load_of

APPLICATION = """
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated
import bettong

@dataclass
class Order:
    symbol: str
    price: float
    size: bettong.i32
    at: datetime
    fee: Annotated[Decimal, bettong.Precision(18, 2)] = Decimal("0.10")
    urgent: bool = False

@dataclass
class Trade:
    symbol: str
    at: int

@dataclass
class Sum:
    orders: int = 0
    total: float = 0.0

@dataclass
class Total:
    symbol: str
    orders: int
    total: float

def add(order: Order, sum: Sum) -> Total:
    if order.price < 0:
        raise ValueError("no price")
    sum.orders += 1
    sum.total += order.price * order.size
    return Total(order.symbol, sum.orders, sum.total)

app = bettong.Application("orders")
orders = app.source(
    "orders", schema=Order, key="symbol", event_time="at", out_of_order=timedelta(seconds=1){more}
)
orders.stateful(add, state=Sum).sink("totals"{to})
"""

FIELDS = {
    "symbol": '{ kind = "keys", count = 20, skew = 1.2, prefix = "S" }',
    "price": '{ kind = "uniform", min = 1.0, max = 2.0 }',
    "size": '{ kind = "uniform", min = 1, max = 3 }',
    "at": '{ kind = "time", span_s = 10 }',
}


def orders(**fields: str) -> str:
    """The table of the source, with other fields; "" leaves one out."""
    lines = [f"fields.{name} = {text}" for name, text in (FIELDS | fields).items() if text]
    return "\n".join(["[[load.sources]]", 'source = "orders"', *lines, ""])


def loaded(
    folder: Path,
    tables: str,
    *,
    more: str = "",
    to: str = "",
    behind: str = "",
    first: str = "messages = 1000",
) -> LabLoad:
    own = folder / f"run-{len(list(folder.iterdir()))}"  # an application of the same path is not read again
    own.mkdir()
    (own / "app.py").write_text(APPLICATION.replace("{more}", more).replace("{to}", to) + behind)
    (own / "run.toml").write_text(f'name = "x"\napplication = "{own}/app.py"\n{first}\n{tables}')
    return load_of(read(own / "run.toml"))


def part_of(load: LabLoad, number: int = 0) -> LoadPart:
    (parts,) = load.rounds()
    return parts[number]


def rows_of(part: LoadPart) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.table(dict(part.columns)).to_pylist()
    return rows


def results(load: LabLoad) -> dict[str, list[bytes]]:
    """What the load expects, one by one."""
    assert isinstance(load, ComputedLoad)
    return {sink: list(found) for sink, found in load.expected.items()}


def given(found: Mapping[str, Sequence[bytes]]) -> dict[str, SinkResults]:
    return {sink: SinkResults.of(each) for sink, each in found.items()}


TWO = (
    "[load]\nany_order = {any}\n"
    + orders()
    + (
        '[[load.sources]]\nsource = "trades"\nshare = 0.25\n'
        'fields.symbol = { kind = "keys", count = 20, prefix = "S" }\n'
        'fields.at = { kind = "time", span_s = 10 }\n'
    )
)

SOURCE = '[[load.sources]]\nsource = "orders"\n'

ROWS = [
    {"symbol": f"T{number % 3}", "price": number + 0.5, "size": number, "at": f"2026-03-01T00:00:0{number}Z"}
    for number in range(5)
]


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    """A file of rows, and the line that names it."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        table = pa.Table.from_pylist(list(rows))
        if path.suffix == ".csv":
            pyarrow.csv.write_csv(table, path)
        else:
            at = table.column("at").cast(pa.timestamp("us", "UTC"))
            pq.write_table(table.set_column(table.schema.get_field_index("at"), "at", at), path)
    return f'[[load.sources]]\nsource = "orders"\nfile = "{path}"\n'
