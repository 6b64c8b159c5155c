"""`format="json"`: a source takes JSON objects as bytes, and what is none is refused message by message."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import bettong
from bettong import ApplicationError
from bettong.client.message_files import Format, portions
from bettong.client.message_input import Wanted
from bettong.frames.columns import Columns
from bettong.frames.fitting import fitting
from bettong.frames.text import json_line
from bettong.schema.json_objects import JsonObjects
from bettong.schema.schema import Schema, schema_of
from bettong.testing import run
from tests.samples.kind_cases import KindCase
from tests.samples.kinds import KINDS


@dataclass
class Payment:
    """One field that must be there, one with a default, one that may be None."""

    account: str
    amount: float = 0.0
    note: str | None = None


def application(**options: Any) -> bettong.Application:
    app = bettong.Application("payments")
    app.source("payments", schema=Payment, key="account", **options).sink("all")
    return app


def read(schema: Schema, rows: list[bytes]) -> tuple[list[Any], dict[int, str]]:
    decoded = JsonObjects().decode(schema, rows)
    columns, unfit = fitting(schema, decoded.messages or [])
    assert unfit == {}
    return columns.messages(), decoded.refused


def of_file(schema: Schema, row: bytes, path: Path) -> tuple[list[Any], str]:
    """What `bettong send` makes of the same line: messages, or why it is none."""
    path.write_bytes(row)
    reported = pa.ipc.read_schema(pa.py_buffer(schema.arrow.serialize().to_pybytes()))
    wanted = Wanted(reported, takes_rows=False, messages_max=3, bytes_max=2**20)
    reasons: list[str] = []
    found = [each.body for each in portions(path, Format.JSON, wanted, refuse=reasons.append)]
    messages = [
        message
        for body in found
        for message in Columns.of_external_payload(schema, body.serialize().to_pybytes()).messages()  # type: ignore[union-attr]
    ]
    return messages, "".join(reasons).removeprefix(f"{path}, line 1: ")


@pytest.mark.parametrize("case", KINDS.values(), ids=KINDS)
def test_each_kind_of_field_is_read_as_it_is_written(case: KindCase) -> None:
    messages = case.messages([value for value, _ in case.values])
    assert read(case.schema, [json_line(case.schema, each) for each in messages]) == (messages, {})


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (b'{"account": "ann", "amount": 1, "note": "n", "more": []}', Payment("ann", 1.0, "n")),
        (b'{"account": "ann"}', Payment("ann")),
        (b'{"account": "ann", "amount": "Infinity", "note": null}', Payment("ann", float("inf"))),
        (b'{"amount": 1}', "no field 'account'; it has amount"),
        (b'{"account": "ann", "amount": "dear"}', "field 'amount': expected a number, got str"),
        (b'{"account": "ann", "amount": null}', "field 'amount': expected a number, got NoneType"),
        (b"[1]", "list, expected an object"),
        (b"{oops", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (b"[" * 100_000, "nested too deeply; expected an object of fields"),
        (b'{"account": "\xff"}', None),
    ],
)
def test_a_sender_reads_what_is_read_of_a_file(
    row: bytes, expected: Payment | str | None, tmp_path: Path
) -> None:
    messages, refused = read(schema_of(Payment), [row])
    assert (messages, "".join(refused.values())) == of_file(schema_of(Payment), row, tmp_path / "a.jsonl")
    if expected is not None:
        assert [*messages, *refused.values()] == [expected]


def test_what_is_no_message_is_a_dead_letter_and_its_neighbours_are_processed() -> None:
    rows = [json.dumps({"account": "ann", "amount": 2}).encode(), b"oops", b'{"account": "bob"}']
    outcome = run(application(format="json"), [("payments", rows)])
    assert sorted(outcome.outputs["all"], key=str) == [Payment("ann", 2.0), Payment("bob")]
    (dead,) = outcome.dead_letters
    assert (dead.computation, dead.message) == ("payments", "oops")


def test_a_topic_of_kafka_needs_no_function_for_json() -> None:
    topic = bettong.KafkaTopic("payments", connection="shop")
    application(format="json", from_=topic)
    with pytest.raises(ApplicationError, match="give the source format='json', or a decoder"):
        application(from_=topic)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"format": "csv"},
            r"source 'payments': format 'csv': expected 'json'; other bytes are read by decoder=",
        ),
        (
            {"format": "json", "decoder": bettong.each(lambda row: Payment(row.decode()))},
            "source 'payments': format= and decoder= both say how bytes are read; give one",
        ),
    ],
)
def test_a_format_that_is_none_is_told(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ApplicationError, match=reason):
        application(**options)
