"""Frames of results as a processor writes them into the topic of a sink, for tests of all that reads them."""

from collections.abc import Sequence
from dataclasses import dataclass

import bettong
from bettong.application.application import Application
from bettong.application.external.destination import Destination
from bettong.application.on_error import DEAD_LETTER, OnError
from bettong.application.plan import Plan, plan
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, FrameKind, encode, tick_record
from bettong.identifiers import Origin, SequenceNumber
from bettong.schema.schema import schema_of
from bettong.v1.frame_pb2 import DeadLetter

# The clock of the log at a frame's number: one frame a millisecond, in 2023.
_START_NS = 1_700_000_000_000_000_000
_MS = 1_000_000


@dataclass(frozen=True)
class Note:
    """What the sinks of these tests deliver."""

    key: str
    number: int
    price: bettong.f64


def _key(note: Note) -> Note:
    return note


def application(
    name: str,
    *,
    notes_to: Destination | None = None,
    raw_to: Destination | None = None,
    on_error: OnError = DEAD_LETTER,
) -> Application:
    """An application with a sink `notes` of JSON and a sink `raw` of encoded bytes."""
    app = Application(name)
    notes = app.source("notes-in", schema=Note, key="key")
    notes.map(_key, name="same").sink("notes", to=notes_to, on_error=on_error)
    notes.map(_key, name="again").sink("raw", encoder=lambda note: repr(note).encode(), to=raw_to)
    return app


def planned(name: str = "app") -> Plan:
    """The plan of `application`."""
    return plan(application(name))


def rows(messages: Sequence[bytes], *, origin: str, sequence: int, previous: int, sent_ns: int = 0) -> bytes:
    """A frame of encoded results, or of dead letters."""
    return encode(
        Frame(
            origin=Origin(origin),
            sequence=SequenceNumber(sequence),
            previous=SequenceNumber(previous),
            count=len(messages),
            ingest_ns=_START_NS + sequence * _MS,
            sent_ns=sent_ns,
            rows=list(messages),
        )
    )


def columns(notes: Sequence[Note], *, origin: str, sequence: int, previous: int, sent_ns: int = 0) -> bytes:
    """A frame of results without an encoder."""
    schema = schema_of(Note)
    return encode(
        Frame(
            origin=Origin(origin),
            sequence=SequenceNumber(sequence),
            previous=SequenceNumber(previous),
            count=len(notes),
            schema=schema.fingerprint,
            ingest_ns=_START_NS + sequence * _MS,
            sent_ns=sent_ns,
            columns=Columns.of_messages(schema, notes).payload(),
        )
    )


def mark(*, origin: str, acknowledged: int) -> bytes:
    """A dead letter was sent again."""
    return encode(
        Frame(
            origin=Origin(origin),
            sequence=SequenceNumber(0),
            previous=SequenceNumber(acknowledged),
            kind=FrameKind.SENT_AGAIN,
            ingest_ns=_START_NS,
        )
    )


def tick(stream: str) -> bytes:
    """Only time passes."""
    return tick_record(stream, _START_NS)


def dead_letter(message: bytes, *, sequence: int = 7, index: int = 2) -> bytes:
    """A dead letter as it lies in a frame."""
    dead_letter = DeadLetter(
        computation="check",
        reason="ValueError: no",
        origin="orders/feed",
        sequence=sequence,
        index=index,
        message=message,
    )
    return dead_letter.SerializeToString()


def note_frame(partition: int, sequence: int) -> bytes:
    """A frame of the sink `notes` with two notes, whose numbers go on from those of the frame before."""
    notes = [Note(f"p{partition}", 2 * sequence + index, 0.5) for index in range(2)]
    return columns(notes, origin=f"notes/notes-in/{partition}", sequence=sequence, previous=sequence - 1)


def note_numbers(last: int) -> list[int]:
    """The numbers in the frames 1 to `last` of `note_frame`."""
    return list(range(2, 2 * last + 2))
