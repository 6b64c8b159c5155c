"""Leases in memory, by a clock that is passed in, for tests of what happens in time.

`MemoryLease` is the one lease of `edges.redis_store.lease`, and `MemoryLeases` is `RedisLeases`. Both are held to the
same as their originals in a real Redis: tests/contract/test_lease.py, tests/contract/test_leases.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bettong.edges.redis_store import Answer, Claim, Granted, Held, Settling
from bettong.edges.redis_store.leases import ENDED_KEPT_MS, STREAM_KEPT_MS
from bettong.identifiers import SequenceNumber


@dataclass(slots=True)
class MemoryLease:
    """Held by a name until a time, unless it is "". Every call says what time it is."""

    name: str = ""
    until_ms: float = 0.0

    def holder(self, now_ms: float) -> tuple[str, float]:
        """Who holds it, "" for nobody, and for how many ms still."""
        return (self.name, self.until_ms - now_ms) if self.name and now_ms < self.until_ms else ("", 0.0)

    def hold(
        self, name: str, length_ms: float, now_ms: float, *, if_free: bool, if_held: bool = False
    ) -> bool:
        """See `lease.LEASE`."""
        holder, _ = self.holder(now_ms)
        if holder != name and not (if_held if holder else if_free):
            return False
        self.name, self.until_ms = name, now_ms + length_ms
        return True

    def release(self, name: str, now_ms: float) -> bool:
        """See `lease.LEASE`."""
        if self.holder(now_ms)[0] != name:
            return False
        self.name = ""
        return True


@dataclass(slots=True)
class Stream:
    """What is known of a stream; `claim` had the lease last, None when it gave it back.

    `exact`: the epoch in which it is, or 0.
    """

    claim: Claim | None
    since_ms: float
    lease: MemoryLease
    kept_until_ms: float
    log: str
    acknowledged: int = 0
    exact: int = 0
    but: str | None = None


class MemoryLeases:
    """See `RedisLeases`. `forget` is what a restart without data does."""

    def __init__(self, *, lease_ms: int, clock_ms: Callable[[], float]) -> None:
        self._lease_ms = lease_ms
        self._clock_ms = clock_ms
        self._streams: dict[str, Stream] = {}
        self._written: dict[str, Stream] = {}
        self._epoch_ms: float | None = None
        self._epochs = 1

    def forget(self) -> None:
        """Loses all, and begins an epoch."""
        self._streams.clear()
        self._written.clear()
        self._epoch_ms = None

    def come_back_older(self) -> None:
        """Begins an epoch with what it knew when it last wrote it down."""
        self._streams = {stream: _copy(each) for stream, each in self._written.items()}
        self.start_anew()

    def start_anew(self) -> None:
        """Begins an epoch with all that it knows."""
        self._epoch_ms = None

    def write_down(self) -> None:
        """See `come_back_older`."""
        self._written = {stream: _copy(each) for stream, each in self._streams.items()}

    def let_run_out(self) -> None:
        """Nobody's lease lasts any longer."""
        for stream in self._streams.values():
            stream.lease.until_ms = self._clock_ms()

    def grow_old(self) -> None:
        """Counts as having run for long."""
        self._epoch_ms = -2.0 * STREAM_KEPT_MS

    def notice_restart(self) -> None:
        """See RedisLeases."""
        if self._epoch_ms is None:
            self._epoch_ms = self._clock_ms()
            self._epochs += 1

    def skip_settling(self, epoch: str) -> None:
        """See RedisLeases."""
        self.notice_restart()
        if epoch == str(self._epochs):
            self.grow_old()

    def acquire(self, claim: Claim) -> Answer:
        """See RedisLeases."""
        self.notice_restart()
        assert self._epoch_ms is not None
        now_ms = self._clock_ms()
        known = self._known(claim)
        last = known.claim if known is not None else None
        ours = last is not None and (
            last.token == claim.token or (claim.client != "" and last.client == claim.client)
        )
        lease = known.lease if known is not None else MemoryLease()
        holder, left_ms = lease.holder(now_ms)
        if known is not None and last is not None and holder and not ours:
            return Held(last.instance, last.peer, known.since_ms / 1000, left_ms / 1000)
        unsettled_ms = self._epoch_ms + self._lease_ms - now_ms
        if unsettled_ms > 0 and not ours:
            return Settling(unsettled_ms / 1000, str(self._epochs))
        of_log = known if known is not None and known.log == claim.log else None
        acknowledged = of_log.acknowledged if of_log is not None else 0
        me = claim.client or claim.token
        is_new = known is None and now_ms - self._epoch_ms > STREAM_KEPT_MS
        same = of_log is not None and of_log.exact == self._epochs
        but = of_log.but if of_log is not None else None
        lease.hold(claim.token, self._lease_ms, now_ms, if_free=True, if_held=True)
        stream = self._streams[claim.stream] = Stream(
            claim, now_ms, lease, now_ms + STREAM_KEPT_MS, claim.log, acknowledged
        )
        if is_new or (same and but in (None, me)):
            stream.exact, stream.but = self._epochs, me
        return Granted(SequenceNumber(acknowledged), same and but is None)

    def renew(self, claims: Sequence[tuple[Claim, int]]) -> list[bool]:
        """See RedisLeases."""
        return [self._renew(claim, acknowledged) for claim, acknowledged in claims]

    def release(self, claim: Claim, acknowledged: int, *, exact: bool = False, ended: bool = False) -> None:
        """See RedisLeases."""
        known = self._known(claim)
        if known is not None and known.claim is not None and known.claim.token == claim.token:
            self._note(known, claim, acknowledged, kept_ms=ENDED_KEPT_MS if ended else STREAM_KEPT_MS)
            known.lease.release(claim.token, self._clock_ms())
            known.claim = None
            if exact:
                known.but = None
        elif known is not None:
            self._late_release(known, claim, acknowledged)

    def known(self, stream: str) -> int:
        """Up to where all of a stream is known to be durable."""
        known = self._streams.get(stream)
        return known.acknowledged if known is not None else 0

    def _renew(self, claim: Claim, acknowledged: int) -> bool:
        now_ms = self._clock_ms()
        known = self._known(claim)
        if known is None:
            known = self._streams[claim.stream] = Stream(claim, now_ms, MemoryLease(), 0, claim.log)
        is_ours = known.claim is not None and known.claim.token == claim.token
        if not is_ours or not known.lease.hold(claim.token, self._lease_ms, now_ms, if_free=True):
            self._late_release(known, claim, acknowledged)
            return False
        self._note(known, claim, acknowledged, kept_ms=STREAM_KEPT_MS)
        return True

    def _late_release(self, known: Stream, claim: Claim, acknowledged: int) -> None:
        if known.log == claim.log:
            known.acknowledged = max(known.acknowledged, acknowledged)

    def _note(self, known: Stream, claim: Claim, acknowledged: int, *, kept_ms: int) -> None:
        before = known.acknowledged if known.log == claim.log else 0
        known.log, known.acknowledged = claim.log, max(before, acknowledged)
        known.kept_until_ms = self._clock_ms() + kept_ms

    def _known(self, claim: Claim) -> Stream | None:
        known = self._streams.get(claim.stream)
        return known if known is not None and known.kept_until_ms > self._clock_ms() else None


def _copy(stream: Stream) -> Stream:
    return replace(stream, lease=replace(stream.lease))
