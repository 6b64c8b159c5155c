"""Loads that a table of the run file describes: what their messages are."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from bettong.errors import SettingsError
from bettong.lab.load import PARTITION, VALUE, LoadPart, SinkResults, TopicLoad
from bettong.lab.spec import read
from bettong.lab.table_load import load_of
from tests.samples.table_loads import (
    APPLICATION,
    ROWS,
    loaded,
    orders,
    part_of,
    results,
    rows_of,
    write,
)


def test_fields_are_generated_and_the_answer_is_the_applications(tmp_path: Path) -> None:
    load = loaded(tmp_path, orders())
    rows = rows_of(part_of(load))
    assert len(rows) == 1000
    symbols = Counter(row["symbol"] for row in rows)
    assert symbols.keys() <= {f"S{number}" for number in range(20)}
    assert symbols["S0"] > 2 * symbols["S3"] > 0
    assert all(1.0 <= row["price"] < 2.0 for row in rows)
    assert {row["size"] for row in rows} == {1, 2, 3}
    times = [row["at"] for row in rows]
    assert times == sorted(set(times))
    assert str(times[0]) == "2026-01-01 00:00:00+00:00"
    assert 9.9 < (times[-1] - times[0]).total_seconds() < 10
    assert {(str(row["fee"]), row["urgent"]) for row in rows} == {("0.10", 0)}
    totals: Counter[str] = Counter()
    expected = []
    for row in rows:
        totals[row["symbol"]] += 1
        expected.append((row["symbol"], totals[row["symbol"]]))
    found = [json.loads(each) for each in results(load)["totals"]]
    assert [(each["symbol"], each["orders"]) for each in found] == expected
    assert load.result_bytes() == {"totals": sum(map(len, results(load)["totals"]))}


def test_messages_are_made_of_the_seed_and_a_field_more_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    def column(name: str, tables: str, seed: int) -> list[Any]:
        return [
            row[name]
            for row in rows_of(part_of(loaded(tmp_path, tables, first=f"messages = 50\nseed = {seed}")))
        ]

    more = orders(urgent='{ kind = "choice", values = [true, false] }')
    for name in ("symbol", "price", "size"):
        assert column(name, orders(), 7) == column(name, more, 7) != column(name, orders(), 8)
    assert column("price", orders(), -1) != column("price", orders(), 0)


def test_constants_and_choices_are_values_as_json_has_them(tmp_path: Path) -> None:
    tables = orders(
        fee='{ kind = "constant", value = "2.50" }',
        at='{ kind = "constant", value = "2026-05-01T00:00:00Z" }',
        size='{ kind = "counter", start = 5 }',
        symbol='{ kind = "choice", values = ["a", "b"], weights = [1, 3] }',
    )
    rows = rows_of(part_of(loaded(tmp_path, tables)))
    assert {str(row["fee"]) for row in rows} == {"2.50"}
    assert [row["size"] for row in rows[:3]] == [5, 6, 7]
    assert 200 < sum(row["symbol"] == "a" for row in rows) < 300


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".jsonl"])
def test_a_file_is_replayed_in_its_order_and_from_the_beginning_again_with_later_times(
    tmp_path: Path, ending: str
) -> None:
    table = write(tmp_path / f"orders{ending}", ROWS)
    rows = rows_of(part_of(loaded(tmp_path, table, first="messages = 12")))
    assert [row["size"] for row in rows] == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]
    assert [row["symbol"] for row in rows[:5]] == ["T0", "T1", "T2", "T0", "T1"]
    seconds = [(row["at"] - rows[0]["at"]).total_seconds() for row in rows]
    assert seconds == list(range(12))
    few = rows_of(part_of(loaded(tmp_path, table, first="messages = 3")))
    assert few == rows[:3]


def test_fields_that_a_file_has_not_are_generated(tmp_path: Path) -> None:
    lacking = [{name: value for name, value in row.items() if name != "price"} for row in ROWS]
    table = write(tmp_path / "orders.jsonl", lacking) + 'fields.price = { kind = "constant", value = 4 }\n'
    rows = rows_of(part_of(loaded(tmp_path, table, first="messages = 7")))
    assert [(row["size"], row["price"]) for row in rows] == [(number % 5, 4.0) for number in range(7)]


def test_messages_come_out_of_order_within_the_bound(tmp_path: Path) -> None:
    in_order = rows_of(part_of(loaded(tmp_path, orders())))
    rows = rows_of(part_of(loaded(tmp_path, orders() + "disorder_ms = 500\n")))
    key = str
    assert sorted(map(key, rows)) == sorted(map(key, in_order))
    assert rows != in_order
    newest, late_s = rows[0]["at"], []
    for row in rows:
        newest = max(newest, row["at"])
        late_s.append((newest - row["at"]).total_seconds())
    assert 0.1 < max(late_s) <= 0.5


TOPIC = ', format="json", from_=bettong.KafkaTopic("orders")'


def test_records_of_a_topic_are_json_a_key_in_one_partition_and_results_say_whose_they_are(
    tmp_path: Path,
) -> None:
    steps = "partitions = 4\nwarm_up_s = 1\n[[steps]]\nmessages_per_s = 100\nseconds = 3"
    to = ', to=bettong.KafkaTopic("totals")'
    load = loaded(tmp_path, orders(), more=TOPIC, to=to, first=steps)
    assert isinstance(load, TopicLoad)
    part = part_of(load)
    partitions: dict[str, set[int]] = {}
    for value, partition in zip(part.columns[VALUE], part.columns[PARTITION].tolist(), strict=True):
        partitions.setdefault(json.loads(value)["symbol"], set()).add(partition)
    assert all(len(each) == 1 for each in partitions.values())
    assert set.union(*partitions.values()) == {0, 1, 2, 3}
    for _ in range(2):  # repeats
        assert [load.message_of(each) for each in results(load)["totals"]] == list(range(300))


def test_a_file_of_bytes_is_for_the_decoder_of_a_topic(tmp_path: Path) -> None:
    decoder = (
        "\ndef read(value: bytes) -> Order:\n    symbol, size = value.decode().split()\n"
        '    return Order(symbol, 1.0, int(size), datetime.fromisoformat("2026-01-01T00:00:00Z"))\n'
    )
    app = APPLICATION.replace("{more}", ', decoder=bettong.each(read), from_=bettong.KafkaTopic("orders")')
    (tmp_path / "app.py").write_text(app.replace("{to}", "").replace("\napp =", decoder + "\napp ="))
    (tmp_path / "orders.txt").write_text("A 1\nB 2\nnone\nA 3\n")
    tables = f'[[load.sources]]\nsource = "orders"\nfile = "{tmp_path}/orders.txt"\n'
    (tmp_path / "run.toml").write_text(
        f'name = "x"\napplication = "{tmp_path}/app.py"\nmessages = 6\n{tables}'
    )
    load = load_of(read(tmp_path / "run.toml"))
    values = part_of(load).columns
    assert list(values[VALUE]) == [b"A 1", b"B 2", b"none", b"A 3", b"A 1", b"B 2"]
    assert values[PARTITION][0] == values[PARTITION][3] == values[PARTITION][4]
    assert [json.loads(each)["orders"] for each in results(load)["totals"]] == [1, 1, 2, 3, 2]
    (tmp_path / "run.toml").write_text(
        f'name = "x"\napplication = "{tmp_path}/app.py"\nmessages = 6\n{orders()}'
    )
    with pytest.raises(
        SettingsError, match=r"reads a topic by a decoder of its own.*give a file of its bytes"
    ):
        load_of(read(tmp_path / "run.toml"))


def test_an_idle_run_has_no_messages(tmp_path: Path) -> None:
    load = loaded(tmp_path, orders(), first="[[steps]]\nmessages_per_s = 0\nseconds = 9")
    assert load.result_bytes() == {"totals": 0}
    assert list(load.rounds()) == [[]]
    assert load.wrong({"totals": SinkResults.of([])}) == ""


def test_arrays_of_numpy_are_as_good_as_arrows() -> None:
    part = LoadPart("a", {"x": np.arange(5), "y": pa.array(range(5))})
    assert [
        each.to_pylist() if isinstance(each, pa.Array) else each.tolist()
        for each in part.slice(1, 3).columns.values()
    ] == [
        [1, 2],
        [1, 2],
    ]
