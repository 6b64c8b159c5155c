"""Joins small frames while they wait, so that messages sent one by one do not cost a frame each. Pure.

    sent by 5 calls          1    2  3    4  5         frames 1 and 3 are in flight, 5 waits
    frames                   1    3       5

A small frame is sent at once when none was sent just before. Else it waits for `FRAME_GAP_S`, and while `IN_FLIGHT_MAX`
frames have no receipt, as small TCP segments do (Nagle, RFC 896). A joined frame has the number of its last part. A
frame that was sent is never joined again: a sender may have seen its number, so its messages must stay the same. So
only the frames of a stream that no other client resumes can be joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from bettong.client.column_bodies import ColumnBodies
from bettong.v1.ingest_pb2 import IngestFrame, IngestRequest, Welcome

# Above this size, the cost of a frame is that of its messages: joining saves nothing.
_MESSAGES_MAX = 500
_BYTES_MAX = 32 * 1024

# The sender refuses a frame whose rows become too many bytes as columns. So joined rows may grow this many times when
# decoded, and fields of a fixed width take at most half of a frame.
_GROWTH = 16
_FIXED_PART = 2

# Minimum time from one frame to a small one after it. Waiting for receipts alone is not enough: quick receipts let ever
# smaller frames follow, until these use up the machine.
FRAME_GAP_S = 0.004
# A small frame waits while so many are in flight: so frames grow where receipts are slow.
IN_FLIGHT_MAX = 4


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

    bodies: ColumnBodies
    messages_max: int
    bytes_max: int

    @classmethod
    def of(cls, welcome: Welcome) -> Joining:
        """The limits in a sender's Welcome."""
        schema = pa.ipc.read_schema(pa.py_buffer(welcome.source.arrow_schema))
        width = max(1, fixed_bytes(schema))
        return cls(
            ColumnBodies(schema),
            min(
                _MESSAGES_MAX,
                welcome.frame_messages_max or _MESSAGES_MAX,
                welcome.frame_bytes_max // _FIXED_PART // width,
            ),
            min(_BYTES_MAX, welcome.frame_bytes_max // _GROWTH),
        )

    def may_grow(self, last: PendingFrame) -> bool:
        """Whether more frames may be joined to the last one."""
        return not last.sent and last.messages < self.messages_max and last.size < self.bytes_max

    def join(self, last: PendingFrame, new: PendingFrame) -> bool:
        """Joins a new frame to the last one; False where it must stay a frame of its own."""
        alike = last.parts[-1].frame.WhichOneof("body") == new.parts[-1].frame.WhichOneof("body")
        fits = last.messages + new.messages <= self.messages_max and last.size + new.size <= self.bytes_max
        if last.sent or not (alike and fits):
            return False
        last.parts += new.parts
        last.messages += new.messages
        last.size += new.size
        return True

    def request(self, frame: PendingFrame) -> IngestRequest:
        """The request of a frame to send; the same each time it is sent."""
        if len(frame.parts) > 1:
            frame.parts = [joined([part.frame for part in frame.parts], self.bodies)]
        return frame.parts[0]


def joined(parts: Sequence[IngestFrame], bodies: ColumnBodies) -> IngestRequest:
    """Concatenates frames with the same kind of body, in their order; `sent_ns` is that of the oldest."""
    request = IngestRequest()
    frame = request.frame
    frame.sequence = parts[-1].sequence
    frame.sent_ns = min((part.sent_ns for part in parts if part.sent_ns), default=0)  # 0: when it arrives
    frame.schema = parts[0].schema
    if parts[0].WhichOneof("body") == "columns":
        frame.columns = bodies.joined([part.columns for part in parts])
    else:
        for part in parts:
            frame.rows.messages.extend(part.rows.messages)
    return request


def fixed_bytes(fields: pa.Schema | pa.StructType) -> int:
    """The bytes that a message takes as columns in fields of a fixed width."""
    return sum(_width(field.type) for field in fields)


def _width(kind: pa.DataType) -> int:
    if pa.types.is_struct(kind):
        return fixed_bytes(kind)
    tests = (pa.types.is_primitive, pa.types.is_decimal, pa.types.is_fixed_size_binary)
    return kind.bit_width // 8 if any(test(kind) for test in tests) else 0


def _size(frame: IngestFrame) -> int:
    return len(frame.columns) or frame.rows.ByteSize()
