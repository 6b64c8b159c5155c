r"""An application that can go wrong everywhere, and frames for it: what the tests of workers share.

readings --merge--> tally (stateful, compiled or not) --> totals
limits   --/              \--> key_by place --> latest (stateful) --> latest
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

import bettong
from bettong import Application, Width
from bettong.application.plan import Plan, plan
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, FrameKind, decode, encode, tick_record
from bettong.identifiers import Origin, SequenceNumber
from bettong.schema.schema import schema_of
from bettong.v1.frame_pb2 import DeadLetter
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import StageProgram, program

FRAME_BYTES_MAX = 64 * 1024


@dataclass(slots=True)
class Reading:
    """Of a meter. A negative value is a mistake that the functions below answer with an exception."""

    meter: Annotated[str, Width(6)]
    value: bettong.i32


@dataclass(slots=True)
class Limit:
    """From which total on a meter tells."""

    meter: Annotated[str, Width(6)]
    least: bettong.i64


@dataclass(slots=True)
class Total:
    """Of a meter, with a place to partition by anew. `small` holds it while it fits a byte."""

    meter: Annotated[str, Width(6)]
    place: bettong.u8
    total: bettong.i64
    small: bettong.u8


@dataclass(slots=True)
class Kept:
    """What is kept of a meter."""

    total: int = 0
    least: int = 0
    count: int = 0


@dataclass(slots=True)
class Last:
    """What is kept of a place."""

    count: int = 0


@dataclass(slots=True)
class Latest:
    """The newest total of a place, and how many came before."""

    place: bettong.u8
    meter: Annotated[str, Width(6)]
    total: bettong.i64
    before: bettong.i64


@bettong.compiled
def on_reading(reading: Reading, kept: Kept) -> Total | None:
    """Adds up; raises ZeroDivisionError for -1, ValueError for other negatives, after counting them."""
    kept.count += 1
    if reading.value < 0:
        kept.total += 1000 // (reading.value + 1)
        raise ValueError("a negative reading")
    kept.total += reading.value
    if kept.total < kept.least:
        return None
    return Total(reading.meter, kept.count % 4, kept.total, kept.total)


@bettong.compiled
def on_limit(limit: Limit, kept: Kept) -> None:
    """Sets the limit."""
    kept.least = limit.least


def newest(total: Total, last: Last) -> Latest:
    """Remembers how many totals a place has had."""
    last.count += 1
    return Latest(total.place, total.meter, total.total, last.count - 1)


def meters(ttl: timedelta | None = None) -> Plan:
    """The application of the module's docstring. `ttl`: of what is kept of a meter."""
    return plan(meters_application(ttl))


def meters_application(ttl: timedelta | None = None) -> Application:
    """The same, not planned yet."""
    app = Application("meters")
    readings = app.source("readings", schema=Reading, key="meter")
    limits = app.source("limits", schema=Limit, key="meter")
    tally = readings.merge(limits).stateful(
        {readings: on_reading, limits: on_limit}, state=Kept, name="tally", ttl=ttl
    )
    tally.sink("totals")
    tally.key_by("place", name="places").stateful(newest, state=Last).sink("latest")
    return app


def worker(
    of: StageProgram, *, partition: int = 0, partitions: int = 1, frame_bytes_max: int = FRAME_BYTES_MAX
) -> PartitionWorker:
    """A new worker of an application named `meters`."""
    return PartitionWorker(of, Assignment("meters", partition, partitions, frame_bytes_max))


def python(app: Application) -> StageProgram:
    """The only stage of an application, as plain Python."""
    (stage,) = plan(app).stages
    return program(stage, compiled=False)


def data(
    origin: str, sequence: int, messages: Sequence[Any], *, previous: int | None = None, **more: Any
) -> bytes:
    """A frame of messages of one class."""
    schema = schema_of(type(messages[0]))
    return encode(
        Frame(
            origin=Origin(origin),
            sequence=SequenceNumber(sequence),
            previous=SequenceNumber(sequence - 1 if previous is None else previous),
            count=len(messages),
            schema=schema.fingerprint,
            columns=Columns.of_messages(schema, messages).payload(),
            **more,
        )
    )


def opening(origin: str, acknowledged: int, *, ingest_ns: int = 0) -> bytes:
    """The start of a client's session."""
    return encode(
        Frame(
            origin=Origin(origin),
            sequence=SequenceNumber(acknowledged),
            previous=SequenceNumber(acknowledged),
            kind=FrameKind.OPEN,
            ingest_ns=ingest_ns,
        )
    )


def tick(ingest_ns: int) -> bytes:
    """Nothing but time."""
    return tick_record("log", ingest_ns)


def fold(of: PartitionWorker, values: Iterable[bytes]) -> list[OutputRecord]:
    """Folds records from where the worker stands; what they lead to."""
    return [record for value in values for record in of.fold(of.next_offset, value)]


def dead_letters(records: Iterable[OutputRecord]) -> list[DeadLetter]:
    """The dead letters among records."""
    return [
        DeadLetter.FromString(row)
        for record in records
        if record.topic == "meters.dead-letters"
        for row in decode(record.value).rows or ()
    ]


def results(records: Iterable[OutputRecord], topic: str, message: type[Any]) -> list[Any]:
    """The messages among records of a topic."""
    return [each for frame in frames(records, topic) for each in _messages(frame, message)]


def frames(records: Iterable[OutputRecord], topic: str) -> Iterator[Frame]:
    """The frames among records of a topic."""
    return (decode(record.value) for record in records if record.topic == topic)


def _messages(frame: Frame, message: type[Any]) -> list[Any]:
    schema = schema_of(message)
    assert frame.schema == schema.fingerprint
    assert frame.columns is not None
    return Columns.of_payload(schema, frame.columns).messages()
