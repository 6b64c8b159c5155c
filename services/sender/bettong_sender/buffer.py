"""A bounded count of bytes: frames wait for room in it."""

import asyncio
import time
from collections.abc import Callable

from bettong.held_time import HeldTime

# By default there is room again when this part of the bound is free, so that credits do not come and go with every
# record.
_FREE_PART = 8

# What a frame and a record take besides their bytes: how much the process's memory grew, rounded up. A frame that waits
# to be read takes 6.3 kB if it is its session's only one (its call and its entry in a turn), further ones less. A
# record that the log has not answered for takes 1.1 kB: librdkafka's message and its delivery callback.
FRAME_BYTES = 7 * 1024
RECORD_BYTES = 1152


class Buffer:
    """Bytes against their bound: full from `bytes_max` on, until `free_bytes` are free again (default: an eighth).

    It counts and refuses nothing: whoever adds waits for `room` first. Used on the event loop; other threads may read.
    `full`: for how long it was full.
    """

    def __init__(
        self, bytes_max: int, *, free_bytes: int | None = None, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.bytes = 0
        self.full = HeldTime(clock_s)
        self._bytes_max = bytes_max
        self._reopen_bytes = bytes_max - (bytes_max // _FREE_PART if free_bytes is None else free_bytes)
        self._room = asyncio.Event()
        self._room.set()

    @property
    def is_full(self) -> bool:
        """Whether there is no room."""
        return self.full.is_held

    async def room(self) -> None:
        """Returns when there is room, at once if there is; it may be gone again when the caller runs."""
        await self._room.wait()

    def add(self, size: int) -> None:
        """So many bytes more."""
        self.bytes += size
        if self.bytes >= self._bytes_max:
            self.full.begin()
            self._room.clear()

    def remove(self, size: int) -> None:
        """So many bytes fewer."""
        self.bytes -= size
        if self.bytes <= self._reopen_bytes:
            self.full.end()
            self._room.set()
