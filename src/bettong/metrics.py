"""Every live figure that services write and people read, by name.

A service writes one flat record of figures under its instance name (see `edges.redis_store`), with a time to
live, so that the record of a dead instance goes by itself. The processor writes one record a partition.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One live figure: its name, its unit, and what it says."""

    name: str
    unit: str
    meaning: str


SERVICE = Figure("service", "text", "which service wrote the record: sender, processor or receiver")
STATE = Figure("state", "text", "starting, waiting (for Kafka or Redis), standby, running or stopping")
SINCE = Figure("since", "Unix s", "when the service entered that state")
DETAIL = Figure("detail", "text", "what it waits for, when it waits")
MESSAGES = Figure("messages", "messages", "taken in (sender), folded (processor), delivered (receiver)")
FRAMES = Figure("frames", "frames", "taken in, folded, delivered")
SESSIONS = Figure("sessions", "sessions", "clients connected to a sender, subscribers of a receiver")
BUFFERED = Figure("buffered", "bytes", "under way to Kafka in a sender")
DEAD_LETTERS = Figure(
    "dead_letters", "messages", "that could not be processed and went to the sink dead-letters"
)
DEAD_LETTER_LAST = Figure(
    "dead_letter_last", "text", "the last one: computation, reason, origin, sequence, index"
)
SKIPPED = Figure(
    "skipped",
    "messages",
    'that could not be processed, of computations, sources and sinks with on_error="skip"',
)
DUPLICATES = Figure("duplicates", "frames", "skipped: seen before")
GAPS = Figure("gaps", "frames", "skipped: an earlier one was lost on its way")
UNREADABLE = Figure(
    "unreadable", "records", "skipped by a receiver: no frame, or not of the sink that they lie in"
)
RESULTS = Figure("results", "messages", "put out by a stage's partition")
OFFSET = Figure("offset", "offset", "the next record that a partition folds")
KEYS = Figure("keys", "keys", "with a state in a partition")
LAG = Figure(
    "lag",
    "records",
    "in the log, not yet folded or delivered; `lag/NAME`: of a sink's destination, of the topic that a source reads",
)
RATE = Figure("messages_per_s", "messages/s", "folded by a partition of the resident schedule, of late")
BATCH = Figure("batch", "batch", "the last micro-batch")
BATCH_MS = Figure("batch_ms", "ms", "how long the last micro-batch took")
SNAPSHOT_OFFSET = Figure(
    "snapshot_offset",
    "offset",
    "of the newest snapshot of a partition: written when one is saved, and when the processor starts",
)
_LATENCY = (
    "client's send time to delivery; of a partition (resident), the sender's stamp to durable output, of late"
)
LATENCY_P50 = Figure("latency_p50_ms", "ms", f"{_LATENCY}: half are faster")
LATENCY_P99 = Figure("latency_p99_ms", "ms", f"{_LATENCY}: 99 of 100 are faster")
LATENCY_MAX = Figure("latency_max_ms", "ms", f"{_LATENCY}: slowest")

ALL = tuple(value for value in list(globals().values()) if isinstance(value, Figure))


def lag(ends: Mapping[tuple[str, int], int], offsets: Mapping[tuple[str, int], int]) -> int:
    """LAG, from where logs end and the next offset of each (topic, partition) that is looked at.

    A log that ends before that, for it was asked earlier, or of which no end is known, adds nothing.
    """
    return sum(max(0, ends.get(place, offset) - offset) for place, offset in offsets.items())
