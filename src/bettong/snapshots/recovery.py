"""Decides where a partition's fold resumes: facts in, decision out.

The log's records from `first` on are to be folded. The newest usable state at or below `first` is used, and the records
between are replayed; without any state the fold starts at offset 0.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from bettong.snapshots.chain import Increment, chains


class StateLocation(Enum):
    """Where a state is, nearest first."""

    MEMORY = "memory"
    SAVED = "saved"
    NOWHERE = "nowhere"


@dataclass(frozen=True, slots=True)
class StateCandidate:
    """A state that could be used: one in memory, a saved one (with its increments), or a new one at offset 0."""

    location: StateLocation
    offset: int
    chain: tuple[Increment, ...] = ()


def candidates(first: int, *, memory: int | None, saved: Iterable[Increment]) -> tuple[StateCandidate, ...]:
    """All states from which `first` can be reached, best first: least replay, then nearest, then fewest increments.

    If a candidate turns out to be damaged, the next one costs more replay and leads to the same state.
    """
    found = [
        *([StateCandidate(StateLocation.MEMORY, memory)] if memory is not None and memory <= first else []),
        StateCandidate(StateLocation.NOWHERE, 0),
    ]
    usable = chains([each for each in saved if each.offset <= first])
    found.extend(StateCandidate(StateLocation.SAVED, each[-1].offset, each) for each in usable)
    order = list(StateLocation)
    return tuple(sorted(found, key=lambda each: (-each.offset, order.index(each.location), len(each.chain))))


def reaches(candidate: StateCandidate, *, first: int, log_start: int) -> bool:
    """Whether the log still holds all records from the candidate's offset up to `first`."""
    return candidate.offset == first or candidate.offset >= log_start
