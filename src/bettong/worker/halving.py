"""Finds the messages and timers of a record that kill the process that folds it, by folding parts in a child. Pure.

A part is the rows up to some index, without those found so far. A row is guilty if the part that ends with it dies,
while the part before it survives; it is left out, and the search goes on with the rows after it:

    rows        0 1 2 3 4 5 6 7         5 kills, and 6
    survives    0 1 2 3
    dies        0 1 2 3 4 5             5 is guilty
    dies        0 1 2 3 4   6 7         6 is guilty
    survives    0 1 2 3 4     7

A timer that kills is named by the fold that dies of it, and left out by that name. A fold that dies of a timer says
nothing against the messages.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bettong.worker.exclusions import Excluded, ExcludedTimer, Exclusion


@dataclass(frozen=True, slots=True)
class Death:
    """How a fold died. `reason`: for people; `computation`: the one at work; `index`: in the frame, if known.

    `owner`: the computation whose timers fired then; `timer`: which one, if known, as in `ExcludedTimer`.
    """

    reason: str
    computation: str
    index: int | None = None
    owner: str = ""
    timer: bytes = b""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A fold that was stopped before it had shown whether it dies. `reason`: why, for people."""

    reason: str


# Folds these rows of a frame, given by their indexes in order, without these timers; None: it survives.
FoldPart = Callable[[Sequence[int], Sequence[ExcludedTimer]], Death | Unknown | None]


def halved(
    offset: int,
    rows: int,
    fold: FoldPart,
    *,
    guilty_max: int,
    is_late: Callable[[], bool],
    died_at: int | None = None,
    known: Exclusion | None = None,
) -> Exclusion | Unknown | None:
    """What to exclude from a record of `rows` messages, so that the rest survives; None: nothing.

    `died_at`: the row at which workers died: folded alone first, and guilty when it dies. `known`: what is excluded
    already; the result includes it. A fold that is Unknown ends the search, with what was found, if anything. After
    `guilty_max` rows the next guilty one and all rows after it are excluded; once it `is_late`, all after the last part
    that survived. A guilty row costs about log2(rows) folds, three where the index of its death is known; a timer costs
    one. After `guilty_max` timers, once late, or where a timer is unknown, all timers of its computation are excluded.
    """
    known = known or Exclusion(offset)
    found, timers = [*known.rows], [*known.timers]
    out = dict(Exclusion(offset, tuple(found)).of_frame(rows))
    left = [row for row in range(rows) if row not in out]
    survives = 0  # how many of the rows left are known to survive

    def ended(unknown: Unknown | None) -> Exclusion | Unknown | None:
        is_more = len(found) + len(timers) > len(known.rows) + len(known.timers)
        return _exclusion(offset, found, timers) if is_more else unknown

    if died_at in left and len(found) < guilty_max:
        alone = _guilty_alone(died_at, lambda part: fold(part, timers))
        if isinstance(alone, Unknown):
            return alone
        if alone is not None:
            left.remove(died_at)
            found.append(alone)
    while (death := fold(left, timers)) is not None:
        if isinstance(death, Unknown):
            return ended(death)
        late = is_late()
        if death.owner:
            if (timer := _timer_to_exclude(death, timers, is_any=late or len(timers) >= guilty_max)) is None:
                return Exclusion(offset, record=death.reason)
            timers.append(timer)
            continue
        unread = fold([], timers) if survives == 0 else None
        if isinstance(unread, Unknown):
            return ended(unread)
        if not left or (unread is not None and not unread.owner):
            return Exclusion(offset, record=(unread or death).reason)
        if not late:
            first = _first_guilty(left, survives, death, lambda part: fold(part, timers))
            if isinstance(first, Unknown):
                return ended(first)
            survives, death = first
        if late or len(found) >= guilty_max:
            rest = Excluded(left[survives], rows, death.computation, death.reason)
            return _exclusion(offset, [*(each for each in found if each.first < rest.first), rest], timers)
        index = left.pop(survives)
        found.append(Excluded(index, index + 1, death.computation, death.reason))
    return ended(None)


def _guilty_alone(
    row: int, fold: Callable[[Sequence[int]], Death | Unknown | None]
) -> Excluded | Unknown | None:
    """The row to exclude where it dies alone; None where it survives, or where its record dies without any row."""
    death = fold([row])
    if death is None or isinstance(death, Unknown):
        return death
    if death.owner or fold([]) is not None:
        return None
    return Excluded(row, row + 1, death.computation, death.reason)


def _exclusion(offset: int, found: Sequence[Excluded], timers: Sequence[ExcludedTimer]) -> Exclusion:
    return Exclusion(offset, tuple(sorted(found, key=lambda each: each.first)), timers=tuple(timers))


def _timer_to_exclude(death: Death, known: Sequence[ExcludedTimer], *, is_any: bool) -> ExcludedTimer | None:
    """The timer to exclude; None where all timers of its computation are excluded already."""
    names = {(each.owner, each.timer) for each in known}
    if (death.owner, b"") in names:
        return None
    is_named = not is_any and (death.owner, death.timer) not in names
    return ExcludedTimer(death.owner, death.timer if is_named else b"", death.computation, death.reason)


def _first_guilty(
    left: Sequence[int], survives: int, death: Death, fold: Callable[[Sequence[int]], Death | Unknown | None]
) -> tuple[int, Death] | Unknown:
    """The position in `left` of the first guilty row, and its death. The first `survives` rows survive, all die."""
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
        each = fold(left[:middle])
        if isinstance(each, Unknown):
            return each
        if each is not None and not each.owner:
            dies, death = middle, each
        else:
            survives = middle
    return survives, death
