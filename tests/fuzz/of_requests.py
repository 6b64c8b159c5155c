"""Harnesses of what strangers send to a sender: the first bytes of a session, those behind a hello, rows of JSON."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from bettong.frames.frame import decode
from bettong.frames.text import json_line
from bettong.identifiers import Origin, SequenceNumber
from bettong.ingest.refusal import Refusal
from bettong.ingest.requests import HELLO_BYTES_MAX, NAME_CHARACTERS_MAX, check_sent, read_frame, read_hello
from bettong.ingest.session import Session
from bettong.schema.json_columns import ROWS_MIN
from bettong.schema.json_objects import JsonObjects
from bettong.schema.schema import Schema, schema_of
from bettong.v1.frame_pb2 import Rows
from bettong.v1.ingest_pb2 import Hello, IngestFrame, IngestRequest
from tests.fuzz.harness import Harness
from tests.fuzz.mutating import floats
from tests.fuzz.of_frames import JSON_PARTS, Fixed, Varying, samples
from tests.samples.json_rows import rows_of
from tests.samples.sender import (
    PARTITIONS,
    columns_frame,
    orders,
    readings,
    readings_frame,
    route,
    rows_frame,
)

_MESSAGES_MAX = 10_000
_NOW_NS = 1_700_000_000_000_000_000
_ROWS_MAX = 8
# Schemas of plain fields, and as many rows of each as are read at once.
_BESIDE = [
    (schema, [json_line(schema, each) for each in samples(schema, ROWS_MIN).messages()])
    for schema in (schema_of(Fixed), schema_of(Varying))
]
# A source by a key, whose columns are read and whose rows are decoded; and one whose messages have a time.
_ROUTES = (route(), readings())


def read_request(data: bytes) -> None:
    """A request as a hello, and as a frame of each source: what a session makes of it can be read again."""
    with contextlib.suppress(Refusal):
        hello = read_hello(data)
        assert len(data) <= HELLO_BYTES_MAX
        assert hello.client.isprintable()
        assert max(map(len, (hello.source, hello.stream, hello.client))) <= NAME_CHARACTERS_MAX
        _session(0, hello)
    with contextlib.suppress(Refusal):
        frame = read_frame(data, Origin("orders/feed"), messages_max=_MESSAGES_MAX)
        check_sent(frame, Origin("orders/feed"))
        for of in range(len(_ROUTES)):
            with contextlib.suppress(Refusal):
                _take(of, frame)


def _session(of: int, hello: Hello) -> Session:
    return Session(_ROUTES[of], hello, [-1] * PARTITIONS)


def _take(of: int, frame: IngestFrame) -> None:
    session = _session(of, Hello(source="orders", stream="feed"))
    session.open(0.0, _NOW_NS, SequenceNumber(0))
    taken = session.take(frame, 1.0, _NOW_NS)
    for each in taken.appends:
        assert decode(each.value).origin == session.origin


def _requests() -> Iterator[bytes]:
    hello = Hello(source="orders", stream="feed", acknowledged=7, client="tester")
    yield IngestRequest(hello=hello).SerializeToString()
    hello.ephemeral = True
    yield IngestRequest(hello=hello).SerializeToString()
    yield IngestRequest(frame=rows_frame(1, orders(range(5)))).SerializeToString()
    yield IngestRequest(frame=IngestFrame(sequence=2, rows=Rows(messages=[b"", b"x"]))).SerializeToString()
    yield IngestRequest(frame=columns_frame(_ROUTES[0].source, 3, orders(range(5)))).SerializeToString()
    yield IngestRequest(frame=readings_frame(4, (1, _NOW_NS), (2, _NOW_NS - 5))).SerializeToString()


def read_json_rows(data: bytes) -> None:
    """Rows among others, which are read at once, are what each is alone; the first byte says of which schema."""
    if not data:
        return
    schema, beside = _BESIDE[data[0] % len(_BESIDE)]
    rows = data[1:].split(b"\xfe")[:_ROWS_MAX]
    assert _read_json(schema, [*beside, *rows]) == _read_json(schema, beside) + [
        text for row in rows for text in _read_json(schema, [row])
    ]


def _read_json(schema: Schema, rows: list[bytes]) -> list[str]:
    return rows_of(schema, JsonObjects().decode(schema, rows))


def _json_rows() -> Iterator[bytes]:
    for index, (_, beside) in enumerate(_BESIDE):
        yield bytes([index]) + b"\xfe".join(beside[:3])
        yield bytes([index]) + beside[0][:-1] + b', "more":\xfe{"a": 1}}\xfe' + beside[1] + beside[2]


HARNESSES = (
    Harness("json-rows", read_json_rows, _json_rows, JSON_PARTS),
    Harness("requests", read_request, _requests, (b"\x0a", b"\x12", b"\xff\xff\xff\xff", *floats())),
)
