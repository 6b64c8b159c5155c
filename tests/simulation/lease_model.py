"""Leases of streams in memory, by a clock that is passed in: `RedisLeases` for tests of what happens in time.

It passes the same contract (tests/contract/test_leases.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bettong.edges.redis_store import Answer, Claim, Granted, Held, Settling
from bettong.edges.redis_store.leases import STREAM_KEPT_MS


@dataclass(slots=True)
class Stream:
    """What is known of a stream; `claim` is None when nobody holds it. `exact`: the epoch in which it is, or 0."""

    claim: Claim | None
    since_ms: float
    until_ms: float
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
        self._streams = {stream: replace(each) for stream, each in self._written.items()}
        self.start_anew()

    def start_anew(self) -> None:
        """Begins an epoch with all that it knows."""
        self._epoch_ms = None

    def write_down(self) -> None:
        """See `come_back_older`."""
        self._written = {stream: replace(each) for stream, each in self._streams.items()}

    def let_run_out(self) -> None:
        """Nobody's lease lasts any longer."""
        for stream in self._streams.values():
            stream.until_ms = self._clock_ms()

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
        holder = known.claim if known is not None else None
        ours = holder is not None and (
            holder.token == claim.token or (claim.client != "" and holder.client == claim.client)
        )
        if known is not None and holder is not None and known.until_ms > now_ms and not ours:
            left_s = (known.until_ms - now_ms) / 1000
            return Held(holder.instance, holder.peer, known.since_ms / 1000, left_s)
        unsettled_ms = self._epoch_ms + self._lease_ms - now_ms
        if unsettled_ms > 0 and not ours:
            return Settling(unsettled_ms / 1000, str(self._epochs))
        of_log = known if known is not None and known.log == claim.log else None
        acknowledged = of_log.acknowledged if of_log is not None else 0
        me = claim.client or claim.token
        is_new = known is None and now_ms - self._epoch_ms > STREAM_KEPT_MS
        same = of_log is not None and of_log.exact == self._epochs
        but = of_log.but if of_log is not None else None
        stream = self._streams[claim.stream] = Stream(
            claim, now_ms, now_ms + self._lease_ms, now_ms + STREAM_KEPT_MS, claim.log, acknowledged
        )
        if is_new or (same and but in (None, me)):
            stream.exact, stream.but = self._epochs, me
        return Granted(acknowledged, same and but is None)

    def renew(self, claims: Sequence[tuple[Claim, int]]) -> list[bool]:
        """See RedisLeases."""
        return [self._renew(claim, acknowledged) for claim, acknowledged in claims]

    def release(self, claim: Claim, acknowledged: int, *, exact: bool = False) -> None:
        """See RedisLeases."""
        known = self._known(claim)
        if known is not None and known.claim is not None and known.claim.token == claim.token:
            self._note(known, claim, acknowledged)
            known.claim = None
            if exact:
                known.but = None
        elif known is not None:
            self._told_late(known, claim, acknowledged)

    def known(self, stream: str) -> int:
        """Up to where all of a stream is known to be durable."""
        known = self._streams.get(stream)
        return known.acknowledged if known is not None else 0

    def _renew(self, claim: Claim, acknowledged: int) -> bool:
        now_ms = self._clock_ms()
        known = self._known(claim)
        if known is None:
            known = self._streams[claim.stream] = Stream(claim, now_ms, 0, 0, claim.log)
        if known.claim is None or known.claim.token != claim.token:
            self._told_late(known, claim, acknowledged)
            return False
        known.until_ms = now_ms + self._lease_ms
        self._note(known, claim, acknowledged)
        return True

    def _told_late(self, known: Stream, claim: Claim, acknowledged: int) -> None:
        if known.log == claim.log:
            known.acknowledged = max(known.acknowledged, acknowledged)

    def _note(self, known: Stream, claim: Claim, acknowledged: int) -> None:
        before = known.acknowledged if known.log == claim.log else 0
        known.log, known.acknowledged = claim.log, max(before, acknowledged)
        known.kept_until_ms = self._clock_ms() + STREAM_KEPT_MS

    def _known(self, claim: Claim) -> Stream | None:
        known = self._streams.get(claim.stream)
        return known if known is not None and known.kept_until_ms > self._clock_ms() else None
