"""The delivery rule: what makes results effectively once.

Every consumer of frames (a step, a receiver, a subscriber) keeps the highest sequence that it has taken from
each origin, and saves that table in the same object as its state. With

    previous <= highest[origin] < sequence        the frame is taken, highest[origin] = sequence
    sequence <= highest[origin]                   a duplicate: a retry, a replay, a zombie
    previous >  highest[origin]                   a gap: an earlier frame was lost on its way

Duplicates and gaps are skipped and counted. A gap heals: its origin was never acknowledged past it, so both
frames come again. OPEN carries a sequence up to which all of an origin's frames for this partition lie in the log
before it: `highest = max(highest, previous)`. END says the same, and that nobody sends anything new under that origin.

An origin is forgotten when it was silent for long, by the age of the table and not by a clock:

    age += min(max(0, ingest_ns - clock), AGE_STEP_NS)        with each record; then clock = max(clock, ingest_ns)

So a clock that is set forward by days ages a table by a second, and an origin lives for REMEMBERED_RECORDS records at
least, whatever the clocks of senders say: a sender that sees the offsets of its records needs no clock to know that
it was not forgotten. A clock that is far ahead holds the age up only until BEHIND_MAX records did not reach it.

Pure: no clock, no I/O. Everything that decides what is forgotten is part of the table, so a replay forgets alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from bettong.identifiers import NO_SEQUENCE, Origin, SequenceNumber

# A client silent for this long is forgotten, so that the table stays bounded by the clients of a day. Origins of
# stages are never forgotten: they are as few as the application has partitions, they cannot open again, and a
# stage may well have nothing to say to one partition for days.
ORIGIN_TTL_NS = 24 * 3600 * 1_000_000_000

# What one record ages a table at most. Small, so that a jump of a clock counts for little and an origin outlives many
# records; not smaller, so that a partition with a record a second still forgets within a day or two.
AGE_STEP_NS = 1_000_000_000

# Between two records of an origin with fewer others than these in between, nobody forgets it.
REMEMBERED_RECORDS = ORIGIN_TTL_NS // AGE_STEP_NS

# An origin that has ended is kept for this long, so that late records of it are known to be duplicates: five times
# as long as the log's writer tries to append one (its delivery timeout is 2 min).
ENDED_TTL_NS = 600 * 1_000_000_000

# So many records in a row below the table's clock: it is the clock that was wrong. Where clocks differ for long, the
# table ages by a second more for so many records, so it takes 86 million of them to forget for no other reason.
BEHIND_MAX = 1_000

# Origins whose gap is noted, for people to see. With more of them the oldest show as much.
GAPS_MAX = 64

# A sweep is a pass over the table, or over what has ended: once every 1/16 of the time to live, which is a multiple for
# the longer one.
_SWEEPS_PER_TTL = 16
_SWEEP_NS = ENDED_TTL_NS // _SWEEPS_PER_TTL


class Verdict(Enum):
    """What the rule says of a frame."""

    TAKE = "take"
    DUPLICATE = "duplicate"
    GAP = "gap"


def judge(highest: SequenceNumber, *, sequence: SequenceNumber, previous: SequenceNumber) -> Verdict:
    """The rule for one data frame, given the highest sequence taken from its origin (0: none)."""
    if sequence <= highest:
        return Verdict.DUPLICATE
    if previous > highest:
        return Verdict.GAP
    return Verdict.TAKE


def is_client(origin: Origin) -> bool:
    """Whether `<source>/<client's stream>`, and not a stage's `<target>/<stage>/<partition>`."""
    return origin.count("/") == 1


@dataclass(frozen=True, slots=True)
class Gap:
    """Frame `sequence` was skipped, for `previous` did not come before it; `age_ns`: when its origin last sent."""

    origin: Origin
    sequence: SequenceNumber
    previous: SequenceNumber
    age_ns: int


@dataclass(slots=True)
class DeliveryTable:
    """`highest[origin]`, and the age at which each origin was last heard of, or ended: it is in one of the two.

    `gaps` decides nothing, and is saved so that people see it whoever folds next: the first frame of each origin that
    waits for one that was lost, the oldest first. One whose origin sends no more for ENDED_TTL_NS is of a client that
    died, and nobody waits for it.
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
        """A table that starts from known sequences, as a position carries them."""
        return cls(highest=dict(highest))

    def take(
        self, origin: Origin, *, sequence: SequenceNumber, previous: SequenceNumber, now_ns: int
    ) -> Verdict:
        """Judges a data frame and, when it is to be taken, notes it. `now_ns`: its `ingest_ns`."""
        verdict = judge(self.highest.get(origin, NO_SEQUENCE), sequence=sequence, previous=previous)
        if verdict is Verdict.TAKE:
            self.highest[origin] = sequence
            self.ended_ns.pop(origin, None)
        self._hear(origin, now_ns)
        if verdict is Verdict.GAP:
            self._miss(origin, sequence, previous)
        return verdict

    def open(self, origin: Origin, *, acknowledged: SequenceNumber, now_ns: int) -> None:
        """Notes that all of the origin's frames up to `acknowledged` lie in the log before this record."""
        self.highest[origin] = max(self.highest.get(origin, NO_SEQUENCE), acknowledged)
        self.ended_ns.pop(origin, None)
        self._hear(origin, now_ns)

    def end(self, origin: Origin, *, acknowledged: SequenceNumber, now_ns: int, kept: bool = False) -> None:
        """Notes that the origin has sent its last frame, `acknowledged`; what is late is still reported for a while.

        `kept`: for as long as of an origin that was silent since, for its frames may be sent again. Nothing ends for
        who has taken later frames: then another session goes on.
        """
        ends = self.highest.get(origin, acknowledged + 1) <= acknowledged
        if ends:
            self.highest[origin] = acknowledged
        self._hear(origin, now_ns)
        if ends:
            # Of an END that comes again, the origin may have been forgotten just now.
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
        """Runs when the age, `before_ns` until now, has come to another multiple of the shorter time."""
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
