"""Messages described by a TypedDict or a pydantic model: dicts and models through every step of a stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Flag
from typing import Any, NotRequired, Required, TypedDict

import numpy as np
import pyarrow as pa
import pydantic
import pytest

import bettong
from bettong import Application, ApplicationError
from bettong.application.nodes.source import Source
from bettong.application.plan import plan
from bettong.errors import SchemaError
from bettong.frames.columns import Columns
from bettong.frames.fitting import fitting
from bettong.frames.frame import Frame, decode, encode
from bettong.frames.text import json_line, message_of
from bettong.identifiers import Origin, SequenceNumber
from bettong.schema.schema import Schema, schema_of
from bettong.v1.frame_pb2 import DeadLetter
from bettong.worker.stage_program import program
from tests.samples.worker import worker


@dataclass
class Reading:
    """As a dataclass."""

    meter: str
    value: int
    at: datetime | None


class ReadingDict(TypedDict):
    """As a dict."""

    meter: Required[str]
    value: int
    at: datetime | None


class ReadingModel(pydantic.BaseModel):
    """As a model, whose validator nothing but pydantic runs."""

    meter: str
    value: int = pydantic.Field(alias="amount")
    at: datetime | None

    @pydantic.field_validator("value")
    @classmethod
    def positive(cls, value: int) -> int:
        """Only such."""
        if value < 0:
            raise ValueError("negative")
        return value


AT = datetime(2026, 1, 1, tzinfo=UTC)
CLASSES: dict[type[Any], Callable[..., Any]] = {
    Reading: Reading,
    ReadingDict: lambda *values: dict(zip(("meter", "value", "at"), values, strict=True)),
    ReadingModel: lambda meter, value, at: ReadingModel(meter=meter, amount=value, at=at),
}
each_class = pytest.mark.parametrize(
    ("message", "make"), CLASSES.items(), ids=lambda each: getattr(each, "__name__", "")
)


@each_class
def test_one_description_is_one_schema_whatever_the_class(
    message: type[Any], make: Callable[..., Any]
) -> None:
    schema = schema_of(message)
    assert schema.fingerprint == schema_of(Reading).fingerprint
    assert schema.arrow.equals(schema_of(Reading).arrow, check_metadata=True)
    messages = [make("a", 1, AT), make("b", 2, None)]
    columns = Columns.of_external_payload(schema, Columns.of_messages(schema, messages).payload())
    assert columns.messages() == messages
    assert message_of(schema, json_line(schema, messages[0])) == messages[0]


@each_class
def test_what_is_no_such_message_is_refused_by_its_type(message: type[Any], make: Callable[..., Any]) -> None:
    columns, refused = fitting(schema_of(message), [make("a", 1, AT), 7, {"meter": "a"}, None])
    assert columns.length == 1
    assert refused == {
        1: f"int is no {message.__name__}",
        2: f"dict is no {message.__name__}",
        3: f"NoneType is no {message.__name__}",
    }


def folded(app: Application, schema: Schema, messages: list[Any]) -> list[Any]:
    """What the only stage writes: messages, or reasons of dead letters."""
    (stage,) = plan(app).stages
    payload = Columns.of_messages(schema, messages).payload()
    record = Frame(
        origin=Origin("readings/a"),
        sequence=SequenceNumber(1),
        previous=SequenceNumber(0),
        count=len(messages),
        schema=schema.fingerprint,
        columns=payload,
    )
    found: list[Any] = []
    for each in worker(program(stage, compiled=False)).fold(0, encode(record)):
        frame = decode(each.value)
        if frame.columns is not None:
            found += Columns.of_payload(schema, frame.columns).messages()
        else:
            found += [DeadLetter.FromString(row).reason for row in frame.rows or ()]
    return found


@each_class
def test_plain_functions_take_and_give_them(message: type[Any], make: Callable[..., Any]) -> None:
    schema = schema_of(message)
    value = schema.getter("value")

    def doubled(reading: Any) -> Any:
        return make("d", 2 * value(reading), None)

    def spread(reading: Any) -> Any:
        return [reading, 7, doubled(reading)]

    def few(reading: Any) -> bool:
        return bool(value(reading) < 3)

    doubled.__annotations__ = {"reading": message, "return": message}
    spread.__annotations__ = {"reading": message, "return": list[message]}  # type: ignore[valid-type]
    app = Application("meters")
    readings = app.source("readings", schema=message, key="meter")
    readings.filter(few).map(doubled).flat_map(spread).sink("all")
    found = folded(app, schema, [make("a", 1, AT), make("b", 9, None)])
    assert found == [make("d", 2, None), make("d", 4, None), f"int is no {message.__name__}"]


@each_class
def test_vectorized_functions_take_and_give_columns_of_them(
    message: type[Any], make: Callable[..., Any]
) -> None:
    schema = schema_of(message)

    def doubled(reading: Any) -> Any:
        values = [schema.getter(name)(reading) for name in ("meter", "value", "at")]
        assert isinstance(values[1], np.ndarray)
        assert isinstance(values[2], pa.Array)
        return schema.make(values[0], values[1] * 2, None)

    doubled.__annotations__ = {"reading": message, "return": message}
    app = Application("meters")
    app.source("readings", schema=message, key="meter").map(bettong.vectorized(doubled)).sink("all")
    assert folded(app, schema, [make("a", 1, AT), make("b", 9, None)]) == [
        make("a", 2, None),
        make("b", 18, None),
    ]


def test_a_vectorized_function_that_leaves_out_a_key_gets_the_reason() -> None:
    @bettong.vectorized
    def bare(reading: ReadingDict) -> ReadingDict:
        return {"meter": reading["meter"]}  # type: ignore[typeddict-item]

    app = Application("meters")
    app.source("readings", schema=ReadingDict, key="meter").map(bare).sink("all")
    with pytest.raises(ApplicationError, match="returned ReadingDict without 'value'"):
        program(plan(app).stages[0], compiled=False)


@pytest.mark.parametrize("message", [ReadingDict, ReadingModel])
def test_compiled_functions_take_dataclasses_alone(message: type[Any]) -> None:
    def same(reading: Any) -> Any:
        return reading

    same.__annotations__ = {"reading": message, "return": message}
    app = Application("meters")
    app.source("readings", schema=message, key="meter").map(bettong.compiled(same)).sink("all")
    with pytest.raises(ApplicationError, match=rf"compiled 'same': {message.__name__}: expected a dataclass"):
        program(plan(app).stages[0], compiled=True)


def test_a_validator_runs_where_it_is_called_and_not_at_a_stage() -> None:
    schema = schema_of(ReadingModel)
    assert schema.make("a", -1, None).value == -1
    app = Application("meters")
    decoder = bettong.each(ReadingModel.model_validate_json)
    source = app.source("readings", schema=ReadingModel, key="meter", decoder=decoder)
    assert isinstance(source.node, Source)
    assert source.node.decoder is not None
    decoded = source.node.decoder.decode(
        schema, [b'{"meter":"a","amount":1,"at":null}', b'{"meter":"a","amount":-1,"at":null}', b"{"]
    )
    assert decoded.messages == [ReadingModel(meter="a", amount=1, at=None)]
    assert "negative" in decoded.refused[1]
    assert list(decoded.refused) == [1, 2]


def test_a_decoder_may_give_dicts() -> None:
    schema = schema_of(ReadingDict)

    def read(row: bytes) -> ReadingDict:
        return {"meter": row.decode(), "value": len(row), "at": None} if row else 7  # type: ignore[return-value]

    app = Application("meters")
    source = app.source("readings", schema=ReadingDict, key="meter", decoder=bettong.each(read))
    assert isinstance(source.node, Source)
    assert source.node.decoder is not None
    decoded = source.node.decoder.decode(schema, [b"ab", b""])
    assert decoded.messages == [{"meter": "ab", "value": 2, "at": None}]
    assert decoded.refused == {1: "the decoder returned int, not ReadingDict"}


class Partial(TypedDict):
    """Keys that may be missing."""

    a: int
    b: NotRequired[int]


class Watching(pydantic.BaseModel):
    """Does something when it is made."""

    a: int

    def model_post_init(self, context: Any) -> None:
        """Whatever."""


class Private(pydantic.BaseModel):
    """Keeps what is no field."""

    a: int
    _b: int = 1


class Empty(pydantic.BaseModel):
    """Nothing."""


class Rights(Flag):
    """Combine."""

    READ = 1


@dataclass
class Allowed:
    """Of rights."""

    rights: Rights


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Partial, "Partial: key 'b' may be missing .*: make it required, with a type of `... . None`"),
        (Watching, "Watching has a model_post_init, or private attributes"),
        (Private, "Private has a model_post_init, or private attributes"),
        (Empty, "Empty is no schema: it has no fields"),
        (Allowed, "Allowed: field 'rights': Rights is a Flag, whose members combine; use an int"),
    ],
)
def test_a_class_that_is_no_schema_says_what_to_write(message: type[Any], reason: str) -> None:
    with pytest.raises(SchemaError, match=f"^{reason}"):
        schema_of(message)


class Fixed(TypedDict):
    """A number and a time."""

    value: int
    at: datetime | None


def test_packed_layouts_give_what_they_can_and_say_what_not() -> None:
    app = Application("meters")
    with pytest.raises(ApplicationError, match=r"cannot fill field 'at' \(optional, variable width\)"):
        app.source("readings", schema=Fixed, decoder=bettong.packed("<qq"))
    with pytest.raises(ApplicationError, match="it does not read field 'at', which has no default"):
        app.source("readings", schema=Fixed, decoder=bettong.packed("<q", fields=("value",)))
