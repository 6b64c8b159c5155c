"""Memory held for subscribers, its bounds, and which subscribers are disconnected at a bound. Used on the event loop.

gRPC accepts a response when the previous one was sent, so a subscriber that does not read costs its log reader and one
response. A subscriber whose response was not sent for `stall_s` is disconnected. When memory for all is short, those
that have stalled for longest go first: no subscriber waits longer than a second for one that does not read.

When a subscriber leaves, its reader may still connect or poll; until it is closed, its thread and memory count for
subscribers that come, which wait for their own reader.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

# A subscriber that stalls for less may just be slow: a response of a megabyte takes this long at 8 Mbit/s.
SLOW_S = 1.0
_POLL_S = 0.25


@dataclass(eq=False, slots=True)
class ConnectedSubscriber:
    """One subscriber of a sink, at its address. `held`: bytes in memory, `sending` of them as responses, `positions`
    of them for the positions that it resumes from. `sent`: the offset after the last response that gRPC accepted, by
    partition; `lag`: records after these, None if unknown.

    `write_since_s`: when the current response was passed to gRPC; None between responses.
    `reason`: why it is disconnected; empty until then. `must_disconnect` is set when its status must not be waited for.
    """

    task: "asyncio.Task[object]"
    sink: str
    address: str
    held: int = 0
    sending: int = 0
    positions: int = 0
    write_since_s: float | None = None
    reason: str = ""
    sent: dict[int, int] = field(default_factory=dict)
    lag: int | None = None
    must_disconnect: asyncio.Event = field(default_factory=asyncio.Event)


class Room:
    """The subscribers of one receiver, and the memory that they share.

    `readers`: open readers of the log, `closing`: bytes of those whose subscriber has left.
    """

    def __init__(
        self, *, readers_max: int, bytes_max: int, stall_s: float, clock_s: Callable[[], float]
    ) -> None:
        self.stall_s = stall_s
        self.bytes_max = bytes_max
        self.readers = 0
        self.closing = 0
        self._readers_max = readers_max
        self._clock_s = clock_s
        self.subscribers: set[ConnectedSubscriber] = set()
        self._changed = asyncio.Event()

    @property
    def held(self) -> int:
        """Bytes held for all subscribers, without those of `closing`."""
        return sum(subscriber.held for subscriber in self.subscribers)

    def add(self, task: "asyncio.Task[object]", sink: str, address: str) -> ConnectedSubscriber:
        """Adds a subscriber, served by `task`, which is cancelled to disconnect it."""
        subscriber = ConnectedSubscriber(task, sink, address)
        self.subscribers.add(subscriber)
        return subscriber

    def remove(self, subscriber: ConnectedSubscriber) -> None:
        """Removes a subscriber, whose memory has been freed, but for that of its reader: see `reader_left`."""
        self.subscribers.discard(subscriber)
        self._changed.set()

    async def await_reader(
        self, subscriber: ConnectedSubscriber, size: int, *, unless: Callable[[], bool]
    ) -> bool:
        """Waits until a subscriber may open its reader of `size` bytes; False if `unless()` becomes true before.

        After True, `reader_left` must be called.
        """
        subscriber.held = size
        while self.readers >= self._readers_max or (
            self.closing and self.held + self.closing > self.bytes_max
        ):
            if unless():
                return False
            await self._change(_POLL_S)
        self.readers += 1
        return True

    def reader_left(self, subscriber: ConnectedSubscriber) -> Callable[[], None]:
        """Call it when the subscriber has left; call what it returns when its reader is closed."""
        size = subscriber.held - subscriber.sending
        subscriber.held = subscriber.sending
        self.closing += size

        def closed() -> None:
            self.closing -= size
            self.readers -= 1
            self._changed.set()

        return closed

    def has_room_for(self, size: int) -> bool:
        """Whether one more subscriber that holds `size` bytes may be added. The first one always may.

        Memory of subscribers that have stalled for `SLOW_S` counts as free.
        """
        stalled = sum(each.held for each in self._writing() if self.stalled_s(each) >= SLOW_S)
        return not self.subscribers or self.held - stalled + size <= self.bytes_max

    async def reserve(self, subscriber: ConnectedSubscriber, size: int) -> None:
        """Reserves `size` bytes for a subscriber, instead of its previous reservation; waits until they are free."""
        subscriber.held = size
        while self.held > self.bytes_max and (others := self._writing(subscriber)):
            await self._change(max(self._free(others), _POLL_S))

    async def _change(self, timeout_s: float) -> None:
        """Waits until a subscriber or a reader has gone."""
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()

    def _free(self, writing: list[ConnectedSubscriber]) -> float:
        """Disconnects as many of them as the others need; returns in how many seconds the next one may follow."""
        left = self.held
        for subscriber in writing:
            if left <= self.bytes_max:
                break
            if (stalled_s := self.stalled_s(subscriber)) < SLOW_S:
                return SLOW_S - stalled_s
            self._disconnect(subscriber, f"has not read for {stalled_s:.0f} s while others need its memory")
            subscriber.must_disconnect.set()
            left -= subscriber.held
        return 0.0

    def stalled_s(self, subscriber: ConnectedSubscriber) -> float:
        """For how long its current response has not been sent."""
        return self._clock_s() - subscriber.write_since_s if subscriber.write_since_s is not None else 0.0

    def write_begun(self, subscriber: ConnectedSubscriber) -> None:
        """Call it when a response is passed to gRPC."""
        subscriber.write_since_s = self._clock_s()

    def write_ended(self, subscriber: ConnectedSubscriber) -> None:
        """Call it when gRPC has accepted the response."""
        subscriber.write_since_s = None

    async def watch(self) -> None:
        """Disconnects subscribers that stall for `stall_s`. Runs until it is cancelled."""
        while True:
            for subscriber in list(self.subscribers):
                if self.stalled_s(subscriber) >= self.stall_s:
                    self._disconnect(subscriber, f"has not read for {self.stall_s:g} s")
            await asyncio.sleep(_POLL_S)

    def _writing(self, but: ConnectedSubscriber | None = None) -> list[ConnectedSubscriber]:
        """Subscribers whose response has not been sent, longest first."""
        found = [each for each in self.subscribers if each.write_since_s is not None and each is not but]
        return sorted(found, key=self.stalled_s, reverse=True)

    def _disconnect(self, subscriber: ConnectedSubscriber, reason: str) -> None:
        if not subscriber.reason:
            subscriber.reason = reason
            subscriber.task.cancel()
