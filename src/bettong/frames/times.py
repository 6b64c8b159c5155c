"""Times of a frame's messages, stored beside their columns: 64-bit nanoseconds, little-endian, one a message."""

import numpy as np
import pyarrow as pa

from bettong.errors import FrameError
from bettong.frames.columns import Array

_ENCODED = np.dtype("<i8")
TIME_BYTES = _ENCODED.itemsize
_US_NS = 1000
# The greatest time that the log clock can hold.
_US_MAX = (2**63 - 1) // _US_NS


def encode_times(times: Array) -> bytes:
    """The times as a frame carries them."""
    return times.astype(_ENCODED, copy=False).tobytes()


def decode_times(encoded: bytes, messages: int, what: str) -> Array:
    """The times as integers. Raises FrameError, which names `what` they are, for another number of messages."""
    if len(encoded) != messages * TIME_BYTES:
        raise FrameError(f"{len(encoded)} bytes of {what} for {messages} messages")
    return np.frombuffer(encoded, _ENCODED).astype(np.int64, copy=False)


def instants_ns(datetimes: pa.Array) -> tuple[Array, Array]:
    """Datetimes as Unix nanoseconds, and which of them lie outside 0 to 2^63: those become 0."""
    numbers = datetimes.view(pa.int64()).to_numpy()
    outside = (numbers < 0) | (numbers > _US_MAX)
    return np.where(outside, 0, numbers) * _US_NS, outside
