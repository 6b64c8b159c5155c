"""The delivery rule: what makes results effectively once.

Every consumer of frames (a step, a receiver, a subscriber) keeps the highest sequence that it has accepted from each
origin, and saves that table in the same object as its state. With

    previous <= highest[origin] < sequence        the frame is accepted, highest[origin] = sequence
    sequence <= highest[origin]                   a duplicate: a retry, a replay, a zombie
    previous >  highest[origin]                   a gap: an earlier frame was lost

Duplicates and gaps are skipped and counted. A gap heals: its origin got no acknowledgement past it, so both frames are
sent again. OPEN carries a sequence up to which all of an origin's frames for this partition are in the log before it:
`highest = max(highest, previous)`. END carries the same, and means that the origin sends nothing new.

An origin is forgotten after a long silence, measured by the age of the table and not by a clock:

    age += min(max(0, ingest_ns - clock), AGE_STEP_NS)        with each record; then clock = max(clock, ingest_ns)

So a clock that is set forward by days ages a table by a second, and an origin is kept for at least REMEMBERED_RECORDS
records, whatever the senders' clocks: a sender knows from the offsets of its records, without a clock, that it was not
forgotten. A clock that was far ahead stops the age only until BEHIND_MAX records in a row are behind it.

Pure: no clock, no I/O. All that decides what is forgotten is part of the table, so a replay forgets the same origins.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from bettong.identifiers import NO_SEQUENCE, Origin, SequenceNumber

# A client that is silent for this long is forgotten, so that the table is bounded by the clients of a day. Origins of
# stages are never forgotten: there are only as many as partitions, they cannot open again, and a stage may have no
# output for a partition for days.
ORIGIN_TTL_NS = 24 * 3600 * 1_000_000_000

# The most that one record ages a table. Small, so that a clock's jump has little effect and an origin outlives many
# records; not smaller, so that a partition with a record a second still forgets within a day or two.
AGE_STEP_NS = 1_000_000_000

# An origin is not forgotten if fewer records of others than these lie between two of its own.
REMEMBERED_RECORDS = ORIGIN_TTL_NS // AGE_STEP_NS

# An origin that has ended is kept for this long, so that its late records are recognized as duplicates: five times the
# producer's delivery timeout of 2 min.
ENDED_TTL_NS = 600 * 1_000_000_000

# After this many records in a row behind the table's clock, the clock was wrong and is set back. While clocks differ,
# that ages the table by an extra second each time, so it takes 86 million records to forget an origin by it.
BEHIND_MAX = 1_000

# Origins whose gap is kept for people to see. Of more of them, the oldest suffice.
GAPS_MAX = 64

# A sweep is a pass over the table, or over its ended origins, every 1/16 of the TTL; the longer TTL is a multiple of
# the shorter.
_SWEEPS_PER_TTL = 16
_SWEEP_NS = ENDED_TTL_NS // _SWEEPS_PER_TTL


class Verdict(Enum):
    """The rule's result for a frame."""

    TAKE = "take"
    DUPLICATE = "duplicate"
    GAP = "gap"


def judge(highest: SequenceNumber, *, sequence: SequenceNumber, previous: SequenceNumber) -> Verdict:
    """The rule for one data frame, given the highest sequence accepted from its origin (0: none)."""
    if sequence <= highest:
        return Verdict.DUPLICATE
    if previous > highest:
        return Verdict.GAP
    return Verdict.TAKE


def is_client(origin: Origin) -> bool:
    """Whether it is a client's, `<source>/<client's stream>`, and not a stage's `<target>/<stage>/<partition>`."""
    return origin.count("/") == 1


@dataclass(frozen=True, slots=True)
class Gap:
    """Frame `sequence` was skipped, for `previous` had not arrived; `age_ns`: the age when its origin last sent."""

    origin: Origin
    sequence: SequenceNumber
    previous: SequenceNumber
    age_ns: int


@dataclass(slots=True)
class DeliveryTable:
    """`highest[origin]`, and the age at which each origin last sent, or ended: an origin is in one of these two.

    `gaps` has no effect on the rule; it is saved so that people still see it after another worker takes over: for each
    origin the first frame that waits for a lost one, the oldest first. A gap is dropped when its origin has sent
    nothing for ENDED_TTL_NS: its client has died.
    """

    highest: dict[Origin, SequenceNumber] = field(default_factory=dict)
    heard_ns: dict[Origin, int] = field(default_factory=dict)
    ended_ns: dict[Origin, int] = field(default_factory=dict)
    age_ns: int = 0
    clock_ns: int = 0
    behind: int = 0
    gaps: dict[Origin, Gap] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, highest: Mapping[Origin, SequenceNumber]) -> "DeliveryTable":
        """A table that starts from known sequences, such as those of a position."""
        return cls(highest=dict(highest))

    def take(
        self, origin: Origin, *, sequence: SequenceNumber, previous: SequenceNumber, now_ns: int
    ) -> Verdict:
        """Applies the rule to a data frame, and updates the table if it is accepted. `now_ns`: its `ingest_ns`."""
        verdict = judge(self.highest.get(origin, NO_SEQUENCE), sequence=sequence, previous=previous)
        if verdict is Verdict.TAKE:
            self.highest[origin] = sequence
            self.ended_ns.pop(origin, None)
        self._hear(origin, now_ns)
        if verdict is Verdict.GAP:
            self._miss(origin, sequence, previous)
        return verdict

    def open(self, origin: Origin, *, acknowledged: SequenceNumber, now_ns: int) -> None:
        """Notes that all of the origin's frames up to `acknowledged` are in the log before this record."""
        self.highest[origin] = max(self.highest.get(origin, NO_SEQUENCE), acknowledged)
        self.ended_ns.pop(origin, None)
        self._hear(origin, now_ns)

    def end(self, origin: Origin, *, acknowledged: SequenceNumber, now_ns: int, kept: bool = False) -> None:
        """Notes that the origin has sent its last frame, `acknowledged`; keeps it for a while, for late duplicates.

        `kept`: keeps it as long as a silent origin, for its frames may be sent again. Does nothing if later frames were
        accepted: then another session of the origin continues.
        """
        ends = self.highest.get(origin, acknowledged + 1) <= acknowledged
        if ends:
            self.highest[origin] = acknowledged
        self._hear(origin, now_ns)
        if ends:
            # On a repeated END, `_hear` may just have forgotten the origin.
            self.highest[origin] = acknowledged
            self.heard_ns.pop(origin, None)
            self.ended_ns[origin] = self.age_ns + (ORIGIN_TTL_NS - ENDED_TTL_NS if kept else 0)

    @property
    def gap(self) -> Gap | None:
        """The oldest gap that is not filled."""
        return next(iter(self.gaps.values()), None)

    def _miss(self, origin: Origin, sequence: SequenceNumber, previous: SequenceNumber) -> None:
        before = self.gaps.get(origin)
        if before is not None:
            self.gaps[origin] = replace(before, age_ns=self.age_ns)
        elif len(self.gaps) < GAPS_MAX:
            self.gaps[origin] = Gap(origin, sequence, previous, self.age_ns)

    def _fill(self, origin: Origin) -> None:
        gap = self.gaps.get(origin)
        if gap is not None and gap.previous <= self.highest.get(origin, NO_SEQUENCE):
            del self.gaps[origin]

    def _hear(self, origin: Origin, now_ns: int) -> None:
        if self.clock_ns == 0:
            self.heard_ns = dict.fromkeys(self.highest.keys() - self.ended_ns.keys(), self.age_ns)
        before_ns = self.age_ns
        self._grow_older(now_ns)
        if self.gaps:
            self._fill(origin)
        if origin in self.highest and origin not in self.ended_ns:
            self.heard_ns[origin] = self.age_ns
        if before_ns // _SWEEP_NS != self.age_ns // _SWEEP_NS:
            self._sweep(before_ns)

    def _grow_older(self, now_ns: int) -> None:
        gone_ns = now_ns - self.clock_ns
        if gone_ns > 0:
            self.age_ns += min(gone_ns, AGE_STEP_NS)
            self.clock_ns, self.behind = now_ns, 0
        elif gone_ns < 0:
            self.behind += 1
            if self.behind >= BEHIND_MAX:
                self.clock_ns, self.behind = now_ns, 0

    def _sweep(self, before_ns: int) -> None:
        """Runs when the age, which was `before_ns`, has passed a multiple of the shorter interval."""
        self._forget(self.ended_ns, ENDED_TTL_NS)
        oldest_ns = self.age_ns - ENDED_TTL_NS
        self.gaps = {name: gap for name, gap in self.gaps.items() if gap.age_ns >= oldest_ns}
        part_ns = ORIGIN_TTL_NS // _SWEEPS_PER_TTL
        if before_ns // part_ns != self.age_ns // part_ns:
            self._forget(self.heard_ns, ORIGIN_TTL_NS)

    def _forget(self, since_ns: dict[Origin, int], ttl_ns: int) -> None:
        oldest_ns = self.age_ns - ttl_ns
        silent = [name for name, since in since_ns.items() if since < oldest_ns and is_client(name)]
        for name in silent:
            del self.highest[name], since_ns[name]
