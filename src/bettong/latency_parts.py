"""The parts of a result's latency, from the client's clock to the sink: which times are recorded, and where.

    sent        by the client's clock: when the oldest message was due          Frame.sent_ns
      | client-to-log
    taken in    by the sender's, as it hands the frame to the log               Frame.ingest_ns
      | log-to-worker       appending, lying in the log, waiting for its turn
    begun       by the worker's, before it folds the frame                      WorkerTimes, beside the result's record
      | inside-worker
    put out     by the worker's, as it hands the result to the log              WorkerTimes
      | log-to-receiver     as log-to-worker
    read        by the receiver's
      | receiver-to-sink
    delivered   by the receiver's                                               ends the latency, too

If results pass several stages, log-to-worker and inside-worker are sums over them. WorkerTimes come from a clock, so
they are not part of a frame, which a replay must reproduce byte by byte, but a header of its record in the log.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from struct import Struct
from typing import NamedTuple

from bettong.latency_percentiles import percentiles_in

# The layout of WorkerTimes in a record's header.
STORED = Struct("<qq")
_STORED_MAX = 2**63 - 1


class LatencyPart(StrEnum):
    """The parts, in order; their sum is the latency."""

    CLIENT_TO_LOG = "client-to-log"
    LOG_TO_WORKER = "log-to-worker"
    INSIDE_WORKER = "inside-worker"
    LOG_TO_RECEIVER = "log-to-receiver"
    RECEIVER_TO_SINK = "receiver-to-sink"

    @property
    def words(self) -> str:
        """The name for people."""
        return self.replace("-", " ")


PARTS = tuple(LatencyPart)


class WorkerTimes(NamedTuple):
    """The times in the header of a worker's output record.

    `put_out_ns`: when the last worker appended it, Unix ns. `inside_ns`: how long it, and the records that led to it,
    were inside workers, over all stages.
    """

    put_out_ns: int
    inside_ns: int

    @classmethod
    def parse(cls, stored: bytes) -> WorkerTimes | None:
        """Parses a header; None for an invalid one, as others may write to a topic of results."""
        if len(stored) != STORED.size:
            return None
        put_out_ns, inside_ns = STORED.unpack(stored)
        return cls(put_out_ns, inside_ns) if put_out_ns >= 0 and inside_ns >= 0 else None


def stamped(before: bytes, begun_ns: int, put_out_ns: int) -> bytes:
    """The header of a worker's output. A clock that was set back meanwhile counts as no time.

    `before`: the header of the record that it has folded, empty for a sender's.
    """
    inside_ns = put_out_ns - begun_ns if put_out_ns > begun_ns else 0
    if before and (earlier := WorkerTimes.parse(before)) is not None:
        inside_ns = min(inside_ns + earlier.inside_ns, _STORED_MAX)
    return STORED.pack(put_out_ns, inside_ns)


@dataclass(frozen=True, slots=True)
class PartsOfLate:
    """Recent latency parts of one sink: the number of messages, and for each of PARTS the sum in s and the p99 in ms.

    `within_ms`: for each part all percentiles, as LatencyPercentiles; empty from a receiver of an older version.
    """

    messages: int
    sums_s: Sequence[float]
    p99_ms: Sequence[float]
    within_ms: Sequence[Sequence[float]] = ()

    def to_text(self) -> str:
        """For a live record."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> PartsOfLate:
        """The inverse of `to_text`. Raises ValueError."""
        try:
            found = json.loads(text)
            within_ms = tuple(map(percentiles_in, found.get("within_ms", ())))
            sums_s, p99_ms = (tuple(map(float, found[name])) for name in ("sums_s", "p99_ms"))
            parsed = cls(int(found["messages"]), sums_s, p99_ms, within_ms)
        except (TypeError, AttributeError, KeyError, OverflowError, RecursionError) as error:
            raise ValueError(f"no parts of a latency: {error!r}") from None
        numbers = (*parsed.sums_s, *parsed.p99_ms)
        if parsed.messages < 1 or {len(parsed.sums_s), len(parsed.p99_ms)} != {len(PARTS)}:
            raise ValueError(f"parts of {parsed.messages} messages, expected {len(PARTS)} parts of 1 or more")
        if parsed.within_ms and len(parsed.within_ms) != len(PARTS):
            raise ValueError(f"percentiles of {len(parsed.within_ms)} parts, expected {len(PARTS)}")
        if not all(0 <= each < math.inf for each in numbers):
            raise ValueError(f"parts of a latency, expected numbers from 0 on, got {numbers}")
        return parsed
