"""The maximum sizes of values and batches in a topic of frames."""

from bettong.frames.frame import ENVELOPE_BYTES_MAX
from bettong.frames.refused import packed_bytes_max

# Kafka's overhead for a value: 61 bytes of batch header, at most 30 of record header (KIP-98), 31 of the header for
# times, rounded up.
_BATCH_OVERHEAD_BYTES = 128

# Size of the header for a trace, rounded up. Existing topics have no room for it beside the largest value.
TRACE_BYTES = 80

# Memory for a value in flight beside its bytes, in librdkafka and Python: 1,040 measured, with a slot's answer to it.
# It also bounds the number of small values: 65,536 in 64 MiB. A value of 12 kB counts a twelfth more.
RECORD_BYTES = 1024


def value_bytes_max(frame_bytes_max: int) -> int:
    """The largest value: a frame with a body of `frame_bytes_max`, and the messages that its sender refused."""
    return frame_bytes_max + ENVELOPE_BYTES_MAX + packed_bytes_max(frame_bytes_max)


def batch_bytes_max(frame_bytes_max: int) -> int:
    """The largest record batch, which holds only the largest value: the limit that topics need."""
    return value_bytes_max(frame_bytes_max) + _BATCH_OVERHEAD_BYTES
