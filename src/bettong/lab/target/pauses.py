"""How long no result of a partition came, and what moved partitions meanwhile.

worker killed ──> partitions are assigned to those that are left ──> results again: a worker is lost
worker there  ──> partitions are assigned to all                 ──> results again: a worker comes
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

LOST, COMES = "a worker is lost", "a worker comes"
# A pause that begins so long after an assignment has nothing to do with it.
AFTER_S = 1.0
# Of the pauses that end in such a part of a second the longest is kept.
_KEPT_PER_S = 10
_ASSIGNED = re.compile(r"^(\d{4}-\S+) .*partitions are assigned .*\bmembers=(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PartitionPause:
    """Between two results of a partition; Unix times."""

    begun_s: float
    ended_s: float

    @property
    def lasting_ms(self) -> float:
        """How long it was."""
        return (self.ended_s - self.begun_s) * 1e3


class PartitionPauses:
    """Of a sink; the longest of each tenth of a second is kept."""

    def __init__(self) -> None:
        self._newest_s: dict[int, float] = {}
        self._longest: dict[int, PartitionPause] = {}

    def note(self, partition: int, now_s: float) -> None:
        """Results of a partition came. Times never go back."""
        before_s = self._newest_s.get(partition)
        self._newest_s[partition] = now_s
        if before_s is None:
            return
        pause, at = PartitionPause(before_s, now_s), int(now_s * _KEPT_PER_S)
        kept = self._longest.get(at)
        if kept is None or kept.begun_s > before_s:
            self._longest[at] = pause

    def since(self, since_s: float) -> list[PartitionPause]:
        """Those that began from a time on, by their ends."""
        return [each for _, each in sorted(self._longest.items()) if each.begun_s >= since_s]


@dataclass(frozen=True, slots=True)
class AssignmentChange:
    """Partitions were assigned anew, for there was another number of workers. Unix time."""

    at_s: float
    before: int
    after: int

    @property
    def why(self) -> str:
        """LOST or COMES."""
        return LOST if self.after < self.before else COMES


def assignment_changes(log: str) -> list[AssignmentChange]:
    """What a processor's log, in lines of text, tells of them. Under micro-batch, and in JSON, it tells of none."""
    said = [(datetime.fromisoformat(at).timestamp(), int(members)) for at, members in _ASSIGNED.findall(log)]
    return [
        AssignmentChange(at_s, before, after)
        for (_, before), (at_s, after) in pairwise(said)
        if after != before
    ]


def longest_pauses(
    pauses: Sequence[PartitionPause], changes: Iterable[AssignmentChange]
) -> Mapping[str, float]:
    """In ms: of all, as "", and of those that a change fell into, or was just before, by why it was made."""
    around = ((each.why, [pause for pause in pauses if _meets(pause, each)]) for each in changes)
    found: dict[str, float] = {}
    for why, group in (("", pauses), *around):
        if group:
            found[why] = max(found.get(why, 0.0), *(each.lasting_ms for each in group))
    return found


def _meets(pause: PartitionPause, change: AssignmentChange) -> bool:
    return pause.ended_s >= change.at_s and pause.begun_s <= change.at_s + AFTER_S
