"""The ledger of one session: what is durable, and what the client may send. Pure; used from one thread.

    credits that the client holds + its frames in flight <= window

A frame is durable when all records that it led to are; a session is acknowledged up to the last frame before the
first one that is not.
"""

from collections import deque
from dataclasses import dataclass

from bettong.held_time import HeldTime
from bettong.identifiers import NO_SEQUENCE, Origin, SequenceNumber
from bettong.ingest.refusal import exhausted
from bettong.v1.ingest_pb2 import Receipt
from bettong_sender.tracing import TracedFrame


@dataclass(slots=True, eq=False)
class Entry:
    """One frame in flight. Its records may be answered before it is known how many there are.

    `sequence` is 0 until its frame was parsed. `size`: bytes that it counts for in the sender's buffer, until
    `released`. `appended`: the log has been given a part of it, so its answers are pending. `watermark_ns`: that of
    its records. `traced`: of a sampled frame, once it was parsed.
    """

    sequence: SequenceNumber
    credits: int
    size: int = 0
    appends: int | None = None
    answered: int = 0
    failed: bool = False
    appended: bool = False
    released: bool = False
    dead_letters: int = 0
    watermark_ns: int = 0
    traced: TracedFrame | None = None

    @property
    def is_answered(self) -> bool:
        """Whether the log has answered for every record."""
        return self.appends == self.answered

    @property
    def is_durable(self) -> bool:
        """Whether every record is in the log for good."""
        return self.is_answered and not self.failed


class Ledger:
    """A session's frames in flight in their order, and the credits of its client."""

    def __init__(self, origin: Origin, *, window: int) -> None:
        """`window`: the most credits that the client holds or has in flight."""
        self.acknowledged = NO_SEQUENCE
        # For how long the client has had no credit.
        self.without_credit = HeldTime()
        # Of the newest acknowledged frame; 0 while unknown.
        self.watermark_ns = 0
        # Up to here the client has receipts.
        self._reported = NO_SEQUENCE
        self._origin = origin
        self._window = window
        self._held = 0
        self._frames = 0
        self._in_flight: deque[Entry] = deque()
        self._dead_letters = 0

    @property
    def credits(self) -> int:
        """What the client holds."""
        return self._held

    @property
    def in_flight(self) -> int:
        """The client's frames that are not acknowledged."""
        return self._frames

    @property
    def is_complete(self) -> bool:
        """Whether everything that was taken is acknowledged."""
        return not self._in_flight

    @property
    def is_final(self) -> bool:
        """Whether nothing that is in flight can be acknowledged any more."""
        return not self._in_flight or self._in_flight[0].failed

    def opening(self, acknowledged: SequenceNumber) -> Entry:
        """The entry of the session's OPEN records: it costs no credit, and holds back what follows.

        `acknowledged`: up to there all of the stream is known to be durable; not what the client says of it.
        """
        self.acknowledged = self._reported = acknowledged
        entry = Entry(self.acknowledged, credits=0)
        self._in_flight.append(entry)
        return entry

    def grant(self, *, full: bool) -> int:
        """New credits for the client: what the window leaves, or none while the sender's buffer is full."""
        granted = 0 if full else self._window - self._held - self._frames
        self._held += granted
        if self._held:
            self.without_credit.end()
        else:
            self.without_credit.begin()
        return granted

    def spend(self, sequence: SequenceNumber, size: int) -> Entry:
        """A frame came in. Raises Refusal (RESOURCE_EXHAUSTED) when the client had no credit for it.

        `sequence`: 0 when the frame is not parsed yet; the parser sets it in the entry.
        """
        if self._held == 0:
            raise exhausted(
                f"a frame of {self._origin!r} was sent without a credit; a session holds at most"
                f" {self._window}: wait for a receipt that grants more"
            )
        self._held -= 1
        self._frames += 1
        if not self._held:
            self.without_credit.begin()
        entry = Entry(sequence, credits=1, size=size)
        self._in_flight.append(entry)
        return entry

    def drop(self, entry: Entry) -> None:
        """The frame was refused, and the session with it: no receipt is due for it."""
        self._in_flight.remove(entry)

    def advance(self) -> None:
        """Acknowledges the frames up to the first one that is not durable."""
        while self._in_flight and self._in_flight[0].is_durable:
            entry = self._in_flight.popleft()
            # Frames that are resent may lie below what is durable already.
            self.acknowledged = max(self.acknowledged, entry.sequence)
            self.watermark_ns = max(self.watermark_ns, entry.watermark_ns)
            self._frames -= entry.credits
            self._dead_letters += entry.dead_letters

    def receipt(self, *, full: bool) -> Receipt | None:
        """The client's next receipt; None when nothing has changed for it."""
        self.advance()
        granted = self.grant(full=full)
        if self.acknowledged == self._reported and granted == 0:
            return None
        self._reported = self.acknowledged
        receipt = Receipt(acknowledged=self.acknowledged, credits=granted, dead_letters=self._dead_letters)
        self._dead_letters = 0
        return receipt
