"""A feed: one client's session at an intake. Used on the event loop, except for its `Session`."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from bettong.errors import LogError
from bettong.identifiers import NO_SEQUENCE, SequenceNumber
from bettong.ingest.refusal import Refusal, refused_by_log
from bettong.ingest.requests import read_frame
from bettong.ingest.session import NO_PARTITION, Session, SourceRoute, Taken
from bettong.traces import FrameSampling
from bettong.v1.ingest_pb2 import IngestFrame, Receipt
from bettong_sender.buffer import Buffer
from bettong_sender.ledger import Entry, Ledger
from bettong_sender.ownership import Lease
from bettong_sender.ticker import OriginProgress

if TYPE_CHECKING:
    from bettong_sender.intake import Intake

# A session that ends by a refusal or the sender's stop waits so long for the receipts of frames in flight.
RECEIPTS_WAIT_S = 4.0

# A session queues another frame at the splitter while its queued ones have fewer bytes. So a session with large frames
# has one there, and little is still read for a call that has ended or a lease that is in doubt.
AHEAD_BYTES_MAX = 256 * 1024

# Returns the records to append, given the seconds of a monotonic clock and the ingest time. Runs no users' code.
Number = Callable[[float, int], Taken]
# Reads a frame with users' decoders and key functions: it may take long, or never return.
Work = Callable[[], Number]
# Result of work: what was appended, or why it was not.
Outcome = Taken | BaseException
OnDone = Callable[[Outcome], None]


class Feed:
    """One client's session, from hello to the end of its call. `client`: see `Intake.open`."""

    def __init__(
        self,
        intake: "Intake",
        route: SourceRoute,
        session: Session,
        client: str,
        *,
        claimed: SequenceNumber,
        client_sampling: FrameSampling,
    ) -> None:
        """`claimed`: the client claims receipts up to here; `client_sampling`: the frames that it traces itself."""
        self.route = route
        self.origin = session.origin
        self.client = client
        self.claimed = claimed
        self._intake = intake
        self._client_sampling = client_sampling
        self._session = session
        self.ledger = Ledger(session.origin, window=intake.limits.credits)
        # Its progress in event time, if its stage needs that.
        self.origin_progress = OriginProgress(route, session, self.ledger) if route.needs_time else None
        self._changed = asyncio.Event()
        self._failure: BaseException | None = None
        self._refusal: BaseException | None = None
        # Frames at the splitter, and their bytes.
        self._splitting = 0
        self._ahead = Buffer(AHEAD_BYTES_MAX, free_bytes=1)
        self._all_appended = asyncio.Event()
        self._giving_up: asyncio.TimerHandle | None = None
        self._opening: Entry | None = None
        self._finished = False

    @property
    def is_finished(self) -> bool:
        """Whether no more frames come."""
        return self._finished

    @property
    def fault(self) -> BaseException | None:
        """Why no more of its frames are read; None while they are. From any thread."""
        return self._failure or self._refusal

    @property
    def acknowledged(self) -> SequenceNumber:
        """Up to here the client's frames are durable."""
        return self.ledger.acknowledged

    @property
    def log(self) -> str:
        """See `Intake.log_of`."""
        return self._intake.log_of(self.route)

    async def open(self, durable: SequenceNumber) -> int:
        """Opens the session in the log, and returns the client's first credits. Raises Refusal.

        `durable`: see `Session.open`.
        """
        entry = self._opening = self.ledger.opening(durable)
        await self._handed_over(entry, lambda: partial(self._session.open, durable=durable))
        return self.ledger.grant(full=self._intake.buffer.is_full)

    async def opened(self) -> None:
        """Returns when the session's opening is durable. Raises Refusal when the log refused it."""
        while self._opening is None or not self._opening.is_answered:
            self._changed.clear()
            await self._changed.wait()
        if self._failure is not None:
            raise self._failure

    async def await_room(self, lease: Lease | None) -> None:
        """Returns when the lease is not in doubt and no buffer is full: `take` would not wait. Raises Refusal."""
        buffers = (self._intake.buffer, self._intake.splitter_of(self.route).waiting, self._ahead)
        while any(buffer.is_full for buffer in buffers) or (lease is not None and lease.in_doubt):
            for buffer in buffers:
                await buffer.room()
            if lease is not None:
                await lease.await_renewed()

    async def take_request(self, data: bytes, lease: Lease) -> None:
        """Passes an unparsed frame to the splitter. See `take`."""
        read = partial(read_frame, data, self.origin, messages_max=self.route.frame_messages_max)
        await self._take(read, len(data), lease)

    async def take(
        self,
        frame: IngestFrame,
        size: int,
        lease: Lease | None,
        oversized: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        """Passes a frame of about `size` bytes to the splitter; waits while the lease is in doubt or a buffer is full.

        Raises Refusal when the feed takes no more. When this frame is refused, `all_appended` and `receipt` raise it,
        and no frame behind it is read. Without a lease the caller must ensure by other means that nobody else feeds the
        stream. `oversized`: see `Session.take`.
        """
        await self._take(lambda: frame, size, lease, oversized)

    async def _take(
        self,
        read: Callable[[], IngestFrame],
        size: int,
        lease: Lease | None,
        oversized: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        await self.await_room(lease)
        if self.fault is not None:
            raise self.fault
        entry = self.ledger.spend(NO_SEQUENCE, size)
        begun_ns = self._intake.tracing.clock_ns() if self._intake.tracing is not None else 0
        work = partial(self._split, read, entry, oversized, begun_ns)
        try:
            self._intake.hand_over(self, entry, work, partial(self._taken, entry, size))
        except Refusal:
            self.ledger.drop(entry)
            raise
        self._splitting += 1
        self._ahead.add(size)
        self._all_appended.clear()

    async def all_appended(self) -> None:
        """Returns when all frames taken were appended to the log. Raises the refusal of one."""
        while self._splitting and self._refusal is None:
            await self._all_appended.wait()
        if self._refusal is not None:
            raise self._refusal

    def _taken(self, entry: Entry, size: int, outcome: Outcome) -> None:
        self._splitting -= 1
        self._ahead.remove(size)
        if isinstance(outcome, Taken):
            self._intake.status.count_frame(outcome, self.origin, entry.sequence)
            if outcome.refused and self._intake.refusal_log is not None:
                self._intake.refusal_log.note(self.route.source.name, outcome.refused)
        else:
            self.ledger.drop(entry)
            if self._giving_up is None:
                self._giving_up = asyncio.get_running_loop().call_later(RECEIPTS_WAIT_S, self.fail, outcome)
            self.wake()
        if not self._splitting or self._refusal is not None:
            self._all_appended.set()

    async def _handed_over(self, entry: Entry, work: Work) -> None:
        """Waits for the work; it is done even if the caller is cancelled. Raises what it raises."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._intake.hand_over(self, entry, work, partial(_resolve, done))
        await done

    def _split(
        self,
        read: Callable[[], IngestFrame],
        entry: Entry,
        oversized: Mapping[int, str],
        begun_ns: int,
    ) -> Number:
        """In the splitter's thread."""
        frame = read()
        entry.sequence = SequenceNumber(frame.sequence)
        if self._intake.tracing is not None:
            entry.traced = self._intake.tracing.trace_frame(
                self.origin, entry.sequence, frame.sent_ns, self._client_sampling, begun_ns
            )
        guard = self._intake.guards.of(self.route.source.name)
        care = guard.begin(self.origin, entry.sequence)
        try:
            shares = self._session.read(frame, self._intake.now_ns(), oversized, care)
            return partial(self._session.number, shares)
        finally:
            guard.end()

    async def end(self, *, kept: bool) -> None:
        """Ends the stream in the log. After `receipt` gave None. `kept`: its frames may be sent again."""
        if self.origin_progress is not None:
            self._intake.ticker.end(self.origin_progress)
        with contextlib.suppress(Refusal):  # without a log consumers forget it later
            entry = Entry(self.acknowledged, credits=0)
            await self._handed_over(entry, lambda: partial(self._session.end, kept=kept))

    def answered(self, entry: Entry, partition: int, answer: int | LogError, *, opens: bool) -> bool:
        """Notes the log's answer for a record; returns False when it may not count, which ends the session."""
        if isinstance(answer, LogError):
            self._session.lost(partition)
            self.fail(refused_by_log(answer))
            return False
        try:
            self._session.answered(partition, answer, opens=opens)
        except Refusal as refusal:
            self.fail(refusal)
            return False
        # Consumers may skip a record that follows a failed one.
        if (
            self.origin_progress is not None
            and self._failure is None
            and not opens
            and partition != NO_PARTITION
        ):
            self.origin_progress.note_watermark(partition, entry.watermark_ns)
        return True

    async def receipt(self) -> Receipt | None:
        """The next receipt, when there is something to report; None when a finished feed has reported all.

        Raises Refusal when the log refused a frame, at once; when a frame itself was refused, behind the receipts of
        those before it, which are waited for as long as `RECEIPTS_WAIT_S`.
        """
        while True:
            if self._failure is not None:
                raise self._failure
            if (receipt := self.ledger.receipt(full=self._intake.buffer.is_full)) is not None:
                return receipt
            if self.ledger.is_complete:
                if self._refusal is not None:
                    raise self._refusal
                if self._finished:
                    return None
            self._changed.clear()
            await self._changed.wait()

    def finish(self) -> None:
        """No more frames come: `receipt` ends when all is acknowledged."""
        self._finished = True
        self.wake()

    def refuse(self, error: BaseException) -> None:
        """A frame was refused, and so are all behind it; the first one counts. From any thread."""
        self._refusal = self._refusal or error

    def fail(self, error: BaseException) -> None:
        """Ends the feed: `receipt` raises this; the first one counts."""
        self._failure = self._failure or error
        self.wake()

    def wake(self) -> None:
        """Lets `receipt` and `opened` check again."""
        self._changed.set()

    def close(self) -> None:
        """The call has ended. Records in flight still reach the log."""
        if self._giving_up is not None:
            self._giving_up.cancel()
        self._intake.closed(self)


def _resolve(done: asyncio.Future[None], outcome: Outcome) -> None:
    if done.done():
        return
    if isinstance(outcome, Taken):
        done.set_result(None)
    else:
        done.set_exception(outcome)
