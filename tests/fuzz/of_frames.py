"""Harnesses of what travels: frames, their columns, records that a worker folds, results that a receiver reads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Annotated

import numpy as np
from google.protobuf.message import DecodeError

import bettong
from bettong import Application, Width
from bettong.application.plan import plan
from bettong.errors import FrameError, LogTruncatedError, SchemaError
from bettong.frames.columns import Columns
from bettong.frames.frame import (
    Frame,
    FrameKind,
    Repartition,
    decode,
    encode,
    reference_record,
    repartition_record,
    tick_record,
)
from bettong.frames.refused import Refused, pack
from bettong.frames.text import json_line, message_of
from bettong.frames.times import encode_times
from bettong.identifiers import Origin, ReferenceVersion, SequenceNumber
from bettong.inspection.text import MessageForm, message_text
from bettong.schema.json_values import bytes_of, text_of
from bettong.schema.schema import Schema, schema_of
from bettong.v1 import subscribe_pb2
from bettong.v1.frame_pb2 import DeadLetter
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import StageProgram, program
from bettong_receiver.formats import SinkFormat, formats
from bettong_receiver.progress import DeliveryProgress
from bettong_receiver.subscriptions import LogFacts, RefusedSubscription, starts
from tests.fuzz.harness import Harness
from tests.fuzz.mutating import floats
from tests.fuzz.rich import Rich, rich_message

FRAME_BYTES_MAX = 64 * 1024
_SEQUENCE_MAX = 2**64 - 1


@dataclass
class Fixed:
    """Fields of a fixed width."""

    number: bettong.i64
    flag: bool
    code: Annotated[str, Width(5)]
    ratio: float


@dataclass
class Varying:
    """Texts and bytes of any length."""

    number: bettong.u16
    text: str
    blob: bytes
    code: Annotated[bytes, Width(3)]


@dataclass(slots=True)
class Sum:
    """A state."""

    total: int = 0


@dataclass(slots=True)
class Newest:
    """A state with a timer."""

    until: bettong.Timer = bettong.NEVER


SCHEMAS = (schema_of(Fixed), schema_of(Varying), schema_of(Rich))


def samples(schema: Schema, count: int) -> Columns:
    """Some messages."""
    if schema.message is Fixed:
        made: list[object] = [Fixed(index, index % 2 == 0, f"c{index}", index / 3) for index in range(count)]
    elif schema.message is Rich:
        made = [rich_message(index) for index in range(count)]
    else:
        made = [Varying(index, f"text {index} é", b"b" * index, b"abc") for index in range(count)]
    return Columns.of_messages(schema, made)


def read_frame(data: bytes) -> None:
    """The envelope."""
    with contextlib.suppress(FrameError):
        frame = decode(data)
        again = decode(encode(frame))
        assert (again.origin, again.sequence, again.kind) == (frame.origin, frame.sequence, frame.kind)


def read_columns(data: bytes) -> None:
    """The Arrow message inside, with both readers; the first byte says which schema."""
    if not data:
        return
    schema = SCHEMAS[data[0] % len(SCHEMAS)]
    for read in (Columns.of_payload, Columns.of_external_payload):
        with contextlib.suppress(FrameError):
            columns = read(schema, data[1:])
            messages = columns.messages()
            assert len(messages) == columns.length
            taken = columns.take(np.arange(columns.length)[::-1])
            assert read(schema, taken.payload()).length == columns.length
            for message in messages[:20]:
                json_line(schema, message)


def total(message: Varying, kept: Sum) -> Fixed | None:
    """Adds up; raises for some."""
    kept.total += message.number
    return Fixed(kept.total, flag=True, code=message.text[:1], ratio=1 / (message.number - 3))


@cache
def stage() -> StageProgram:
    """A stage with a state, which ends."""
    app = Application("fuzzed")
    varying = app.source("varying", schema=Varying, key="text")
    varying.stateful(total, state=Sum, ttl=timedelta(days=1)).sink("totals")
    return program(plan(app).stages[0], compiled=False)


def time_of(message: Varying) -> int:
    """When it happened."""
    return message.number


def last(message: Varying, kept: Newest) -> None:
    """Waits for no other."""
    kept.until = message.number + 1


def over(fired: bettong.Fired[str], kept: Newest) -> Fixed:
    """No other has come."""
    del kept
    return Fixed(fired.at, flag=False, code=fired.key[:1], ratio=0.0)


@cache
def judging_stage() -> StageProgram:
    """A stage that goes by event time, as one with a computation that judges lateness does."""
    app = Application("fuzzed")
    varying = app.source("varying", schema=Varying, key="text", event_time=time_of)
    varying.stateful(last, state=Newest, timers={"until": over}).sink("ended")
    (planned,) = plan(app).stages
    return program(replace(planned, judges_lateness=True), compiled=False)


def read_record(data: bytes) -> None:
    """A record of a stage's log: whatever is wrong with it is a dead letter, and the next one is folded.

    But behind one that says that another generation begins: these states do not go on there.
    """
    for of in (stage(), judging_stage()):
        _fold_record(data, of)


def _fold_record(data: bytes, of: StageProgram) -> None:
    worker = PartitionWorker(of, Assignment("fuzzed", 0, 1, FRAME_BYTES_MAX))
    try:
        records = worker.fold(0, data)
    except LogTruncatedError:
        assert decode(data).kind is FrameKind.REPARTITION
        return
    assert all(len(record.value) <= FRAME_BYTES_MAX for record in records)
    for record in records:
        decode(record.value)
    worker.fold(1, record_of(_SEQUENCE_MAX, origin="varying/last"))
    worker.increment()


def record_of(sequence: int, *, origin: str = "varying/a", count: int = 6) -> bytes:
    """A record that is right."""
    schema = schema_of(Varying)
    return encode(
        Frame(
            origin=Origin(origin),
            sequence=SequenceNumber(sequence),
            previous=SequenceNumber(0),
            count=count,
            schema=schema.fingerprint,
            ingest_ns=1,
            columns=samples(schema, count).payload(),
        )
    )


def read_results(data: bytes) -> None:
    """A record of a sink's log, or of the dead letters, as a receiver reads it."""
    with contextlib.suppress(FrameError):
        frame = decode(data)
        for form in _formats().values():
            with contextlib.suppress(FrameError):
                form.content(form.messages(frame))


@cache
def _formats() -> dict[str, SinkFormat]:
    app = Application("fuzzed")
    varying = app.source("varying", schema=Varying, key="text")
    varying.sink("plain")
    app.source("rich-in", schema=Rich, key="text").sink("rich")
    varying.sink("raw", encoder=lambda message: message.blob)
    return formats(plan(app))


def read_message(data: bytes) -> None:
    """A message of a dead letter, as JSON."""
    for schema in SCHEMAS:
        with contextlib.suppress(SchemaError):
            Columns.of_messages(schema, [message_of(schema, data)])
    with contextlib.suppress(UnicodeDecodeError, ValueError):
        bytes_of(data.decode())
    assert bytes_of(text_of(data)) == data
    for form in MessageForm:
        with contextlib.suppress(ValueError):
            message_text(data, form)


def read_positions(data: bytes) -> None:
    """What a subscriber shows to go on."""
    with contextlib.suppress(DecodeError, RefusedSubscription):
        request = subscribe_pb2.SubscribeRequest.FromString(data)
        facts = LogFacts(beginnings={0: 5, 1: 0}, ends={0: 100, 1: 7})
        newest = {0: DeliveryProgress.fresh(5), 1: DeliveryProgress.fresh(0)}
        found = starts(request, facts=facts, newest=newest)
        assert found.keys() == {0, 1}


def _frames() -> Iterator[bytes]:
    yield record_of(1)
    yield encode(
        Frame(
            origin=Origin("varying/a"),
            sequence=SequenceNumber(7),
            previous=SequenceNumber(7),
            kind=FrameKind.OPEN,
        )
    )
    refused = [Refused(0, "why", b"\xff", as_received=True), Refused(7, "else", b"{}", as_received=False)]
    packed = pack(refused, frame_bytes_max=FRAME_BYTES_MAX)
    yield encode(
        Frame(
            origin=Origin("varying/a"), sequence=SequenceNumber(2), previous=SequenceNumber(1), refused=packed
        )
    )
    yield tick_record("log", 2**40, {Origin("varying/a"): 7}, {Origin("varying/a"): SequenceNumber(8)})
    yield repartition_record("varying", Repartition(3, 8))
    late = encode_times(np.array([0, 2**62, 3, 3, 2**63 - 1, -1]))
    yield encode(replace(decode(record_of(9)), watermark_ns=2**62, message_watermarks=late))
    yield encode(
        Frame(
            origin=Origin("raw/x/0"),
            sequence=SequenceNumber(3),
            previous=SequenceNumber(1),
            count=2,
            rows=[b"one", b""],
        )
    )
    yield _named_version()


def _named_version() -> bytes:
    return reference_record(
        "varying", 2**40, ReferenceVersion("prices-0123456789abcdef-0", 3, bytes(range(32)))
    )


def _columns() -> Iterator[bytes]:
    for index, schema in enumerate(SCHEMAS):
        for count in (0, 1, 9):
            yield bytes([index]) + samples(schema, count).payload()


def _results() -> Iterator[bytes]:
    yield from _frames()
    dead_letter = DeadLetter(computation="total", reason="no", origin="varying/a", sequence=3, message=b"{}")
    yield encode(
        Frame(
            origin=Origin("dead-letters/s/0"),
            sequence=SequenceNumber(9),
            previous=SequenceNumber(0),
            rows=[dead_letter.SerializeToString()],
        )
    )

    rich = samples(schema_of(Rich), 4).payload()
    fingerprint = schema_of(Rich).fingerprint
    yield encode(
        Frame(
            origin=Origin("rich/s/0"),
            sequence=SequenceNumber(2),
            previous=SequenceNumber(1),
            count=4,
            schema=fingerprint,
            columns=rich,
        )
    )


def _messages() -> Iterator[bytes]:
    for schema in SCHEMAS:
        yield json_line(schema, samples(schema, 3).messages()[2])
    yield b"base64:YWJj"


def _positions() -> Iterator[bytes]:
    request = subscribe_pb2.SubscribeRequest(sink="totals")
    yield request.SerializeToString()
    request.positions.add(partition=0, offset=8, highest={"totals/varying/0": 77})
    yield request.SerializeToString()


JSON_PARTS = (
    b'"',
    b"[",
    b"{",
    b"null",
    b"true",
    b"NaN",
    b"-NaN",
    b"Inf",
    b"1e999",
    b"-1",
    b"\\ud800",
    b"base64:",
    b'"number":',
)
HARNESSES = (
    Harness("frames", read_frame, _frames, (b"varying/", b"\xff\xff\xff\xff\x0f")),
    Harness("columns", read_columns, _columns, (b"\xff\xff\xff\xff", *floats())),
    Harness("records", read_record, _frames, (b"varying/", b"\xff\xff\xff\xff", *floats())),
    Harness("results", read_results, _results, (b"\xff\xff\xff\xff", b"dead-letters/")),
    Harness("messages", read_message, _messages, JSON_PARTS),
    Harness("positions", read_positions, _positions, (b"totals/varying/0", b"\xff\xff\xff\xff\x0f")),
)
