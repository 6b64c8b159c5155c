"""Memory held for subscribers, its bounds, and which subscribers are ended at a bound. Used on the event loop.

gRPC takes a response when the one before it has left, so a subscriber that does not read costs its reader and one
response. A subscriber whose response has not left for `stall_s` is ended. When there is no room for all together, those
that have stalled for longest are ended first: no subscriber waits longer than a second for one that does not read.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

# A subscriber that stalls for less may only be slow: a response of a megabyte takes so long at 8 Mbit/s.
SLOW_S = 1.0
_POLL_S = 0.25


@dataclass(eq=False, slots=True)
class Guest:
    """One subscriber of a sink, by the address that it came from. `held`: bytes, `sending` of them as responses,
    `positions` for what it goes on from. `sent`: the offset behind what gRPC has taken, by partition; `lag`: records
    behind these, None where nobody knows.

    `since_s`: when its response was handed to gRPC; None between two of them.
    `reason`: why it must go; empty while it need not. `must_hang_up` is set when it cannot be waited for any longer.
    """

    task: "asyncio.Task[object]"
    sink: str
    address: str
    held: int = 0
    sending: int = 0
    positions: int = 0
    since_s: float | None = None
    reason: str = ""
    sent: dict[int, int] = field(default_factory=dict)
    lag: int | None = None
    must_hang_up: asyncio.Event = field(default_factory=asyncio.Event)


class Room:
    """The subscribers of one receiver."""

    def __init__(self, *, bytes_max: int, stall_s: float, clock_s: Callable[[], float]) -> None:
        self.stall_s = stall_s
        self.bytes_max = bytes_max
        self._clock_s = clock_s
        self.guests: set[Guest] = set()
        self._changed = asyncio.Event()

    @property
    def held(self) -> int:
        """Bytes held for all subscribers."""
        return sum(guest.held for guest in self.guests)

    def enter(self, task: "asyncio.Task[object]", sink: str, address: str) -> Guest:
        """A subscriber comes, served by `task`, which is cancelled when it must go."""
        guest = Guest(task, sink, address)
        self.guests.add(guest)
        return guest

    def leave(self, guest: Guest) -> None:
        """It is gone, with all that was held for it."""
        self.guests.discard(guest)
        self._changed.set()

    def has_room_for(self, size: int) -> bool:
        """Whether one more may come that holds so many bytes: the first one may, and one that can get others' room.

        Those others are the subscribers that have stalled for so long that they do not read.
        """
        stalled = sum(guest.held for guest in self._standing() if self.stood_s(guest) >= SLOW_S)
        return not self.guests or self.held - stalled + size <= self.bytes_max

    async def hold(self, guest: Guest, size: int) -> None:
        """Returns when there is room to hold so many bytes for it, in place of what was held."""
        guest.held = size
        while self.held > self.bytes_max and (others := self._standing(guest)):
            next_s = self._clear(others)
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), max(next_s, _POLL_S))

    def _clear(self, standing: list[Guest]) -> float:
        """Ends as many of them as make room for all others, and says in how many seconds the next one may go."""
        left = self.held
        for guest in standing:
            if left <= self.bytes_max:
                break
            if (stood_s := self.stood_s(guest)) < SLOW_S:
                return SLOW_S - stood_s
            self._end(guest, f"has not read for {stood_s:.0f} s while others need its room")
            guest.must_hang_up.set()
            left -= guest.held
        return 0.0

    def stood_s(self, guest: Guest) -> float:
        """For how long its response has not left."""
        return self._clock_s() - guest.since_s if guest.since_s is not None else 0.0

    def hands(self, guest: Guest) -> None:
        """A response is handed to gRPC."""
        guest.since_s = self._clock_s()

    def handed(self, guest: Guest) -> None:
        """It has left."""
        guest.since_s = None

    async def watch(self) -> None:
        """Ends subscribers that stall for too long, until it is cancelled."""
        while True:
            for guest in list(self.guests):
                if self.stood_s(guest) >= self.stall_s:
                    self._end(guest, f"has not read for {self.stall_s:g} s")
            await asyncio.sleep(_POLL_S)

    def _standing(self, but: Guest | None = None) -> list[Guest]:
        """Subscribers whose response has not left, the oldest first."""
        found = [guest for guest in self.guests if guest.since_s is not None and guest is not but]
        return sorted(found, key=self.stood_s, reverse=True)

    def _end(self, guest: Guest, reason: str) -> None:
        if not guest.reason:
            guest.reason = reason
            guest.task.cancel()
