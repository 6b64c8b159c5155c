"""Kinds of fields with a form: each through Arrow, JSON, every speed, states and what sinks write; the rest refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from typing import Annotated, Any

import numpy as np
import psycopg.adapt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong import Application, ApplicationError
from bettong.application.nodes.stateful import Stateful
from bettong.application.plan import plan
from bettong.client.json_values import column_of
from bettong.errors import SchemaError
from bettong.frames.columns import Columns
from bettong.frames.fitting import fitting
from bettong.frames.frame import decode
from bettong.frames.text import json_line, message_of
from bettong.schema.annotations import FORMS
from bettong.schema.json_objects import reader_by_arrow
from bettong.schema.schema import Schema
from bettong.schema.sql_types import sql_types
from bettong.schema.tables import batch_of
from bettong.v1.frame_pb2 import Rows
from bettong.v1.ingest_pb2 import IngestFrame
from bettong.worker.stage_program import StageProgram, program
from bettong.worker.state.classes import Classes
from bettong.worker.state.codec import UnfitError
from bettong.worker.state.codec import encode as encode_states
from bettong.worker.state.reading import decode as decode_states
from bettong_receiver.connectors.kafka_topic import read_with_key, read_without_key
from bettong_receiver.connectors.postgres import read_rows
from bettong_receiver.connectors.table_columns import TableColumn, faults
from bettong_receiver.formats import formats
from tests.samples.example_feeds import session
from tests.samples.kind_cases import KindCase
from tests.samples.kinds import KINDS
from tests.samples.worker import data, worker

READERS = [Columns.of_payload, Columns.of_external_payload]
each_kind = pytest.mark.parametrize("case", KINDS.values(), ids=KINDS)


def given_values(case: KindCase) -> list[Any]:
    """All that the table names."""
    return [value for value, _ in case.values]


def read_back(schema: Schema, payload: bytes) -> list[Any]:
    """The values that both readers find in a payload."""
    found = [read(schema, payload).values(1) for read in READERS]
    assert found[0] == found[1]
    return found[0]


def test_every_form_is_in_the_table() -> None:
    met: set[str] = set()

    def meet(field: Any) -> None:
        if field.form is not None:
            met.add(field.form.name)
            for name in ("held", "item", "fields"):
                held = getattr(field.form, name, ())
                for each in held if isinstance(held, tuple) else [held]:
                    meet(each)

    for case in KINDS.values():
        meet(case.schema.fields[1])
    assert met == {form.name for form in FORMS}


@each_kind
def test_a_kind_has_one_arrow_type_and_one_column_type(case: KindCase) -> None:
    field = case.schema.fields[1]
    assert field.arrow == case.arrow
    assert case.schema.arrow.field(1).nullable == case.nullable
    assert sql_types(field)[0] == case.sql


def test_no_two_kinds_have_one_fingerprint_but_those_that_hold_the_same() -> None:
    found = {name: case.schema.fingerprint for name, case in KINDS.items()}
    assert found["text_enum"] == found["named_enum"] == found["odd_enum"]
    assert len(set(found.values())) == len(KINDS) - 2


@each_kind
def test_values_come_back_from_a_frame(case: KindCase) -> None:
    messages = case.messages(given_values(case))
    columns = Columns.of_messages(case.schema, messages)
    payload = columns.payload()
    assert read_back(case.schema, payload) == given_values(case)
    assert Columns.of_external_payload(case.schema, payload).payload() == payload
    assert Columns.of_payload(case.schema, payload).messages() == messages
    for value in given_values(case):
        assert type(
            read_back(case.schema, Columns.of_messages(case.schema, case.messages([value])).payload())[0]
        ) in (
            type(value),
            type(None),
        )


@each_kind
def test_no_values_and_parts_of_a_frame_come_back(case: KindCase) -> None:
    values = given_values(case) * 3
    columns = Columns.of_messages(case.schema, case.messages(values))
    assert read_back(case.schema, Columns.of_messages(case.schema, []).payload()) == []
    start, stop = 1, len(values) - 1
    parts = [
        Columns.of_external_payload(case.schema, each)
        for each in columns.payloads([0, start, stop, len(values)])
    ]
    assert [part.values(1) for part in parts] == [values[:start], values[start:stop], values[stop:]]
    assert Columns.concatenated(case.schema, parts).values(1) == values
    rows = np.array([len(values) - 1, 0, 0], np.int64)
    taken = columns.slice(0, len(values)).take(rows)
    assert read_back(case.schema, taken.payload()) == [values[row] for row in rows.tolist()]


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=25, deadline=None)
@given(drawn=st.data())
def test_any_values_come_back_from_a_frame_and_from_json(name: str, drawn: st.DataObject) -> None:
    case = KINDS[name]
    values = drawn.draw(st.lists(case.any_value, max_size=5))
    messages = case.messages(values)
    columns = Columns.of_messages(case.schema, messages)
    assert read_back(case.schema, columns.payload()) == values
    for message in messages:
        assert message_of(case.schema, json_line(case.schema, message)) == message


@each_kind
def test_a_value_has_one_json_form(case: KindCase) -> None:
    for (value, expected), message in zip(case.values, case.messages(given_values(case)), strict=True):
        line = json_line(case.schema, Columns.of_messages(case.schema, [message]).messages()[0])
        assert json.loads(line)["value"] == expected
        assert b"\n" not in line
        assert message_of(case.schema, line).value == value


@each_kind
def test_a_client_sends_json_by_the_arrow_schema_alone(case: KindCase) -> None:
    wanted = pa.ipc.read_schema(pa.py_buffer(case.schema.arrow.serialize().to_pybytes()))
    table: dict[str, Any] = {"key": ["a"] * len(case.values)}
    field = wanted.field("value")
    records = [{"value": each} for _, each in case.values]
    table["value"] = column_of(field, reader_by_arrow(field).values(records))
    payload = batch_of(wanted, table).serialize().to_pybytes()
    assert read_back(case.schema, payload) == given_values(case)


@each_kind
def test_a_source_of_bytes_takes_what_its_decoder_makes(case: KindCase) -> None:
    """As clients send them, and as topics hold them: through the sender, into the log."""

    def read(data: bytes) -> Any:
        return message_of(case.schema, data)

    read.__annotations__ = {"data": bytes, "return": case.message}
    app = Application("meters")
    app.source("samples", schema=case.message, key="key", decoder=bettong.each(read)).sink("out")
    planned = plan(app)
    lines = [json_line(case.schema, each) for each in case.messages(given_values(case))]
    taking = session(planned, planned.sources[0], partitions=1, frame_bytes_max=2**20)
    taken = taking.take(IngestFrame(sequence=1, rows=Rows(messages=lines)), 0, 9)
    (payload,) = [columns for each in taken.appends if (columns := decode(each.value).columns) is not None]
    assert read_back(case.schema, payload) == given_values(case)


@each_kind
def test_what_does_not_fit_is_refused_by_field_value_and_remedy(case: KindCase) -> None:
    good = case.messages(given_values(case)[:1])[0]
    for value, reason in case.unfit:
        bad = case.messages([value])[0]
        with pytest.raises(SchemaError, match=rf"^field 'value.*{reason}|^field \"value.*{reason}"):
            Columns.of_messages(case.schema, [good, bad])
        columns, refused = fitting(case.schema, [good, bad, good])
        assert columns.length == 2
        assert list(refused) == [1]


@each_kind
def test_json_that_is_no_value_is_refused(case: KindCase) -> None:
    wanted = case.schema.arrow.field("value")
    for value, reason in case.no_json:
        with pytest.raises(SchemaError, match=reason):
            reader_by_arrow(wanted).read(value)
        with pytest.raises(SchemaError, match=r"^field ['\"]value"):
            message_of(case.schema, json.dumps({"key": "", "value": value}).encode())


def function(case: KindCase) -> Callable[[Any], Any]:
    """Gives what it takes."""

    def same(message: Any) -> Any:
        return message

    same.__annotations__ = {"message": case.message, "return": case.message}
    return same


def outputs(case: KindCase, stage: StageProgram) -> list[Any]:
    """What a worker of the stage writes for the values of the table."""
    found = []
    for record in worker(stage).fold(0, data("samples/a", 1, case.messages(given_values(case)))):
        frame = decode(record.value)
        assert record.topic.endswith("out"), frame.rows
        found += Columns.of_external_payload(case.schema, frame.columns or b"").values(1)
    return found


@each_kind
@pytest.mark.parametrize("mark", [lambda same: same, bettong.vectorized])
def test_plain_and_vectorized_functions_take_and_give_every_kind(
    case: KindCase, mark: Callable[..., Any]
) -> None:
    app = Application("meters")
    app.source("samples", schema=case.message, key="key").map(mark(function(case))).sink("out")
    (stage,) = plan(app).stages
    assert outputs(case, program(stage, compiled=False)) == given_values(case)


@each_kind
def test_a_compiled_function_is_refused_with_the_field_and_its_kind(case: KindCase) -> None:
    app = Application("meters")
    app.source("samples", schema=case.message, key="key").map(bettong.compiled(function(case))).sink("out")
    (stage,) = plan(app).stages
    kind = case.schema.fields[1].kind_name
    with pytest.raises(
        ApplicationError, match=rf"compiled 'same': Sample: value \({kind}\).*leave the mark out"
    ):
        program(stage, compiled=True)


@dataclass
class Kept:
    """A state."""

    value: Any = None


@each_kind
def test_a_state_holds_every_kind_and_comes_back_from_a_snapshot(case: KindCase) -> None:
    def keep(message: Any, kept: Kept) -> Any:
        kept.value = message.value
        return message

    keep.__annotations__ = {"message": case.message, "kept": Kept, "return": case.message}
    app = Application("meters")
    stateful = app.source("samples", schema=case.message, key="key").stateful(keep, state=Kept, name="same")
    stateful.sink("out")
    (stage,) = plan(app).stages
    assert outputs(case, program(stage, compiled=False)) == given_values(case)
    states = [Kept(value) for value in given_values(case)]
    keys = list(range(len(states)))
    assert isinstance(stateful.node, Stateful)
    if not case.in_states:
        with pytest.raises(UnfitError, match="neither plain data nor a dataclass"):
            encode_states(keys, states, Classes(stateful.node))
        return
    assert decode_states(encode_states(keys, states, Classes(stateful.node)), Classes(stateful.node)) == (
        keys,
        states,
    )


@each_kind
def test_a_state_of_a_vectorized_function_refuses_it(case: KindCase) -> None:
    state = make_dataclass("State", [("value", case.annotation, None)])
    keyed = make_dataclass("Keyed", [("key", Annotated[str, bettong.Width(4)])])

    def keep(message: Any, state: Any, rows: bettong.RowIndexes) -> Any:
        return message

    keep.__annotations__ = {"message": keyed, "state": state, "rows": bettong.RowIndexes, "return": keyed}
    app = Application("meters")
    app.source("samples", schema=keyed, key="key").stateful(
        bettong.vectorized(keep), state=state, name="keep"
    ).sink("out")
    (stage,) = plan(app).stages
    with pytest.raises(ApplicationError, match=r"vectorized 'keep': .*State: value \("):
        program(stage, compiled=False)


@each_kind
def test_every_sink_writes_it(case: KindCase) -> None:
    app = Application("meters")
    app.source("samples", schema=case.message, key="key").map(function(case)).sink("out")
    frame = decode(data("out/a/0", 1, case.messages(given_values(case))))
    sink = formats(plan(app))["out"]
    lines = sink.messages_at_once(frame)
    expected = [
        json_line(case.schema, each) for each in Columns.of_payload(case.schema, frame.columns or b"")
    ]
    assert lines == expected  # of files, Redis, TCP, webhooks and topics
    assert [value for _, value in read_without_key(sink.messages)(frame)] == expected
    assert read_with_key(case.schema, "key")(frame)[0] == (b"k0", expected[0])
    transformer = psycopg.adapt.Transformer()
    for (_, value), (_, plain) in zip(read_rows(case.schema)(frame), case.values, strict=True):
        text = transformer.as_literal(value).decode()
        if case.sql == "jsonb":
            assert value is None or json.loads(value) == plain
        elif value is None:
            assert text == "NULL"
        elif case.sql in ("date", "timestamptz"):
            assert plain.removesuffix("Z").partition(".")[0].replace("T", " ") in text


@each_kind
def test_a_table_is_asked_for_a_column_of_its_type(case: KindCase) -> None:
    field = case.schema.fields[1]
    columns = [TableColumn("key", "text", -1, optional=True)]
    (fault,) = faults(case.schema, [*columns, TableColumn("value", "point", -1, optional=True)])
    assert f"column 'value' is point, expected {case.sql}" in fault
    named = {"boolean": "bool", "bigint": "int8"}.get(case.sql, case.sql.partition("(")[0])
    assert faults(case.schema, [*columns, TableColumn("value", named, -1, optional=True)]) == []
    assert sql_types(field)[0] == case.sql


def test_a_column_of_decimals_has_room_for_all_digits() -> None:
    schema = KINDS["decimal"].schema
    for digits, scale, fits in [(18, 4, True), (20, 5, True), (18, 5, False), (17, 4, False), (40, 3, False)]:
        column = TableColumn("value", "numeric", ((digits << 16) | scale) + 4, optional=True)
        assert (faults(schema, [TableColumn("key", "text", -1, optional=True), column]) == []) == fits
    short = TableColumn("value", "timestamptz", 3, optional=True)
    (fault,) = faults(KINDS["datetime"].schema, [TableColumn("key", "text", -1, optional=True), short])
    assert "timestamptz with limits" in fault
