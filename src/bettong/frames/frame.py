"""A frame as a value, and its bytes in the log."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from typing import NamedTuple

from google.protobuf.message import DecodeError

from bettong.errors import FrameError
from bettong.identifiers import NO_SEQUENCE, Origin, ReferenceVersion, SequenceNumber, stream_of
from bettong.immutable import immutable
from bettong.v1 import frame_pb2

# The most that the envelope adds to a body: origin (two names and a number), numbers and tags.
ENVELOPE_BYTES_MAX = 1024

# Names in an application have up to 100 characters, of clients 128. Tables keep origins, and dead letters quote them,
# so a longer one would not fit where its frame did.
ORIGIN_CHARACTERS_MAX = 512

# The series of a reference table is the name of a join, up to 100 characters, and a fingerprint.
_SERIES_CHARACTERS_MAX = 128
_FINGERPRINT_BYTES = 32

# In the year 2262: durations are added to the log clock, which must stay within 64 bits.
CLOCK_NS_MAX = 2**63 - 1


class FrameKind(IntEnum):
    """The kind of a frame; see the proto."""

    DATA = frame_pb2.FRAME_KIND_DATA
    OPEN = frame_pb2.FRAME_KIND_OPEN
    TICK = frame_pb2.FRAME_KIND_TICK
    END = frame_pb2.FRAME_KIND_END
    SENT_AGAIN = frame_pb2.FRAME_KIND_SENT_AGAIN
    REFERENCE = frame_pb2.FRAME_KIND_REFERENCE
    REPARTITION = frame_pb2.FRAME_KIND_REPARTITION


_KINDS = {each.value: each for each in FrameKind}


class Repartition(NamedTuple):
    """The generation that begins after a record, and its number of partitions.

    `begins_stage`: there are no records before it, because the stage was added to the application later.
    """

    generation: int
    partitions: int
    begins_stage: bool = False


@immutable(kw_only=True)
class Frame:
    """One record of a topic. `columns` or `rows` holds the messages; fields as in the proto. See `frames.refused`."""

    origin: Origin
    sequence: SequenceNumber
    previous: SequenceNumber
    kind: FrameKind = FrameKind.DATA
    count: int = 0
    schema: int = 0
    ingest_ns: int = 0
    sent_ns: int = 0
    watermark_ns: int = 0
    rows: Sequence[bytes] | None = None
    columns: bytes | None = None
    refused: frame_pb2.RefusedMessages | None = None
    # Of a TICK, by origin. `idle`: those origins that are idle, with the last sequence that they sent here.
    watermarks: Mapping[Origin, int] = field(default_factory=dict)
    idle: Mapping[Origin, SequenceNumber] = field(default_factory=dict)
    event_times: bytes = b""
    message_watermarks: bytes = b""
    # Of kind REFERENCE.
    reference: ReferenceVersion | None = None
    # Of kind REPARTITION.
    repartition: Repartition | None = None
    generation: int = 0
    # Of kind END.
    kept: bool = False

    @property
    def stream(self) -> str:
        """The name of the stream that the messages belong to."""
        return stream_of(self.origin)


# Stands for a record that is not a frame.
UNREADABLE = Frame(origin=Origin("log/unreadable"), sequence=NO_SEQUENCE, previous=NO_SEQUENCE)


def tick_record(
    stream: str,
    ingest_ns: int,
    watermarks: Mapping[Origin, int] | None = None,
    idle: Mapping[Origin, SequenceNumber] | None = None,
    *,
    generation: int = 0,
) -> bytes:
    """A record without messages, to a stream or a stage, that advances time. It has no sequence; see `Frame`."""
    return encode(
        Frame(
            origin=Origin(f"{stream}/tick"),
            sequence=NO_SEQUENCE,
            previous=NO_SEQUENCE,
            kind=FrameKind.TICK,
            ingest_ns=ingest_ns,
            watermarks=watermarks or {},
            idle=idle or {},
            generation=generation,
        )
    )


def reference_record(stage: str, ingest_ns: int, version: ReferenceVersion) -> bytes:
    """A record without messages, to a stage: messages after it see that version. It has no sequence; see `Frame`."""
    return encode(
        Frame(
            origin=Origin(f"{stage}/reference"),
            sequence=NO_SEQUENCE,
            previous=NO_SEQUENCE,
            kind=FrameKind.REFERENCE,
            ingest_ns=ingest_ns,
            reference=version,
        )
    )


def repartition_record(stage: str, repartition: Repartition) -> bytes:
    """A record without messages, to a stage: records after it are of another generation. See `Frame`."""
    return encode(
        Frame(
            origin=Origin(f"{stage}/repartition"),
            sequence=NO_SEQUENCE,
            previous=NO_SEQUENCE,
            kind=FrameKind.REPARTITION,
            repartition=repartition,
        )
    )


def stored_version(version: ReferenceVersion) -> frame_pb2.ReferenceVersion:
    """The form in which records and snapshots hold a version."""
    return frame_pb2.ReferenceVersion(
        series=version.series, number=version.number, fingerprint=version.fingerprint
    )


def version_of(stored: frame_pb2.ReferenceVersion) -> ReferenceVersion:
    """The inverse of `stored_version`. Raises FrameError for an invalid version."""
    found = ReferenceVersion.parse(stored.series, f"{stored.number}-{stored.fingerprint.hex()}")
    if found is None or not 0 < len(stored.series) <= _SERIES_CHARACTERS_MAX:
        raise FrameError(
            f"version {stored.number} of a reference table of {len(stored.series)} characters, with"
            f" {len(stored.fingerprint)} bytes of a fingerprint: expected a number from 1 on, 1 to"
            f" {_SERIES_CHARACTERS_MAX} characters, {_FINGERPRINT_BYTES} bytes"
        )
    return found


def encode(frame: Frame) -> bytes:
    """The bytes of a frame."""
    envelope = frame_pb2.Frame(
        origin=frame.origin,
        sequence=frame.sequence,
        previous=frame.previous,
        kind=frame_pb2.FrameKind.ValueType(frame.kind),
        count=frame.count,
        schema=frame.schema,
        ingest_ns=frame.ingest_ns,
        sent_ns=frame.sent_ns,
        watermark_ns=frame.watermark_ns,
        event_times=frame.event_times,
        message_watermarks=frame.message_watermarks,
        generation=frame.generation,
        kept=frame.kept,
    )
    for origin, watermark_ns in frame.watermarks.items():
        envelope.watermarks.add(origin=origin, watermark_ns=watermark_ns, idle_after=frame.idle.get(origin))
    if frame.columns is not None:
        envelope.columns = frame.columns
    elif frame.rows is not None:
        envelope.rows.messages.extend(frame.rows)
    if frame.refused is not None:
        envelope.refused.CopyFrom(frame.refused)
    if frame.reference is not None:
        envelope.reference.CopyFrom(stored_version(frame.reference))
    if frame.repartition is not None:
        envelope.repartition.CopyFrom(frame_pb2.Repartition(**frame.repartition._asdict()))
    return envelope.SerializeToString()


def decode(data: bytes) -> Frame:
    """Reads a frame. Raises FrameError for bytes that are not a frame, or that break the contract."""
    try:
        envelope = frame_pb2.Frame.FromString(data)
    except DecodeError as error:
        raise FrameError(f"{len(data)} bytes are no frame: {error}") from None
    # Each field is read once: protobuf's getters cost as much as a function call.
    origin, sequence, previous = envelope.origin, envelope.sequence, envelope.previous
    ingest_ns, watermark_ns = envelope.ingest_ns, envelope.watermark_ns
    kind, watermarks = _KINDS.get(envelope.kind), envelope.watermarks
    if (
        kind is None
        or len(origin) > ORIGIN_CHARACTERS_MAX
        or "/" not in origin
        or ingest_ns > CLOCK_NS_MAX
        or watermark_ns > CLOCK_NS_MAX
    ):
        raise FrameError(_contract_error(envelope))
    body = envelope.WhichOneof("body")
    refused = envelope.refused if envelope.HasField("refused") else None
    if kind is FrameKind.DATA:
        if body is None and refused is None:
            raise FrameError(f"frame {sequence} of {origin!r}: it has no messages")
        if sequence <= previous:
            raise FrameError(f"frame {sequence} of {origin!r}: previous {previous} is not lower")
    if watermarks:
        _check_watermarks(envelope)
    return Frame(
        origin=Origin(origin),
        sequence=SequenceNumber(sequence),
        previous=SequenceNumber(previous),
        kind=kind,
        count=envelope.count,
        schema=envelope.schema,
        ingest_ns=ingest_ns,
        sent_ns=envelope.sent_ns,
        watermark_ns=watermark_ns,
        rows=envelope.rows.messages if body == "rows" else None,
        columns=envelope.columns if body == "columns" else None,
        refused=refused,
        watermarks={Origin(each.origin): each.watermark_ns for each in watermarks} if watermarks else {},
        idle=_idle(watermarks) if watermarks else {},
        event_times=envelope.event_times,
        message_watermarks=envelope.message_watermarks,
        reference=version_of(envelope.reference) if kind is FrameKind.REFERENCE else None,
        repartition=_repartition(envelope) if kind is FrameKind.REPARTITION else None,
        generation=envelope.generation,
        kept=envelope.kept,
    )


def _repartition(envelope: frame_pb2.Frame) -> Repartition:
    found = envelope.repartition
    return Repartition(found.generation, found.partitions, found.begins_stage)


def _contract_error(envelope: frame_pb2.Frame) -> str:
    """The error text for invalid first fields of a frame."""
    origin, frame = envelope.origin, f"frame {envelope.sequence}"
    if len(origin) > ORIGIN_CHARACTERS_MAX:
        return f"{frame}: its origin has {len(origin)} characters, at most {ORIGIN_CHARACTERS_MAX}"
    if envelope.ingest_ns > CLOCK_NS_MAX:
        return f"{frame} of {origin!r}: taken in at {envelope.ingest_ns} ns"
    if envelope.watermark_ns > CLOCK_NS_MAX:
        return f"{frame} of {origin!r}: its watermark is {envelope.watermark_ns} ns"
    if envelope.kind not in _KINDS:
        return f"frame of {origin!r}: kind {envelope.kind} is unknown"
    return f"{frame}: origin {origin!r} is no <stream>/<who>"


def _idle(watermarks: Sequence[frame_pb2.OriginWatermark]) -> dict[Origin, SequenceNumber]:
    return {
        Origin(each.origin): SequenceNumber(each.idle_after)
        for each in watermarks
        if each.HasField("idle_after")
    }


def _check_watermarks(envelope: frame_pb2.Frame) -> None:
    """Checks the watermarks of a TICK. Raises FrameError for those that no table of origins can keep."""
    for each in envelope.watermarks:
        if len(each.origin) > ORIGIN_CHARACTERS_MAX or each.watermark_ns > CLOCK_NS_MAX:
            raise FrameError(
                f"TICK of {envelope.origin!r}: watermark {each.watermark_ns} ns of an origin of {len(each.origin)}"
                f" characters; expected at most {CLOCK_NS_MAX} ns and {ORIGIN_CHARACTERS_MAX} characters"
            )
