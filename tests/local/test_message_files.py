"""Files of messages become frames: the same messages, in order, in frames of a bounded size."""

import json
import math
import re
import struct
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import bettong
from bettong import Width
from bettong.client.message_files import Format, Portion, format_of, portions
from bettong.client.message_input import Wanted
from bettong.errors import BettongError, SchemaError
from bettong.frames.columns import Columns
from bettong.frames.text import json_line
from bettong.schema.schema import schema_of
from bettong.schema.tables import batch_of

SCHEMA = pa.schema(
    [
        pa.field("symbol", pa.binary(4), nullable=False),
        pa.field("price", pa.float64(), nullable=False),
        pa.field("count", pa.uint32(), nullable=False),
        pa.field("open", pa.uint8(), nullable=False),
        pa.field("note", pa.string(), nullable=False),
    ]
)
RECORDS = [
    {"symbol": f"S{number}", "price": number / 4, "count": number, "open": number % 2, "note": f"n°{number}"}
    for number in range(10)
]


def wanted(
    schema: pa.Schema = SCHEMA, *, takes_rows: bool = True, messages_max: int = 4, bytes_max: int = 100_000
) -> Wanted:
    return Wanted(schema, takes_rows=takes_rows, messages_max=messages_max, bytes_max=bytes_max)


def framed(messages: list[bytes]) -> bytes:
    return b"".join(struct.pack(">I", len(message)) + message for message in messages)


def records_of(found: list[Portion]) -> list[dict[str, object]]:
    rows = [row for portion in found for row in portion.body.to_pylist()]  # type: ignore[union-attr]
    return [{**row, "symbol": row["symbol"].rstrip(b"\0").decode()} for row in rows]


def write(path: Path, kind: Format) -> None:
    table = pa.Table.from_pylist(RECORDS)
    if kind is Format.JSON:
        path.write_text("".join(json.dumps(record) + "\n\n" for record in RECORDS))
    elif kind is Format.CSV:
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)


@pytest.mark.parametrize("kind", [Format.JSON, Format.CSV, Format.PARQUET])
def test_columns_of_every_format_are_the_records(kind: Format, tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, kind)
    found = list(portions(path, kind, wanted()))
    assert records_of(found) == RECORDS
    assert [portion.last for portion in found] == [4, 8, 10]
    assert all(portion.body.schema.equals(SCHEMA) for portion in found)  # type: ignore[union-attr]
    assert found[-1].done == pytest.approx(1.0)


def test_framed_messages_are_cut_out_across_blocks(tmp_path: Path) -> None:
    messages = [bytes([number % 256]) * (number * 1000) for number in range(80)]  # 3 MB: several blocks
    path = tmp_path / "file.bin"
    path.write_bytes(framed(messages))
    found = list(portions(path, Format.BINARY, wanted(bytes_max=1_000_000)))
    assert [message for portion in found for message in portion.body] == messages
    assert [portion.last for portion in found] == list(range(4, 84, 4))


def test_lines_are_messages_without_their_ends(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(b"one\r\n\ntwo\nthree")
    (portion,) = portions(path, Format.LINES, wanted())
    assert portion.body == [b"one", b"two", b"three"]


def test_lines_fill_the_one_text_field_of_a_source_without_decoder(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("één\ntwo\n")
    schema = pa.schema([pa.field("text", pa.string(), nullable=False)])
    (portion,) = portions(path, Format.LINES, wanted(schema, takes_rows=False))
    assert portion.body.to_pydict() == {"text": ["één", "two"]}  # type: ignore[union-attr]


def test_what_is_too_large_for_a_frame_is_halved(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(framed([b"x" * 100] * 8))
    found = list(portions(path, Format.BINARY, wanted(messages_max=8, bytes_max=250)))
    assert [len(portion.body) for portion in found] == [2, 2, 2, 2]
    assert [portion.last for portion in found] == [2, 4, 6, 8]


@pytest.mark.parametrize(
    ("kind", "content", "text"),
    [
        (Format.BINARY, framed([b"one"]) + b"\0\0\0\5tw", "ends inside message 2"),
        (Format.BINARY, b"\xff\xff\xff\xffxxxx", "message 1: its length says 4294967295 bytes"),
        (Format.JSON, b'{"symbol": "A"}\n', "line 1: no field 'price'; it has symbol"),
        (Format.JSON, b"\n[1]\n", "line 2: list, expected an object"),
        (Format.JSON, b"\n\n{oops\n", "line 3: Expecting property name"),
        (Format.CSV, b"symbol,price,count,open\nA,1,2,1\n", "note"),
        (Format.CSV, b"symbol,price,count,open,note\nA,dear,2,1,n\n", "invalid value 'dear'"),
        (
            Format.CSV,
            b"symbol,price,count,open,note\nTOOLONG,1,2,1,n\n",
            "row 1: column 'symbol' has a value of 7 bytes, at most 4 fit",
        ),
        (Format.PARQUET, b"no parquet", "[Pp]arquet"),
    ],
)
def test_content_that_does_not_fit_is_reported_with_its_position(
    kind: Format, content: bytes, text: str, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(SchemaError, match=text):
        list(portions(path, kind, wanted()))


@pytest.mark.parametrize("value", [None, "many", -1, 2**40, 1.5])
def test_a_value_that_is_no_number_of_its_type_is_refused(value: object, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps({**RECORDS[0], "count": value}))
    with pytest.raises(SchemaError, match="line 1: field 'count'"):
        list(portions(path, Format.JSON, wanted()))


def test_true_is_one(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps({**RECORDS[0], "open": True}))
    (portion,) = portions(path, Format.JSON, wanted())
    assert records_of([portion])[0]["open"] == 1


def test_bytes_are_refused_for_a_source_without_a_decoder(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(framed([b"one"]))
    for kind in (Format.BINARY, Format.LINES):
        with pytest.raises(BettongError, match="send JSON lines, CSV or Parquet"):
            list(portions(path, kind, wanted(takes_rows=False)))


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BettongError, match="cannot be read"):
        list(portions(tmp_path / "missing", Format.JSON, wanted()))


READ_A_LITTLE = """
import sys
from pathlib import Path
import pyarrow as pa
from bettong.client.message_files import Format, portions
from bettong.client.message_input import Wanted
read = portions(Path(sys.argv[1]), Format.CSV, Wanted(pa.schema([("a", pa.int64())]), False, 1000, 100_000))
assert next(read).last == 1000
"""


def test_a_program_ends_while_the_rest_of_its_file_is_read_ahead(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("a\n" + "".join(f"{number:018}\n" for number in range(1_000_000)))
    ends = [
        subprocess.run([sys.executable, "-c", READ_A_LITTLE, path], check=False, timeout=60).returncode
        for _ in range(8)
    ]
    assert ends == [0] * 8


def test_empty_files_have_no_frames(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")
    for kind in (Format.BINARY, Format.LINES, Format.JSON):
        assert not list(portions(path, kind, wanted()))


def test_the_end_of_a_file_name_determines_the_format() -> None:
    names = {"a.msg": Format.BINARY, "a.TXT": Format.LINES, "a.ndjson": Format.JSON, "a.csv": Format.CSV}
    assert {name: format_of(Path(name)) for name in names} == names
    with pytest.raises(BettongError, match="give --format"):
        format_of(Path("a.xyz"))


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('{"note": true, "ratio": 1.0}', "line 1: field 'note': expected text, got True"),
        ('{"note": 5, "ratio": 1.0}', "line 1: field 'note': expected text, got 5"),
        ('{"note": "a", "ratio": 1e300}', "'ratio' has a number that is too large for float"),
    ],
)
def test_values_of_another_type_are_refused_and_not_made_to_fit(
    line: str, error: str, tmp_path: Path
) -> None:
    schema = pa.schema(
        [pa.field("note", pa.string(), nullable=False), pa.field("ratio", pa.float32(), nullable=False)]
    )
    path = tmp_path / "file.json"
    path.write_text(f"{line}\n")
    with pytest.raises(SchemaError, match=error):
        list(portions(path, Format.JSON, wanted(schema)))


@pytest.mark.parametrize("value", [True, 7, 1.5])
def test_a_number_is_no_text_of_a_fixed_width_either(value: object, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps({**RECORDS[0], "symbol": value}) + "\n")
    with pytest.raises(SchemaError, match="line 1: field 'symbol': expected text"):
        list(portions(path, Format.JSON, wanted()))


@dataclass
class Values:
    """Fields whose kinds the Welcome names."""

    whole: bettong.u64
    ratio: float
    flag: bool
    code: Annotated[bytes, Width(4)]
    blob: bytes
    text: str


VALUES = Values(2**64 - 1, 0.5, flag=True, code=b"ab\0\xff", blob=b"\xff\0", text="base64:AAAA")


def reported(tmp_path: Path, lines: bytes) -> list[Values]:
    """The messages that a file of JSON becomes."""
    path = tmp_path / "told.jsonl"
    path.write_bytes(lines)
    # As a client has it, from the sender's Welcome.
    schema = pa.ipc.read_schema(schema_of(Values).arrow.serialize())
    found = [portion.body for portion in portions(path, Format.JSON, wanted(schema, takes_rows=False))]
    payloads = [body.serialize().to_pybytes() for body in found]  # type: ignore[union-attr]
    return [
        each
        for payload in payloads
        for each in Columns.of_external_payload(schema_of(Values), payload).messages()
    ]


@pytest.mark.parametrize("ratio", [0.5, math.inf, -math.inf, math.nan, 1e300])
def test_what_results_print_is_sent_as_it_was(ratio: float, tmp_path: Path) -> None:
    messages = [
        replace(VALUES, ratio=ratio),
        replace(VALUES, whole=0, flag=False, blob=b"base64:", code=b"abcd"),
    ]
    lines = b"".join(json_line(schema_of(Values), message) + b"\n" for message in messages)
    assert list(map(repr, reported(tmp_path, lines))) == list(map(repr, messages))


@pytest.mark.parametrize(
    ("field", "value", "found"),
    [
        ("whole", "9223372036854775808", 2**63),
        ("whole", "2.0", 2),
        ("ratio", "9007199254740993", 2.0**53),
        ("ratio", "123456789012345678901234567890", 123456789012345678901234567890.0),
        ("flag", "0", False),
        ("blob", '"plain"', b"plain"),
    ],
)
def test_values_of_json_are_the_ones_that_are_nearest(
    field: str, value: str, found: object, tmp_path: Path
) -> None:
    line = json.dumps({"whole": 1, "ratio": 1, "flag": True, "code": "abcd", "blob": "", "text": ""})
    given = re.sub(f'"{field}": [^,}}]*', f'"{field}": {value}', line)
    assert getattr(reported(tmp_path, given.encode())[0], field) == found


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("whole", "18446744073709551616", "18446744073709551616 does not fit uint64"),
        ("whole", "-1", "-1 does not fit uint64"),
        ("whole", "9" * 400, "a number of 1329 bits does not fit uint64"),
        ("whole", "true", "expected a whole number, got True"),
        ("whole", "1.5", "expected a whole number, got 1.5"),
        ("whole", "[[1]]", "expected a whole number, got list"),
        ("whole", "9" * 5000, "digits"),
        ("ratio", "9" * 400, "too large for a float"),
        ("ratio", '"much"', "expected a number, got str"),
        ("flag", "2", "expected true, false, 1 or 0, got 2"),
        ("flag", "null", "expected true, false, 1 or 0, got None"),
        ("blob", '"base64:!"', "no base64"),
        ("text", "7", "expected text, got 7"),
        ("text", "[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ("text", r'"\ud800"', "surrogates"),
    ],
)
def test_values_that_do_not_fit_are_reported_with_file_and_line(
    field: str, value: str, error: str, tmp_path: Path
) -> None:
    line = json.dumps({"whole": 1, "ratio": 1, "flag": True, "code": "abcd", "blob": "", "text": ""})
    bad = re.sub(f'"{field}": [^,}}]*', lambda _: f'"{field}": {value}', line)
    with pytest.raises(SchemaError, match=rf"told\.jsonl, lines? .*{error}"):
        reported(tmp_path, f"{line}\n{bad}\n".encode())


@pytest.mark.parametrize("values", [[2], [0, 1, 255]])
def test_other_tables_are_refused_for_a_bool_too(values: list[int]) -> None:
    schema = pa.schema([schema_of(Values).arrow.field("flag")])
    assert batch_of(schema, {"flag": [True, False]}).to_pydict() == {"flag": [1, 0]}
    array = pa.array(values, pa.uint8())
    for table in ({"flag": values}, {"flag": array}, pa.RecordBatch.from_arrays([array], schema=schema)):
        with pytest.raises(SchemaError, match="'flag' is true or false, 1 or 0"):
            batch_of(schema, table)


@pytest.mark.parametrize("values", [[2**64], [2**63, -1], [10**30]])
def test_numbers_beyond_64_bits_are_refused_and_those_within_are_taken(values: list[int]) -> None:
    schema = pa.schema([schema_of(Values).arrow.field("whole")])
    assert batch_of(schema, {"whole": [2**63, 0]}).to_pydict() == {"whole": [2**63, 0]}
    with pytest.raises(SchemaError, match="'whole' does not fit uint64"):
        batch_of(schema, {"whole": values})
