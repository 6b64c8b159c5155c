"""The delivery rule: what makes results effectively once.

Every consumer of frames (a step, a receiver, a subscriber) keeps the highest sequence that it has taken from
each origin, and saves that table in the same object as its state. With

    previous <= highest[origin] < sequence        the frame is taken, highest[origin] = sequence
    sequence <= highest[origin]                   a duplicate: a retry, a replay, a zombie
    previous >  highest[origin]                   a gap: an earlier frame was lost on its way

Duplicates and gaps are skipped and counted. A gap heals: its origin was never acknowledged past it, so both
frames come again. OPEN carries the last sequence acknowledged to a client, so all of it lies in the log
before: `highest = max(highest, previous)`.

Pure: no clock, no I/O. Time is the clock of the log (`ingest_ns`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

# A client silent for this long is forgotten, so that the table stays bounded by the clients of a day. Origins of
# stages are never forgotten: they are as few as the application has partitions, they cannot open again, and a
# stage may well have nothing to say to one partition for days.
ORIGIN_TTL_NS = 24 * 3600 * 1_000_000_000

# Sweeping costs a pass over the table: once every 1/16 of the time to live keeps it below 1 pass in 90 min.
_SWEEPS_PER_TTL = 16


class Verdict(Enum):
    """What the rule says of a frame."""

    TAKE = "take"
    DUPLICATE = "duplicate"
    GAP = "gap"


def judge(highest: int, *, sequence: int, previous: int) -> Verdict:
    """The rule for one data frame, given the highest sequence taken from its origin (0: none)."""
    if sequence <= highest:
        return Verdict.DUPLICATE
    if previous > highest:
        return Verdict.GAP
    return Verdict.TAKE


@dataclass(slots=True)
class DeliveryTable:
    """`highest[origin]`, and when each origin was last heard of by the clock of the log."""

    highest: dict[str, int] = field(default_factory=dict)
    heard_ns: dict[str, int] = field(default_factory=dict)
    next_sweep_ns: int = 0
    ttl_ns: int = ORIGIN_TTL_NS

    @classmethod
    def of(cls, highest: Mapping[str, int]) -> "DeliveryTable":
        """A table that starts from known sequences, as a position carries them."""
        return cls(highest=dict(highest))

    def take(self, origin: str, *, sequence: int, previous: int, now_ns: int) -> Verdict:
        """Judges a data frame and, when it is to be taken, notes it."""
        verdict = judge(self.highest.get(origin, 0), sequence=sequence, previous=previous)
        if verdict is Verdict.TAKE:
            self.highest[origin] = sequence
        self._heard(origin, now_ns)
        return verdict

    def open(self, origin: str, *, acknowledged: int, now_ns: int) -> None:
        """Notes that a client (re)connected, holding receipts up to `acknowledged`."""
        self.highest[origin] = max(self.highest.get(origin, 0), acknowledged)
        self._heard(origin, now_ns)

    def _heard(self, origin: str, now_ns: int) -> None:
        if self.next_sweep_ns == 0:
            self.heard_ns = dict.fromkeys(self.highest, now_ns)
        elif origin in self.highest:
            self.heard_ns[origin] = now_ns
        if now_ns >= self.next_sweep_ns:
            self._sweep(now_ns)

    def _sweep(self, now_ns: int) -> None:
        """Forgets silent clients. Runs at moments that the log alone decides, so a replay forgets alike."""
        silent = [
            name for name, heard in self.heard_ns.items() if heard + self.ttl_ns < now_ns and _is_client(name)
        ]
        for name in silent:
            del self.highest[name], self.heard_ns[name]
        self.next_sweep_ns = now_ns + self.ttl_ns // _SWEEPS_PER_TTL


def _is_client(origin: str) -> bool:
    """Whether `<source>/<client's stream>`, and not a stage's `<target>/<stream>/<partition>`."""
    return origin.count("/") == 1
