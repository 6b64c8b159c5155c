"""Dead letters counted by computation and reason: what went wrong, and how often. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bettong.inspection.dead_letters import Found

# Nobody reads more; reasons that contain a value of the message may all differ.
REASONS_MAX = 200
OTHER_REASONS = "other reasons: `bettong dead-letters list APP.py --each` names each"
_REASON_CHARACTERS_MAX = 300


class ReasonKey(NamedTuple):
    """The computation, source or sink that could not process a message, and the reason's first line."""

    computation: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """The dead letters of one reason: the count; of the last one, when its message came (Unix ns), id and origin.

    `last_id` is empty where it may be that of a copy.
    """

    key: ReasonKey
    count: int
    last_ns: int
    last_id: str
    last_origin: str


@dataclass(frozen=True, slots=True)
class ReasonCounts:
    """`skipped`: records at the beginning of the topic that were not read, because there are too many."""

    rows: Mapping[ReasonKey, ReasonRow] = field(default_factory=dict)
    skipped: int = 0

    @property
    def total(self) -> int:
        """Of all reasons."""
        return sum(row.count for row in self.rows.values())


def counted(before: ReasonCounts, dead_letters: Iterable[Found]) -> ReasonCounts:
    """The counts with these added. Reasons beyond the first REASONS_MAX count as OTHER_REASONS of their computation."""
    rows = dict(before.rows)
    for found in dead_letters:
        dead_letter = found.dead_letter
        key = ReasonKey(dead_letter.computation, first_line(dead_letter.reason))
        if key not in rows and len(rows) >= REASONS_MAX:
            key = ReasonKey(dead_letter.computation if len(rows) < 2 * REASONS_MAX else "", OTHER_REASONS)
        known = rows.get(key)
        if known is None or found.time_ns >= known.last_ns:
            last_id = "" if found.may_be_copy else str(found.id)
            last_ns, last_origin = found.time_ns, dead_letter.origin
        else:
            last_ns, last_id, last_origin = known.last_ns, known.last_id, known.last_origin
        count = known.count + 1 if known is not None else 1
        rows[key] = ReasonRow(key, count, last_ns, last_id, last_origin)
    return ReasonCounts(rows, before.skipped)


def most_frequent(counts: ReasonCounts) -> list[ReasonRow]:
    """The rows, the greatest count first, and of equal ones the newest."""
    return sorted(counts.rows.values(), key=lambda row: (-row.count, -row.last_ns, row.key))


def by_computation(counts: ReasonCounts) -> Counter[str]:
    """The count of each computation; "" stands for computations beyond the bound."""
    found: Counter[str] = Counter()
    for row in counts.rows.values():
        found[row.key.computation] += row.count
    return found


def first_line(reason: str) -> str:
    """The line that identifies a reason: its first, or all lines joined where the first only names a class."""
    first = reason.strip().partition("\n")[0].strip()
    return " ".join((reason if first.endswith(":") else first).split())[:_REASON_CHARACTERS_MAX]
