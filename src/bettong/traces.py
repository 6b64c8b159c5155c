"""Traces of sampled frames, from the client to the sink: which frames, by which ids, and what a span says. Pure.

    client     send     from the call to the receipt                                the root, where clients trace
    sender     accept   from the frame's arrival until the log has all its records  else the root
      |          append   a record, until the log has it
      |            | traceparent
    worker     fold     from the record's turn until its output is handed to the log
      |          | traceparent
    receiver   deliver  from reading the result until a destination, or a subscriber, has it

Everything about a trace derives from the frame, so services keep no state for it, and a repeated step (a resend, a
replay, a zombie) reports the same span again. The lower half of a trace's id is a hash of the frame's origin and
sequence, and decides whether the frame is sampled, as OpenTelemetry's TraceIdRatioBased does. The upper half also
hashes `sent_ns`, so that another run with the same numbers has other traces. A client sends no trace context, for the
sender computes the same. A worker numbers its results anew, so from the sender on the records of a sampled frame have a
header `traceparent` (W3C Trace Context, level 1). Records of other frames have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from hashlib import blake2b
from typing import NamedTuple

from bettong.identifiers import Origin, PartitionId, SequenceNumber, TopicPartition, stream_of

# Metadata of a client's session with a sender: the share of its frames that the client traces itself.
RATIO_METADATA = "bettong-trace-ratio"

_HALF_BYTES = 8
_HALVES = 1 << (8 * _HALF_BYTES)
_SAMPLED = 0x01
# Later versions may append fields; version ff is invalid.
_TRACEPARENT = re.compile(rb"(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_NO_TRACE, _NO_SPAN = bytes(2 * _HALF_BYTES), bytes(_HALF_BYTES)


class TraceContext(NamedTuple):
    """The context of a span of a sampled trace, for its children. Ids of 16 and 8 bytes."""

    trace_id: bytes
    span_id: bytes

    @property
    def traceparent(self) -> bytes:
        """The value of a record's header."""
        return f"00-{self.trace_id.hex()}-{self.span_id.hex()}-01".encode()

    @classmethod
    def parse(cls, traceparent: bytes) -> TraceContext | None:
        """Parses a header; None if the trace is not sampled or invalid: others may write to these topics."""
        found = _TRACEPARENT.fullmatch(traceparent)
        if found is None or (found[1] == b"00" and found[5]):
            return None
        context = cls(*(bytes.fromhex(each.decode()) for each in found.group(2, 3)))
        if context.trace_id == _NO_TRACE or context.span_id == _NO_SPAN:
            return None
        return context if int(found[4], 16) & _SAMPLED else None

    def span(self, *what: str | int) -> TraceContext:
        """The context of a child span. Different `what` have different ids."""
        return TraceContext(self.trace_id, _hash(self.trace_id, self.span_id, *map(_bytes, what)))


class FrameSampling(NamedTuple):
    """Decides which frames are traced: about `ratio` of each origin's, 0 to 1, and the same ones in every service."""

    ratio: float

    def trace_id(self, origin: Origin, sequence: SequenceNumber, sent_ns: int) -> bytes | None:
        """The trace id of a client's frame; None if it is not sampled. `sent_ns`: as the client wrote it, 0 for none.

        A frame that is sampled with some ratio is also sampled with each higher one.
        """
        lower = _hash(_bytes(origin), _bytes(sequence))
        if int.from_bytes(lower) >= round(self.ratio * _HALVES):
            return None
        return _hash(lower, _bytes(sent_ns)) + lower

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata that a client sends to a sender."""
        return ((RATIO_METADATA, repr(self.ratio)),) if self.ratio else ()

    @classmethod
    def of_metadata(cls, ratio: str) -> FrameSampling:
        """The inverse, from the value of RATIO_METADATA: no sampling if it is invalid."""
        try:
            found = float(ratio)
        except ValueError:
            return NO_SAMPLING
        return cls(found) if 0 <= found <= 1 else NO_SAMPLING


NO_SAMPLING = FrameSampling(0.0)


def client_context(trace_id: bytes) -> TraceContext:
    """The context of the span of the client that sends the frame."""
    return TraceContext(trace_id, _hash(trace_id, b"send"))


class SpanKind(Enum):
    """OpenTelemetry's kinds of spans."""

    SERVER = "server"
    PRODUCER = "producer"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """A span that a service reports. Unix ns. `parent`: its parent's id, empty for a root. `failed`: why it failed."""

    name: str
    kind: SpanKind
    context: TraceContext
    parent: bytes
    begun_ns: int
    ended_ns: int
    attributes: Mapping[str, str | int] = field(default_factory=dict)
    failed: str = ""


# Exports a span. Returns at once. Thread-safe.
Report = Callable[[TraceSpan], None]


def send_span(
    trace_id: bytes, origin: Origin, sequence: SequenceNumber, *, messages: int, begun_ns: int, ended_ns: int
) -> TraceSpan:
    """The span of a client that sent a frame and got its receipt."""
    name, about = f"send {stream_of(origin)}", _frame(origin, sequence) | {MESSAGES: messages}
    return TraceSpan(name, SpanKind.PRODUCER, client_context(trace_id), b"", begun_ns, ended_ns, about)


def accept_context(trace_id: bytes) -> TraceContext:
    """The context of the span of the sender that accepts the frame."""
    return client_context(trace_id).span("accept")


def accept_span(
    trace_id: bytes,
    origin: Origin,
    sequence: SequenceNumber,
    *,
    client_traces: bool,
    messages: int,
    begun_ns: int,
    ended_ns: int,
    failed: str,
) -> TraceSpan:
    """The span of a sender that accepts a frame. `client_traces`: whether the client reports a span, too."""
    return TraceSpan(
        f"accept {stream_of(origin)}",
        SpanKind.SERVER,
        accept_context(trace_id),
        client_context(trace_id).span_id if client_traces else b"",
        begun_ns,
        max(begun_ns, ended_ns),
        _frame(origin, sequence) | {MESSAGES: messages},
        failed,
    )


def append_context(accept: TraceContext, to: TopicPartition) -> TraceContext:
    """The context for the header of one record of a frame that a sender has accepted."""
    return accept.span("append", *to)


def append_span(
    accept: TraceContext, record: RecordPosition, *, begun_ns: int, ended_ns: int, failed: str
) -> TraceSpan:
    """The span of a sender that appends a record; its offset is below 0 if that failed."""
    return TraceSpan(
        f"append {record.topic}",
        SpanKind.PRODUCER,
        append_context(accept, TopicPartition(record.topic, record.partition)),
        accept.span_id,
        begun_ns,
        max(begun_ns, ended_ns),
        record.attributes,
        failed,
    )


def fold_span(
    before: TraceContext,
    record: RecordPosition,
    partition: PartitionId,
    *,
    messages: int,
    results: int,
    begun_ns: int,
    ended_ns: int,
) -> TraceSpan:
    """The span of a worker that folds a record. `before`: from its header. Its context is its output's header."""
    about = record.attributes | {
        MESSAGES: messages,
        "bettong.stage": partition.stage,
        "bettong.records": results,
    }
    return TraceSpan(
        f"fold {partition.stage}",
        SpanKind.CONSUMER,
        before.span("fold", *partition, record.offset),
        before.span_id,
        begun_ns,
        max(begun_ns, ended_ns),
        about,
    )


def deliver_span(
    before: TraceContext,
    record: RecordPosition,
    sink: str,
    to: str,
    *,
    messages: int,
    begun_ns: int,
    ended_ns: int,
) -> TraceSpan:
    """The span of a delivery of a result to a destination. `to`: its name for people. `before`: from the header."""
    about = record.attributes | {MESSAGES: messages, "bettong.sink": sink, "bettong.destination": to}
    return TraceSpan(
        f"deliver {sink}",
        SpanKind.CONSUMER,
        before.span("deliver", sink, to, record.partition, record.offset),
        before.span_id,
        begun_ns,
        max(begun_ns, ended_ns),
        about,
    )


class RecordPosition(NamedTuple):
    """The position of a record in the log."""

    topic: str
    partition: int
    offset: int

    @property
    def attributes(self) -> dict[str, str | int]:
        """A span's attributes, by OpenTelemetry's conventions for messaging."""
        found: dict[str, str | int] = {
            "messaging.system": "kafka",
            "messaging.destination.name": self.topic,
            "messaging.destination.partition.id": str(self.partition),
        }
        return found | {"messaging.kafka.offset": self.offset} if self.offset >= 0 else found


MESSAGES = "messaging.batch.message_count"


def _frame(origin: Origin, sequence: SequenceNumber) -> dict[str, str | int]:
    return {"bettong.origin": origin, "bettong.sequence": sequence}


def _bytes(value: str | int) -> bytes:
    return str(value).encode()


def _hash(*parts: bytes) -> bytes:
    """8 bytes. Each part is hashed with its length, so that lists that differ only in their splits differ."""
    return blake2b(b"".join(b"%d:%s" % (len(part), part) for part in parts), digest_size=_HALF_BYTES).digest()
