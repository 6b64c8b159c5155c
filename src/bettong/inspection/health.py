"""Whether a processor makes progress: facts in, verdict out. Pure; `bettong health` collects the facts.

A processor has stalled when records wait for it and nothing was folded for a while, or when it no longer reports. What
a restart does not fix does not count as a stall: a Kafka or a Redis that is away.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bettong.identifiers import TopicPartition
from bettong.metrics import LAG, STANDBY, STATE, lag


@dataclass(frozen=True, slots=True)
class Facts:
    """One check. `speaks`: whether its live record exists. `lag`: records in the log, not yet folded.

    `folded`: the sum of the offsets that its partitions have reached. `reported`: its own report of `lag`, without what
    came since its partitions last reported; None where it has none.
    """

    speaks: bool
    lag: int
    folded: int
    reported: int | None = None

    @property
    def waiting(self) -> int:
        """The records that wait, as far as is known: a worker may have folded what came since its last report."""
        return self.lag if self.reported is None else min(self.lag, self.reported)


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of earlier checks: the last `folded`, and since when (Unix s) nothing has moved."""

    folded: int
    since_s: float


def facts_of(
    *,
    speaks: bool,
    ends: Mapping[TopicPartition, int],
    offsets: Mapping[TopicPartition, int],
    reported: int | None = None,
) -> Facts:
    """From where logs end, and the next offset of each partition that was ever folded, by (topic, partition).

    A partition that has reported no offset counts only while none has: Redis may have lost what others reported.
    """
    waiting = lag(ends, offsets) if offsets else sum(ends.values())
    return Facts(speaks, waiting, sum(offsets.values()), reported)


def observed(facts: Facts | None, seen: Seen | None, now_s: float) -> Seen:
    """The result to remember after a check. `facts`: None when Kafka or Redis did not answer."""
    if facts is None:
        return Seen(seen.folded if seen else 0, now_s)
    moves = seen is None or facts.folded != seen.folded or facts.lag == 0
    if seen is not None and not (facts.speaks and moves):
        return Seen(facts.folded, seen.since_s)
    return Seen(facts.folded, now_s)


def has_started(record: Mapping[str, str]) -> bool:
    """Whether its live record says that a schedule runs here, or that this processor stands by for another one.

    A processor that waits for a held-up partition reports its lag; one that waits for Kafka or a restart reports none.
    """
    state = record.get(STATE.name)
    return state in {"running", STANDBY} or (state == "waiting" and LAG.name in record)
