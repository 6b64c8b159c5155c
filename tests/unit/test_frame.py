"""The frame: its bytes, and what is refused before it is used."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.errors import FrameError
from bettong.frames.frame import (
    CLOCK_NS_MAX,
    ENVELOPE_BYTES_MAX,
    ORIGIN_CHARACTERS_MAX,
    Frame,
    FrameKind,
    decode,
    encode,
)
from bettong.identifiers import Origin, SequenceNumber
from bettong.v1 import frame_pb2

U64 = st.integers(0, 2**64 - 1)
BODY = st.one_of(
    st.builds(lambda rows: {"rows": rows}, st.lists(st.binary(max_size=20), max_size=5)),
    st.builds(lambda columns: {"columns": columns}, st.binary(max_size=50)),
)


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    previous = draw(st.integers(0, 2**64 - 2))
    return Frame(
        origin=Origin(draw(st.text(max_size=20)) + "/" + draw(st.text(max_size=20))),
        sequence=SequenceNumber(draw(st.integers(previous + 1, 2**64 - 1))),
        previous=SequenceNumber(previous),
        count=draw(st.integers(0, 2**32 - 1)),
        schema=draw(U64),
        ingest_ns=draw(st.integers(0, CLOCK_NS_MAX)),
        sent_ns=draw(U64),
        watermark_ns=draw(st.integers(0, CLOCK_NS_MAX)),
        event_times=draw(st.binary(max_size=20)),
        message_watermarks=draw(st.binary(max_size=20)),
        **draw(BODY),
    )


def plain(frame: Frame) -> tuple[object, ...]:
    rows = None if frame.rows is None else list(frame.rows)
    return (
        frame.origin, frame.sequence, frame.previous, frame.kind, frame.count, frame.schema,
        frame.ingest_ns, frame.sent_ns, frame.watermark_ns, rows, frame.columns,
        frame.event_times, frame.message_watermarks,
    )  # fmt: skip


@given(frames())
def test_a_frame_comes_back_as_it_went_in(frame: Frame) -> None:
    assert plain(decode(encode(frame))) == plain(frame)


@pytest.mark.parametrize("kind", [FrameKind.OPEN, FrameKind.TICK])
def test_frames_without_messages_need_no_growing_numbers(kind: FrameKind) -> None:
    frame = Frame(
        origin=Origin("a/b"), sequence=SequenceNumber(0), previous=SequenceNumber(7), kind=kind, ingest_ns=3
    )
    assert plain(decode(encode(frame))) == plain(frame)


def test_the_stream_is_the_first_part_of_the_origin() -> None:
    assert (
        Frame(origin=Origin("out/check/17"), sequence=SequenceNumber(1), previous=SequenceNumber(0)).stream
        == "out"
    )


@given(st.binary(max_size=200))
def test_any_bytes_are_a_frame_or_refused(data: bytes) -> None:
    with contextlib.suppress(FrameError):
        decode(data)


@given(frames(), st.data())
def test_a_frame_with_a_flipped_bit_is_a_frame_or_refused(frame: Frame, data: st.DataObject) -> None:
    encoded = bytearray(encode(frame))
    bit = data.draw(st.integers(0, len(encoded) * 8 - 1))
    encoded[bit // 8] ^= 1 << bit % 8
    with contextlib.suppress(FrameError):
        decode(bytes(encoded))


def envelope(**fields: object) -> bytes:
    given = {"origin": "a/b", "sequence": 2, "previous": 1, "kind": frame_pb2.FRAME_KIND_DATA, "columns": b""}
    return frame_pb2.Frame(**(given | fields)).SerializeToString()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xff\xff", "2 bytes are no frame"),
        (b"", "kind 0 is unknown"),
        (envelope(kind=9), "kind 9 is unknown"),
        (envelope(kind=0), "kind 0 is unknown"),
        (envelope(origin="nobody"), "origin 'nobody' is no <stream>/<who>"),
        (envelope(columns=None), "it has no messages"),
        (envelope(previous=2), "previous 2 is not lower"),
        (envelope(previous=3), "previous 3 is not lower"),
        (envelope(sequence=0, previous=0), "previous 0 is not lower"),
    ],
)
def test_what_breaks_the_contract_is_refused_with_the_reason(data: bytes, text: str) -> None:
    with pytest.raises(FrameError) as caught:
        decode(data)
    assert text in str(caught.value)


def test_no_envelope_outgrows_its_limit() -> None:
    """The longest names: a target and a stream of 100 characters, and a partition."""
    largest = Frame(
        origin=Origin(f"{'t' * 100}/{'s' * 128}/4095"),
        sequence=SequenceNumber(2**64 - 1),
        previous=SequenceNumber(2**64 - 2),
        count=2**32 - 1,
        schema=2**64 - 1,
        ingest_ns=2**64 - 1,
        sent_ns=2**64 - 1,
        watermark_ns=2**64 - 1,
        columns=b"x" * 2**20,
    )
    assert len(encode(largest)) - 2**20 < ENVELOPE_BYTES_MAX


@pytest.mark.parametrize(
    ("of", "says"),
    [
        ({"watermark_ns": CLOCK_NS_MAX + 1}, "its watermark is 9223372036854775808 ns"),
        ({"watermarks": {Origin("a/b"): CLOCK_NS_MAX + 1}}, "watermark 9223372036854775808 ns"),
        ({"watermarks": {Origin("a/" + "b" * ORIGIN_CHARACTERS_MAX): 1}}, "an origin of 514 characters"),
    ],
)
def test_a_watermark_that_no_table_could_keep_is_refused(of: dict[str, Any], says: str) -> None:
    with pytest.raises(FrameError, match=says):
        decode(
            encode(
                Frame(
                    origin=Origin("a/tick"),
                    sequence=SequenceNumber(0),
                    previous=SequenceNumber(0),
                    kind=FrameKind.TICK,
                    **of,
                )
            )
        )


def test_an_origin_that_would_fit_no_table_and_no_dead_letter_is_refused() -> None:
    longest = "a/" + "b" * (ORIGIN_CHARACTERS_MAX - 2)
    assert (
        decode(
            encode(
                Frame(origin=Origin(longest), sequence=SequenceNumber(1), previous=SequenceNumber(0), rows=[])
            )
        ).origin
        == longest
    )
    with pytest.raises(FrameError, match="its origin has 513 characters, at most 512"):
        decode(
            encode(
                Frame(
                    origin=Origin(longest + "b"),
                    sequence=SequenceNumber(1),
                    previous=SequenceNumber(0),
                    rows=[],
                )
            )
        )


def test_a_clock_that_64_bits_cannot_be_added_to_is_refused() -> None:
    with pytest.raises(FrameError, match=f"taken in at {2**63} ns"):
        decode(
            encode(
                Frame(
                    origin=Origin("a/b"),
                    sequence=SequenceNumber(1),
                    previous=SequenceNumber(0),
                    rows=[],
                    ingest_ns=2**63,
                )
            )
        )
