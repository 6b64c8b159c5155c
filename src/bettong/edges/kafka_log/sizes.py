"""The largest things that a topic of frames takes."""

from bettong.frames.frame import ENVELOPE_BYTES_MAX
from bettong.frames.refused import packed_bytes_max

# What Kafka adds to a value: 61 bytes of batch header, at most 30 of record header (KIP-98), 31 of the header for
# times, rounded up.
_BATCH_OVERHEAD_BYTES = 128

# What the header for a trace adds, rounded up. Topics that exist have no room for it beside the largest value.
TRACE_BYTES = 80

# What a value in flight takes beside its bytes, in librdkafka and Python: 1,040 measured, with a slot's answer to it.
# Counted for each, it bounds the number of small values, too: 65,536 in 64 MiB. One of 12 kB counts a twelfth more.
RECORD_BYTES = 1024


def value_bytes_max(frame_bytes_max: int) -> int:
    """The largest value: a frame with a body of `frame_bytes_max`, and beside it what its sender refused."""
    return frame_bytes_max + ENVELOPE_BYTES_MAX + packed_bytes_max(frame_bytes_max)


def batch_bytes_max(frame_bytes_max: int) -> int:
    """The largest Kafka record batch: one that holds the largest value alone. The limit that topics need."""
    return value_bytes_max(frame_bytes_max) + _BATCH_OVERHEAD_BYTES
