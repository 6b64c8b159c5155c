"""The clients of a simulated world, and their sessions in its senders."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from bettong.edges.redis_store import Claim, Granted
from bettong_sender.ledger import Entry, Ledger
from bettong_sender.session import Append, Session

Place = tuple[str, int]


@dataclass(eq=False, slots=True)
class Running:
    """A session in some sender, alive or not: what is under way to the log goes on."""

    pod: int
    stream: int
    session: Session
    ledger: Ledger
    claim: Claim
    granted: Granted
    certain_until_ms: float
    live: bool = True
    under_way: dict[Place, deque[tuple[Append, Entry]]] = field(default_factory=dict)

    def hand_over(self, appends: list[Append], entry: Entry) -> None:
        entry.appends = len(appends)
        for each in appends:
            self.under_way.setdefault((each.topic, each.partition), deque()).append((each, entry))


@dataclass(eq=False, slots=True)
class Client:
    """Who feeds a stream from an input that can be read again.

    `next`: the place of the next frame to send; `reached`: of the first one that was never sent.
    """

    stream: int
    identity: str
    acknowledged: int = 0
    next: int = 0
    reached: int = 0
    credits: int = 0
    session: Running | None = None
