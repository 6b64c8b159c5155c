"""What the workloads by event time ask of every peer: their messages, results and bounds; the standard library alone.

A record of an input topic is one message, and one of the output topic is one result, all big-endian:

    message  i64 key, i64 event time (Unix ns), i64 value
    count    i64 key, i64 end of the window (Unix ns), i64 how many messages, i64 sum of their values
    pair     i64 key, i64 value of the left message, i64 value of the right one
    overdue  i64 key, i64 when the timer was due (Unix ns)

A message's Kafka key is its key as text, and its Kafka timestamp is its event time, a whole number of milliseconds:
Quix Streams and Flink go by that one.
"""

import struct

EVENT = struct.Struct(">qqq")
COUNT = struct.Struct(">qqqq")
PAIR = struct.Struct(">qqq")
OVERDUE = struct.Struct(">qq")

MS_NS = 1_000_000

WINDOW_MS = 10_000
# Of sliding windows: a message is in 60.
SIZE_MS, SLIDE_MS = 60_000, 1_000

# Of the interval join: how far apart the messages of a pair are at most, and which topic has which side.
BOUND_MS = 1_000
LEFT, RIGHT = "left", "right"

# Of the timers: how long an order may wait for its approval. Longer than a run may take: bytewax's notifications go by
# the system's clock.
PATIENCE_MS = 600_000
PLACED, APPROVED = 1, 2


def on_step(at_ns: int, kind: int, due_ns: int | None) -> tuple[int | None, int | None]:
    """When a key's timer is due after a message, and for when it was due if the message comes too late for it.

    A peer's timers may fire later than their time has passed in the messages, so who gets a message compares the two.
    """
    overdue_ns = due_ns if due_ns is not None and at_ns >= due_ns else None
    return (at_ns + PATIENCE_MS * MS_NS if kind == PLACED else None), overdue_ns
