"""Whether a processor goes on: facts in, verdict out. Pure; `bettong health` finds the facts.

A processor has stalled when records wait for it and nothing was folded for a while, or when it says nothing any
more. What a new start does not mend counts as going on: a Kafka or a Redis that is away.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bettong.identifiers import TopicPartition
from bettong.metrics import LAG, STANDBY, STATE, lag


@dataclass(frozen=True, slots=True)
class Facts:
    """One check. `speaks`: its live record is there. `lag`: records in the log, not yet folded.

    `folded`: the sum of the offsets that its partitions have reached.
    """

    speaks: bool
    lag: int
    folded: int


@dataclass(frozen=True, slots=True)
class Seen:
    """What the checks before have shown: the last `folded`, and since when (Unix s) nothing has moved."""

    folded: int
    since_s: float


def facts_of(
    *,
    speaks: bool,
    ends: Mapping[TopicPartition, int],
    offsets: Mapping[TopicPartition, int],
) -> Facts:
    """From where logs end, and the next offset of each partition that was ever folded, by (topic, partition).

    A partition that has reported no offset counts only while none has: Redis may have lost what others reported.
    """
    waiting = lag(ends, offsets) if offsets else sum(ends.values())
    return Facts(speaks, waiting, sum(offsets.values()))


def observed(facts: Facts | None, seen: Seen | None, now_s: float) -> Seen:
    """What is remembered after a check. `facts`: None when Kafka or Redis did not answer."""
    if facts is None:
        return Seen(seen.folded if seen else 0, now_s)
    moves = seen is None or facts.folded != seen.folded or facts.lag == 0
    if seen is not None and not (facts.speaks and moves):
        return Seen(facts.folded, seen.since_s)
    return Seen(facts.folded, now_s)


def has_started(record: Mapping[str, str]) -> bool:
    """Whether a schedule is at work, or another processor's is and this one stands by, by its live record.

    One that waits for a partition that is held up reports its lag; one that waits for Kafka or a new start reports
    none.
    """
    state = record.get(STATE.name)
    return state in {"running", STANDBY} or (state == "waiting" and LAG.name in record)
