"""Rows that cannot be read are named by row and field, and left out where that is asked. Pipes are read as files."""

import csv
import io
import json
import math
import os
import random
import struct
import threading
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from bettong.client.message_files import Format, Portion, portions
from bettong.client.message_input import InterruptibleInput, Piped, Wanted
from bettong.errors import BettongError, ClientError, SchemaError
from bettong.schema.schema import schema_of
from tests.samples.many_descriptors import low_descriptors_taken


@dataclass
class Trade:
    """A number, one that may be missing, and text."""

    number: int
    price: float
    limit: float | None
    note: str


SCHEMA = pa.ipc.read_schema(schema_of(Trade).arrow.serialize())
HEADER = "number,price,limit,note\n"


def wanted(*, messages_max: int = 4, bytes_max: int = 10_000, takes_rows: bool = False) -> Wanted:
    return Wanted(SCHEMA, takes_rows, messages_max, bytes_max)


def rows_of(found: list[Portion]) -> list[dict[str, object]]:
    return [row for portion in found for row in portion.body.to_pylist()]  # type: ignore[union-attr]


class Pieces(io.RawIOBase):
    """Bytes that come as through a pipe, in pieces of any size."""

    def __init__(self, data: bytes, chance: random.Random) -> None:
        self._data = io.BytesIO(data)
        self._chance = chance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        piece = self._data.read(self._chance.randint(1, min(len(buffer), 50)))
        buffer[: len(piece)] = piece
        return len(piece)


def piped(data: bytes, seed: int) -> Piped:
    return Piped("standard input", io.BufferedReader(Pieces(data, random.Random(seed))))


def csv_of(rows: list[tuple[object, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([HEADER.strip().split(","), *rows])
    return text.getvalue()


def test_rows_that_cannot_be_read_are_left_out_and_each_is_named_with_its_field(tmp_path: Path) -> None:
    path = tmp_path / "trades.csv"
    path.write_text(f"{HEADER}1,1,,a\n2,dear,,b\n3,3,,c\n4,4,much,d\n5,5\n6,,,f\n7,7,7,g\n")
    reported: list[str] = []
    found = list(portions(path, Format.CSV, wanted(), refuse=reported.append))
    assert [row["number"] for row in rows_of(found)] == [1, 3, 7]
    assert [portion.last for portion in found] == [3, 7], "what is left out has its number all the same"
    assert [each.removeprefix(f"{path}, ") for each in reported] == [
        "row 2: field 'price': invalid value 'dear', expected double",
        "row 4: field 'limit': expected a number, got str",
        "row 5: 2 cells, expected 4: number, price, limit, note",
        "row 6: column 'price' has nulls; give every message a value",
    ]


def test_lines_of_json_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "trades.jsonl"
    good = '{"number": %d, "price": 1, "note": "n"}\n'
    path.write_text(
        "".join([good % 1, "{oops\n", "\n", '{"number": 3, "price": [], "note": ""}\n', good % 5])
    )
    reported: list[str] = []
    found = list(portions(path, Format.JSON, wanted(), refuse=reported.append))
    assert [row["number"] for row in rows_of(found)] == [1, 5]
    assert len(reported) == 2
    assert f"{path}, line 2: Expecting property name" in reported[0]
    assert reported[1] == f"{path}, line 4: field 'price': expected a number, got list"


def test_a_value_that_arrow_refuses_in_parquet_is_named_by_row_and_column(tmp_path: Path) -> None:
    path = tmp_path / "trades.parquet"
    numbers = pa.array([str(number) if number != 8 else "eight" for number in range(1, 11)])
    columns = {"number": numbers, "price": [1.0] * 10, "limit": [None] * 10, "note": ["n"] * 10}
    pyarrow.parquet.write_table(pa.table(columns), path)
    with pytest.raises(
        SchemaError, match=r"trades.parquet, row 8: column 'number' does not fit int64: .*'eight'"
    ):
        list(portions(path, Format.PARQUET, wanted()))
    found = list(portions(path, Format.PARQUET, wanted(), refuse=lambda _: None))
    assert [row["number"] for row in rows_of(found)] == [1, 2, 3, 4, 5, 6, 7, 9, 10]


@pytest.mark.parametrize("seed", range(5))
def test_frames_have_the_same_bounds_whether_refused_rows_are_skipped_or_end_the_file(
    seed: int, tmp_path: Path
) -> None:
    """So a file that was refused resumes where it ended."""
    chance = random.Random(seed)
    path = tmp_path / "trades.csv"
    bad = chance.randrange(20, 60)
    path.write_text(csv_of([(number if number != bad else "x", 1, "", "n") for number in range(80)]))
    stopped: list[Portion] = []
    with pytest.raises(SchemaError, match=f"row {bad + 1}: field 'number'"):
        stopped.extend(portions(path, Format.CSV, wanted()))
    assert [portion.last for portion in stopped] == list(range(4, bad // 4 * 4 + 1, 4))
    skipped = list(portions(path, Format.CSV, wanted(), refuse=lambda _: None))
    assert sum(len(portion.body) for portion in skipped) == 79
    assert skipped[: len(stopped)] == stopped


def test_nan_is_a_number_and_an_empty_cell_is_none_where_the_field_may_be(tmp_path: Path) -> None:
    path = tmp_path / "trades.csv"
    path.write_text(f'{HEADER}1,NaN,NaN,NaN\n2,-Infinity,,""\n3,nan,1.5,NULL\n')
    first, second, third = rows_of(list(portions(path, Format.CSV, wanted())))
    assert math.isnan(first["price"])  # type: ignore[arg-type]
    assert math.isnan(first["limit"])  # type: ignore[arg-type]
    assert first["note"] == "NaN"
    assert (second["price"], second["limit"], second["note"]) == (-math.inf, None, "")
    assert math.isnan(third["price"])  # type: ignore[arg-type]
    assert (third["limit"], third["note"]) == (1.5, "NULL")


@pytest.mark.parametrize("seed", range(20))
def test_cells_with_quotes_and_line_ends_are_those_that_were_written(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    texts = ["".join(chance.choices('ab",\n é', k=chance.randrange(12))) for _ in range(60)]
    data = csv_of([(number, 0.5, "", text) for number, text in enumerate(texts)]).encode()
    (path := tmp_path / "trades.csv").write_bytes(b"\xef\xbb\xbf" + data)
    for file in (path, piped(data, seed)):
        found = rows_of(list(portions(file, Format.CSV, wanted(bytes_max=2000))))
        assert [row["note"] for row in found] == texts


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b'1,1,,"open\n2,2,,b\n', "row 1: it ends within quotes"),
        (b'1,1,,5" pipe\n2,2,,"a\nb"\nx,,,\n', "row 3: field 'number': invalid value 'x', expected int64"),
        (b"1,1,,a\r2,2,,b\n", "row 1: "),
        (b"1,1,,\xff\n", "row 1: field 'note': invalid UTF8 data"),
        (b"\n\n1,1,,a\n\n2\n", "row 2: 1 cells, expected 4"),
        (b"1,1,," + b"n" * 12_000 + b"\n", r"row 1: 13\d+ bytes, the sender takes 10000"),
        (b"1,1,," + b"n" * 200_000 + b"\n", "row 1: longer than 160,000 bytes"),
        (b'1,1,,"' + b"n\n" * 200_000, "row 1: longer than 160,000 bytes"),
        (bytes(range(256)), "row 1: "),
    ],
)
@pytest.mark.parametrize("is_piped", [False, True])
def test_a_row_that_cannot_be_parsed_is_named(
    row: bytes,
    reason: str,
    is_piped: bool,  # noqa: FBT001 - the case
    tmp_path: Path,
) -> None:
    data = HEADER.encode() + row
    (path := tmp_path / "trades.csv").write_bytes(data)
    with pytest.raises(SchemaError, match=reason):
        list(portions(piped(data, 7) if is_piped else path, Format.CSV, wanted()))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty; expected a header"),
        (b"number,price\n", "no column 'limit'; it has number, price"),
        (b"number,price,limit,note,note\n", "2 columns are called 'note'"),
        (b"\xff\xfe\n", "no header that names the schema's fields"),
        (b"x" * 200_000, "longer than 160,000 bytes; is it CSV"),
    ],
)
def test_an_invalid_header_is_refused_even_if_rows_are_skipped(
    content: bytes, reason: str, tmp_path: Path
) -> None:
    (path := tmp_path / "trades.csv").write_bytes(content)
    with pytest.raises(SchemaError, match=reason):
        list(portions(path, Format.CSV, wanted(), refuse=lambda _: None))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", [Format.BINARY, Format.LINES, Format.JSON, Format.CSV])
def test_a_pipe_yields_the_frames_of_the_file_however_its_bytes_arrive(
    kind: Format, seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    texts = ["n" * chance.randrange(1, 3000) for _ in range(50)]
    records = [{"number": number, "price": 1, "note": text} for number, text in enumerate(texts)]
    data = {
        Format.BINARY: b"".join(struct.pack(">I", len(text)) + text.encode() for text in texts),
        Format.LINES: "\r\n".join(texts).encode(),
        Format.JSON: "\n\n".join(map(json.dumps, records)).encode(),
        Format.CSV: csv_of([(number, 1, "", text) for number, text in enumerate(texts)]).encode(),
    }[kind]
    (path := tmp_path / "file").write_bytes(data)
    limits = wanted(messages_max=7, bytes_max=6000, takes_rows=True)
    of_file = list(portions(path, kind, limits))
    of_pipe = list(portions(piped(data, seed), kind, limits))
    assert [each.last for each in of_pipe] == [each.last for each in of_file]
    assert all(pipe.body == file.body for pipe, file in zip(of_pipe, of_file, strict=True))
    assert {each.done for each in of_pipe} == {None}
    assert of_file[-1].last == 50
    assert of_file[-1].done == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        (Format.BINARY, b"\0\0\0\3one\0\0\0\5tw", "standard input: ends inside message 2"),
        (Format.BINARY, b"\0\0\0\3one\0\0", "standard input: ends inside message 2"),
        (
            Format.JSON,
            b'{"number": 1, "price": 1, "note": ""}\n{"number": 2, "pr',
            "standard input, line 2: ",
        ),
        (Format.CSV, HEADER.encode() + b"1,1,,a\n2,", "standard input, row 2: 2 cells, expected 4"),
    ],
)
def test_a_pipe_that_ends_inside_a_message_is_reported(kind: Format, data: bytes, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        list(portions(piped(data, 1), kind, wanted(takes_rows=True)))


def test_parquet_is_not_read_from_a_pipe() -> None:
    with pytest.raises(BettongError, match="read from its end, which a pipe does not have"):
        list(portions(piped(b"", 1), Format.PARQUET, wanted()))


def test_reading_an_input_that_never_pauses_ends_when_it_is_stopped() -> None:
    """As of blank lines, of which nothing is sent: no other code would check whether to stop."""
    reading, writing = os.pipe()
    with io.FileIO(reading) as descriptor, io.FileIO(writing, "wb") as writer:
        writer.write(b"\n" * 10)
        stopped = threading.Event()
        source = InterruptibleInput(descriptor, stopped)
        assert source.read(4) == b"\n" * 4
        stopped.set()
        with pytest.raises(ClientError, match="not read any further"):
            source.read(4)


def test_an_input_may_have_a_descriptor_above_those_that_select_takes() -> None:
    with low_descriptors_taken():
        reading, writing = os.pipe()
        with io.FileIO(reading) as descriptor:
            with io.FileIO(writing, "wb") as writer:
                writer.write(b"one\n")
            source = InterruptibleInput(descriptor, threading.Event())
            assert source.read(10) == b"one\n"
            assert source.read(10) == b"", "its end"


def test_reading_a_silent_pipe_ends_when_it_is_stopped() -> None:
    reading, writing = os.pipe()
    with io.FileIO(reading) as descriptor, io.FileIO(writing, "wb") as writer:
        stopped = threading.Event()
        source = InterruptibleInput(descriptor, stopped)
        file: io.BufferedReader = io.BufferedReader(source)
        failures: list[Exception] = []

        def read() -> None:
            try:
                list(portions(Piped("pipe", file), Format.LINES, wanted(takes_rows=True)))
            except ClientError as error:
                failures.append(error)

        writer.write(b"one\n")
        thread = threading.Thread(target=read)
        thread.start()
        stopped.set()
        thread.join(10)
        assert not thread.is_alive()
        assert len(failures) == 1
