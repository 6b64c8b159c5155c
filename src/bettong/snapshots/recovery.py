"""Where a partition's fold goes on from: facts in, decision out.

The log's records from `first` on are to be folded. The newest usable state at or below `first` is taken, and
what lies between is folded again; with no state at all the fold starts at offset 0.
"""

from dataclasses import dataclass
from enum import Enum


class Place(Enum):
    """Where a state lies, nearest first."""

    MEMORY = "memory"
    LOCAL = "local"
    STORE = "store"
    NOWHERE = "nowhere"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A state that could be taken: the one at `offset` in `place`, or a new one (nowhere, offset 0)."""

    place: Place
    offset: int


def candidates(
    first: int, *, memory: int | None, local: list[int], store: list[int]
) -> tuple[Candidate, ...]:
    """All states that `first` can be reached from, best first: least replay, then nearest.

    A candidate may turn out damaged; the next one then costs more replay and gives the same state.
    """
    found = [
        *([Candidate(Place.MEMORY, memory)] if memory is not None else []),
        *(Candidate(Place.LOCAL, offset) for offset in local),
        *(Candidate(Place.STORE, offset) for offset in store),
        Candidate(Place.NOWHERE, 0),
    ]
    order = list(Place)
    usable = [each for each in found if each.offset <= first]
    return tuple(sorted(usable, key=lambda each: (-each.offset, order.index(each.place))))


def reaches(candidate: Candidate, *, first: int, log_start: int) -> bool:
    """Whether the log still holds all records from the candidate's offset up to `first`."""
    return candidate.offset == first or candidate.offset >= log_start
