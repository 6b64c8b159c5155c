"""The ledger of one session: which frames are durable, and the client's credits. Pure; used from one thread.

    credits that the client holds + its frames in flight <= window

A frame is durable when all of its records are; a session is acknowledged up to the last frame before the first one that
is not durable.
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
    """One frame in flight. Its records may be acknowledged before their number is known.

    `sequence` is 0 until the frame was parsed. `size`: its bytes in the sender's buffer, until `released`.
    `appended`: some of its records were passed to the log, so answers are pending. `watermark_ns`: that of its
    records. `traced`: of a sampled frame, once it was parsed.
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
        """Whether every record is durable in the log."""
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
        # The client has receipts up to here.
        self._reported = NO_SEQUENCE
        self._origin = origin
        self._window = window
        self._held = 0
        self._frames = 0
        self._in_flight: deque[Entry] = deque()
        self._dead_letters = 0

    @property
    def credits(self) -> int:
        """The credits that the client holds."""
        return self._held

    @property
    def in_flight(self) -> int:
        """The client's frames that are not acknowledged."""
        return self._frames

    @property
    def is_complete(self) -> bool:
        """Whether no frame is in flight."""
        return not self._in_flight

    @property
    def is_final(self) -> bool:
        """Whether no frame in flight can be acknowledged any more."""
        return not self._in_flight or self._in_flight[0].failed

    def opening(self, acknowledged: SequenceNumber) -> Entry:
        """The entry of the session's OPEN records: it costs no credit, and holds back what follows.

        `acknowledged`: the stream is known to be durable up to here, whatever the client claims.
        """
        self.acknowledged = self._reported = acknowledged
        entry = Entry(self.acknowledged, credits=0)
        self._in_flight.append(entry)
        return entry

    def grant(self, *, full: bool) -> int:
        """New credits for the client: the rest of the window, or none while the sender's buffer is full."""
        granted = 0 if full else self._window - self._held - self._frames
        self._held += granted
        if self._held:
            self.without_credit.end()
        else:
            self.without_credit.begin()
        return granted

    def spend(self, sequence: SequenceNumber, size: int) -> Entry:
        """Takes a credit for a frame that arrived. Raises Refusal (RESOURCE_EXHAUSTED) when the client had none.

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
        """Removes a refused frame, which ends the session: it gets no receipt."""
        self._in_flight.remove(entry)

    def advance(self) -> None:
        """Acknowledges the frames up to the first one that is not durable."""
        while self._in_flight and self._in_flight[0].is_durable:
            entry = self._in_flight.popleft()
            # Resent frames may lie below the durable sequence.
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
