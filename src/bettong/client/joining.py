"""Small frames joined while they wait, so that a message that is sent by itself does not cost a frame. Pure.

    sent by 5 calls          1    2  3    4  5         frames 1 and 3 are in flight, 5 waits
    frames                   1    3       5

A small frame goes at once when none went just before. Else it waits for a moment, and while several are without a
receipt, as TCP's do (Nagle, RFC 896). A joined frame has the number of its last part. What was sent once is never
joined: under a number that a sender may have seen there must be the same messages for ever. So only the frames of a
stream that nobody feeds again can be joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from bettong.v1.ingest_pb2 import IngestFrame, IngestRequest, Welcome

# From here on a frame costs by what is in it, and not by what a frame costs.
_MESSAGES_MAX = 500
_BYTES_MAX = 32 * 1024

# The sender takes no frame whose rows become too many bytes as columns. Joined rows may grow this many times, and
# fields of a fixed width take at most half of a frame.
_GROWTH = 16
_FIXED_PART = 2

# So long after a frame a small one follows at the soonest. Receipts alone do not do: what is answered soon is followed
# soon, by less, until small frames fill the machine.
REST_S = 0.004
# A small frame waits while so many are in flight: where each takes long, they become larger.
IN_FLIGHT = 4


class PendingFrame:
    """A frame that has no receipt yet. `sent`: a sender may have seen it."""

    __slots__ = ("messages", "parts", "sent", "size")

    def __init__(self, request: IngestRequest, messages: int) -> None:
        self.parts = [request]
        self.messages = messages
        self.size = _size(request.frame)
        self.sent = False

    @property
    def sequence(self) -> int:
        """Of its last part."""
        return self.parts[-1].frame.sequence


@dataclass(frozen=True, slots=True)
class Joining:
    """Which frames are joined, by the limits and the schema of a source."""

    schema: pa.Schema
    messages_max: int
    bytes_max: int

    @classmethod
    def of(cls, welcome: Welcome) -> Joining:
        """As a sender said it."""
        schema = pa.ipc.read_schema(pa.py_buffer(welcome.source.arrow_schema))
        width = max(1, fixed_bytes(schema))
        return cls(
            schema,
            min(
                _MESSAGES_MAX,
                welcome.frame_messages_max or _MESSAGES_MAX,
                welcome.frame_bytes_max // _FIXED_PART // width,
            ),
            min(_BYTES_MAX, welcome.frame_bytes_max // _GROWTH),
        )

    def waits(self, last: PendingFrame) -> bool:
        """Whether the last frame is one that others may be joined to."""
        return not last.sent and last.messages < self.messages_max and last.size < self.bytes_max

    def join(self, last: PendingFrame, new: PendingFrame) -> bool:
        """Joins a new frame to the last one; False where it must be one by itself."""
        alike = last.parts[-1].frame.WhichOneof("body") == new.parts[-1].frame.WhichOneof("body")
        fits = last.messages + new.messages <= self.messages_max and last.size + new.size <= self.bytes_max
        if last.sent or not (alike and fits):
            return False
        last.parts += new.parts
        last.messages += new.messages
        last.size += new.size
        return True

    def request(self, frame: PendingFrame) -> IngestRequest:
        """The frame as it goes, from now on always."""
        if len(frame.parts) > 1:
            frame.parts = [joined([part.frame for part in frame.parts], self.schema)]
        return frame.parts[0]


def joined(parts: Sequence[IngestFrame], schema: pa.Schema) -> IngestRequest:
    """The messages of all parts, which have one kind of body, in their order; as old as the oldest."""
    request = IngestRequest()
    frame = request.frame
    frame.sequence = parts[-1].sequence
    frame.sent_ns = min((part.sent_ns for part in parts if part.sent_ns), default=0)  # 0: when it arrives
    frame.schema = parts[0].schema
    if parts[0].WhichOneof("body") == "columns":
        batches = [pa.ipc.read_record_batch(pa.py_buffer(part.columns), schema) for part in parts]
        frame.columns = pa.concat_batches(batches).serialize().to_pybytes()
    else:
        for part in parts:
            frame.rows.messages.extend(part.rows.messages)
    return request


def fixed_bytes(fields: pa.Schema | pa.StructType) -> int:
    """What a message takes as columns, whatever it holds."""
    return sum(_width(field.type) for field in fields)


def _width(kind: pa.DataType) -> int:
    if pa.types.is_struct(kind):
        return fixed_bytes(kind)
    tests = (pa.types.is_primitive, pa.types.is_decimal, pa.types.is_fixed_size_binary)
    return kind.bit_width // 8 if any(test(kind) for test in tests) else 0


def _size(frame: IngestFrame) -> int:
    return len(frame.columns) or frame.rows.ByteSize()
