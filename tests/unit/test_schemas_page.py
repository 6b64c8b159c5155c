"""docs/schemas.md: its code runs, in order, and what it says of the results is so."""

import re
from pathlib import Path
from typing import Any

import pytest

from bettong.application.plan import plan
from bettong.client.message_files import Format, portions
from bettong.client.message_input import Wanted
from bettong.frames.columns import Columns
from bettong.frames.frame import decode
from bettong.frames.text import json_line
from bettong.schema.annotations import FORMS
from bettong.schema.schema import schema_of
from bettong.worker.stage_program import program
from tests.samples.page_code import page_module
from tests.samples.worker import data, worker

PATH = Path(__file__).resolve().parents[2] / "docs" / "schemas.md"
PAGE = PATH.read_text()
(LINE,) = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the page's code defines."""
    return vars(page_module(PATH))


def test_the_line_is_what_a_sink_writes_and_what_is_sent(names: dict[str, Any], tmp_path: Path) -> None:
    schema = schema_of(names["Order"])
    columns = Columns.of_messages(schema, [names["order"]])
    assert json_line(schema, columns.messages()[0]).decode() == LINE.rstrip()
    file = tmp_path / "orders.jsonl"
    file.write_text(LINE)
    wanted = Wanted(schema.arrow, takes_rows=False, bytes_max=2**20, messages_max=100)
    (portion,) = portions(file, Format.JSON, wanted)
    payload = portion.body.serialize().to_pybytes()  # type: ignore[union-attr]
    assert Columns.of_external_payload(schema, payload).messages() == [names["order"]]


def test_the_application_gives_what_its_functions_say(names: dict[str, Any]) -> None:
    planned = plan(names["app"])
    found: dict[str, Any] = {}
    for stage in planned.stages:
        if all(entry.stream != "orders" for entry in stage.inputs):
            continue
        for record in worker(program(stage, compiled=False)).fold(0, data("orders/a", 1, [names["order"]])):
            sink = record.topic.rpartition(".")[2]
            frame = decode(record.value)
            output = next(each.schema for each in stage.outputs if each.schema.fingerprint == frame.schema)
            found[sink] = Columns.of_payload(output, frame.columns or b"").messages()
    order = names["order"]
    assert found["invoices"] == [names["bill"](order)]
    assert found["cities"] == [{"city": "Köln", "since": order.placed}]
    assert found["hours"] == [names["Late"](order.id, order.placed.replace(minute=0))]


def test_the_decoder_of_the_page_runs_the_validators(names: dict[str, Any]) -> None:
    source = names["app"].nodes["payments"]
    decoded = source.decoder.decode(
        source.schema, [b'{"account":"a","amount":"1.5"}', b'{"account":"a","amount":"x"}']
    )
    assert decoded.messages == [names["Payment"](account="a", amount="1.5")]
    assert list(decoded.refused) == [1]


def test_the_page_has_every_kind() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith(("| `", "| a"))]
    words = {
        "json": "bettong.Json", "optional": "| None", "datetime": "`datetime`", "date": "`date`",
        "timedelta": "`timedelta`", "decimal": "Decimal", "enum": "Enum", "uuid": "`UUID`", "list": "list[T]",
        "dict": "dict[str, T]", "object": "dataclass",
    }  # fmt: skip
    assert {form.name for form in FORMS} == set(words)
    for word in words.values():
        assert any(word in row.replace("\\", "") for row in rows), word
