"""How long no result of a partition came, and the changes of the assignment meanwhile.

worker killed ──> partitions are assigned to the workers left ──> results again: a worker is lost
worker starts ──> partitions are assigned to all workers      ──> results again: a worker comes
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

LOST, COMES = "a worker is lost", "a worker comes"
# A pause that begins later than this after an assignment was not caused by it.
AFTER_S = 1.0
# Of the pauses that end in the same fraction of a second only the longest is kept.
_KEPT_PER_S = 10
_ASSIGNED = re.compile(r"^(\d{4}-\S+) .*partitions are assigned .*\bmembers=(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PartitionPause:
    """The time between two results of a partition; Unix times."""

    begun_s: float
    ended_s: float

    @property
    def lasting_ms(self) -> float:
        """The duration."""
        return (self.ended_s - self.begun_s) * 1e3


class PartitionPauses:
    """The pauses of a sink: of those that end in the same tenth of a second, only the longest is kept."""

    def __init__(self) -> None:
        self._newest_s: dict[int, float] = {}
        self._longest: dict[int, PartitionPause] = {}

    def record_result(self, partition: int, now_s: float) -> None:
        """Records that results of a partition came. Times never go back."""
        before_s = self._newest_s.get(partition)
        self._newest_s[partition] = now_s
        if before_s is None:
            return
        pause, at = PartitionPause(before_s, now_s), int(now_s * _KEPT_PER_S)
        kept = self._longest.get(at)
        if kept is None or kept.begun_s > before_s:
            self._longest[at] = pause

    def since(self, since_s: float) -> list[PartitionPause]:
        """Pauses that began at `since_s` or later, ordered by their ends."""
        return [each for _, each in sorted(self._longest.items()) if each.begun_s >= since_s]


@dataclass(frozen=True, slots=True)
class AssignmentChange:
    """Partitions were reassigned, because the number of workers changed. Unix time."""

    at_s: float
    before: int
    after: int

    @property
    def why(self) -> str:
        """LOST or COMES."""
        return LOST if self.after < self.before else COMES


def assignment_changes(log: str) -> list[AssignmentChange]:
    """The changes in a processor's log, if that is text. Under micro-batch the log has none."""
    assigned = [
        (datetime.fromisoformat(at).timestamp(), int(members)) for at, members in _ASSIGNED.findall(log)
    ]
    return [
        AssignmentChange(at_s, before, after)
        for (_, before), (at_s, after) in pairwise(assigned)
        if after != before
    ]


def longest_pauses(
    pauses: Sequence[PartitionPause], changes: Iterable[AssignmentChange]
) -> Mapping[str, float]:
    """In ms: of all pauses, as "", and by cause, of those that a change fell into or came just before."""
    around = ((each.why, [pause for pause in pauses if _is_around(pause, each)]) for each in changes)
    found: dict[str, float] = {}
    for why, group in (("", pauses), *around):
        if group:
            found[why] = max(found.get(why, 0.0), *(each.lasting_ms for each in group))
    return found


def _is_around(pause: PartitionPause, change: AssignmentChange) -> bool:
    return pause.ended_s >= change.at_s and pause.begun_s <= change.at_s + AFTER_S
