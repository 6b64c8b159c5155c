"""Finds the messages of a frame that kill whoever folds them, by folding parts of it where that can be lost. Pure.

A part is the rows up to some index, without those found so far. The first row at whose index a part dies, while the
part before it survives, is guilty; it is left out, and the search goes on with what is behind it:

    rows        0 1 2 3 4 5 6 7         5 kills, and 6
    survives    0 1 2 3
    dies        0 1 2 3 4 5             5 is guilty
    dies        0 1 2 3 4   6 7         6 is guilty
    survives    0 1 2 3 4     7
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bettong.worker.exclusions import Excluded, Exclusion


@dataclass(frozen=True, slots=True)
class Death:
    """How a fold ended that was lost: for people; the computation at work, and the index in the frame if known."""

    reason: str
    computation: str
    index: int | None = None


# Folds these rows of a frame, given by their indexes in order; None: it came to its end.
FoldPart = Callable[[Sequence[int]], Death | None]


def halved(
    offset: int, rows: int, fold: FoldPart, *, guilty_max: int, is_late: Callable[[], bool]
) -> Exclusion | None:
    """What to leave out of a frame of `rows` messages, so that what is left survives; None: nothing.

    Behind `guilty_max` rows the next guilty one and all that follows it are left out; when it `is_late`, all that is
    behind the last part that survived. Each guilty row costs about log2(rows) folds, three where the index of its
    death is known.
    """
    found: list[Excluded] = []
    left = list(range(rows))
    survives = 0  # so many of what is left
    while (death := fold(left)) is not None:
        if survives == 0 and (unread := fold([])) is not None:
            return Exclusion(offset, record=unread.reason)
        if not (late := is_late()):
            survives, death = _first(left, survives, death, fold)
        if late or len(found) == guilty_max:
            rest = Excluded(left[survives], rows, death.computation, death.reason)
            return Exclusion(offset, (*found, rest))
        index = left.pop(survives)
        found.append(Excluded(index, index + 1, death.computation, death.reason))
    return Exclusion(offset, tuple(found)) if found else None


def _first(left: Sequence[int], survives: int, death: Death, fold: FoldPart) -> tuple[int, Death]:
    """Where in `left` the first guilty row is, and how it kills. The part of `survives` rows lives, all of it dies."""
    dies = len(left)
    if death.index in left:
        at = left.index(death.index)
        probes = [at, at + 1]
    else:
        probes = []
    while dies - survives > 1:
        middle = probes.pop() if probes else (survives + dies) // 2
        if not survives < middle < dies:
            continue
        if (each := fold(left[:middle])) is not None:
            dies, death = middle, each
        else:
            survives = middle
    return survives, death
