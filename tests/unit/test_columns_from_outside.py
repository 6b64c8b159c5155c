"""Columns with wrong buffers are refused by both readers, before anything reads them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong import Application
from bettong.application.plan import plan
from bettong.errors import FrameError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, decode, encode
from bettong.identifiers import Origin, SequenceNumber
from bettong.schema.schema import schema_of
from bettong.v1.frame_pb2 import DeadLetter
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import program

READERS = [Columns.of_payload, Columns.of_external_payload]


@dataclass
class Note:
    """A text of any length between fields of a fixed width."""

    number: bettong.i64
    text: str
    blob: bytes


SCHEMA = schema_of(Note)
NOTES = [Note(index, f"text {index}", b"b" * index) for index in range(5)]
# Where each text begins in their data, and where the last one ends; likewise of `blob`.
TEXT_OFFSETS = struct.pack("<6i", 0, 6, 12, 18, 24, 30)
BLOB_OFFSETS = struct.pack("<6i", 0, 0, 1, 3, 6, 10)


def payload() -> bytes:
    """A good one."""
    return Columns.of_messages(SCHEMA, NOTES).payload()


def replaced(old: bytes, new: bytes) -> bytes:
    """The good one with some bytes changed, which are in it once."""
    good = payload()
    assert good.count(old) == 1
    return good.replace(old, new)


def serialized(batch: pa.RecordBatch, compression: str | None = None) -> bytes:
    """The message of a record batch, as a writer of another program would make it."""
    options = pa.ipc.IpcWriteOptions(compression=compression)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as stream:
        stream.write_batch(batch)
    reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    reader.read_next_message()
    found: bytes = reader.read_next_message().serialize().to_pybytes()
    return found


def lies() -> Iterator[tuple[str, bytes]]:
    """Payloads that are wrong in one place."""
    far = 2**30
    for name, offsets in {
        "last text ends behind the data": (0, 6, 12, 18, 24, far),
        "a text ends behind the data": (0, 6, far, 18, 24, 30),
        "texts begin before the data": (-far, 6, 12, 18, 24, 30),
        "offsets go back": (0, 12, 6, 18, 24, 30),
        "all are negative": (-6, -5, -4, -3, -2, -1),
    }.items():
        yield name, replaced(TEXT_OFFSETS, struct.pack("<6i", *offsets))
    yield "blobs end behind the data", replaced(BLOB_OFFSETS, struct.pack("<6i", 0, 0, 1, 3, 6, far))
    yield "text is no UTF-8", replaced(b"text 3", b"tex\xff 3")
    columns = Columns.of_messages(SCHEMA, NOTES).batch().columns
    for rows in (6, 7, 1000, 2**20, 2**40, 2**61, -1):
        # The batch and each of its columns say how many rows there are.
        yield f"{rows} rows", payload().replace(struct.pack("<q", 5), struct.pack("<q", rows))
    names = SCHEMA.arrow.names
    nulls = pa.array([1, None, 3, 4, 5], pa.int64())
    yield "nulls", serialized(pa.RecordBatch.from_arrays([nulls, *columns[1:]], names))
    some = pa.array(["a", None, "c", "d", "e"])
    yield "texts that are null", serialized(pa.RecordBatch.from_arrays([columns[0], some, columns[2]], names))
    many = Columns.of_messages(SCHEMA, [Note(7, "t" * 100, b"b" * 100)] * 500).batch()
    yield "compressed", serialized(many, "lz4")
    yield "compressed otherwise", serialized(many, "zstd")
    narrow = pa.array([1, 2, 3, 4, 5], pa.uint8())
    yield "a narrower field", serialized(pa.RecordBatch.from_arrays([narrow, *columns[1:]], names))
    yield "a column is missing", serialized(pa.RecordBatch.from_arrays(columns[:2], names[:2]))
    yield "a column more", serialized(pa.RecordBatch.from_arrays([*columns, narrow], [*names, "more"]))
    yield "a schema", SCHEMA.arrow.serialize().to_pybytes()
    sink = pa.BufferOutputStream()
    encoded = pa.RecordBatch.from_arrays([pa.array(["a", "b"]).dictionary_encode()], ["text"])
    with pa.ipc.new_stream(sink, encoded.schema) as stream:
        stream.write_batch(encoded)
    reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    reader.read_next_message()
    yield "a dictionary", reader.read_next_message().serialize().to_pybytes()


LIES = dict(lies())


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("name", LIES)
def test_buffers_that_lie_are_refused_before_they_are_looked_into(name: str, read: type) -> None:
    with pytest.raises(FrameError, match="columns of Note"):
        read(SCHEMA, LIES[name])


@pytest.mark.parametrize("read", READERS)
def test_what_does_not_lie_is_read(read: type) -> None:
    assert read(SCHEMA, payload()).messages() == NOTES
    part = Columns.of_messages(SCHEMA, NOTES).slice(1, 4).payload()
    assert read(SCHEMA, part).messages() == NOTES[1:4]


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, len(payload()) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_damaged_columns_are_refused_or_can_be_read_to_the_end(changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(payload())
    for offset, value in changes:
        damaged[offset] = value
    for read in READERS:
        try:
            columns = read(SCHEMA, bytes(damaged))
        except FrameError:
            continue
        assert len(columns.messages()) == columns.length
        assert read(SCHEMA, columns.payload()).messages() == columns.messages()


def shouted(note: Note) -> Note:
    """The same, louder."""
    return Note(note.number, note.text.upper(), note.blob)


def frame(sequence: int, columns: bytes, count: int = 5) -> bytes:
    """A record of the stage's log."""
    return encode(
        Frame(
            origin=Origin("notes/a"),
            sequence=SequenceNumber(sequence),
            previous=SequenceNumber(sequence - 1),
            count=count,
            schema=SCHEMA.fingerprint,
            columns=columns,
        )
    )


RECORDS = {name: frame(1, lie) for name, lie in LIES.items()}
RECORDS["other counts"] = frame(1, payload(), count=4)


@pytest.mark.parametrize("name", RECORDS)
def test_a_worker_turns_the_record_into_a_dead_letter_and_goes_on(name: str) -> None:
    app = Application("notes-app")
    app.source("notes", schema=Note, key="number").map(shouted).sink("loud")
    stage = program(plan(app).stages[0], compiled=False)
    worker = PartitionWorker(stage, Assignment("notes-app", 0, 1, 64 * 1024))
    record = RECORDS[name]
    (refused,) = worker.fold(0, record)
    assert refused.topic == "notes-app.dead-letters"
    dead_letter = DeadLetter.FromString((decode(refused.value).rows or [b""])[0])
    assert ("columns of Note" if name in LIES else "5 messages, but the frame says 4") in dead_letter.reason
    assert (dead_letter.message, dead_letter.as_received) == (record[: 32 * 1024], True)
    (result,) = worker.fold(1, frame(2, payload()))
    assert result.count == 5
