"""The clients of a simulated world, and their sessions in its senders."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from bettong.edges.redis_store import Claim, Granted
from bettong.identifiers import TopicPartition
from bettong.ingest.session import Append, Session
from bettong.v1.ingest_pb2 import IngestFrame
from bettong_sender.ledger import Entry, Ledger
from tests.simulation.delivery.parts import frames_of


@dataclass(eq=False, slots=True)
class Running:
    """A session in some sender, alive or not: what is under way to the log goes on."""

    pod: int
    session: Session
    ledger: Ledger
    claim: Claim
    granted: Granted
    certain_until_ms: float
    live: bool = True
    in_flight: dict[TopicPartition, deque[tuple[Append, Entry]]] = field(default_factory=dict)

    def hand_over(self, appends: list[Append], entry: Entry) -> None:
        entry.appends = len(appends)
        for each in appends:
            self.in_flight.setdefault(TopicPartition(each.topic, each.partition), deque()).append(
                (each, entry)
            )


@dataclass(eq=False, slots=True)
class Client:
    """Who feeds a stream from an input that can be read again. An ephemeral one is never anybody's successor.

    `next`: the index of the next frame to send; `reached`: of the first one that was never sent.
    """

    number: int
    origin: str
    identity: str
    ephemeral: bool = False
    acknowledged: int = 0
    next: int = 0
    reached: int = 0
    credits: int = 0
    session: Running | None = None

    @property
    def frames(self) -> list[IngestFrame]:
        """Its input."""
        return frames_of(self.number)

    @property
    def is_through(self) -> bool:
        """Whether it holds receipts for all that it has sent."""
        return self.reached == 0 or self.acknowledged >= self.frames[self.reached - 1].sequence

    @property
    def due(self) -> tuple[int, int]:
        """How many of its frames count at least: those with a receipt; and at most: those that were ever sent."""
        return sum(frame.sequence <= self.acknowledged for frame in self.frames), self.reached
