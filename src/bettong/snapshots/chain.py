"""Increments and their chains, by which a large state is saved often and cheaply.

An increment holds the keys that changed since the one before it, and some of the others, so that every key is written
again in time, and no increment has to hold all of them. Once all have been written, the increment at which that round
began is the new root: nothing older is needed. A state is the chain from a root on, where each increment overrides the
ones before it.

    offset   100    140    180    220    260    300
    root     100    100    100    140    140    140
             all    round begins  .. ends       next round
             of it                (140, 180, 220: every key)

A state of few keys is written whole each time: every increment is its own root.

Pure: stores keep the increments, `bettong.worker` makes and loads them.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

_NAME = re.compile(r"(\d{1,19})-(\d{1,19})-(\d{1,19})")

# If the newest root is damaged, the chain from the one before it costs more replay, but the state is not lost.
ROOTS_KEPT = 2


@dataclass(frozen=True, slots=True, order=True)
class Increment:
    """The identity of an increment, known without reading it.

    `offset`: it is of the state after all records below. `since`: the offset of the increment before it, on which it
    builds. `root`: the offset of the oldest increment that is needed with it; its own when it is whole.
    """

    offset: int
    since: int
    root: int

    @property
    def name(self) -> str:
        """Its name in stores."""
        return f"{self.offset}-{self.since}-{self.root}"

    @classmethod
    def parse(cls, name: str) -> "Increment | None":
        """The increment of a name; None for any other name."""
        found = _NAME.fullmatch(name)
        return cls(*(int(part) for part in found.groups())) if found else None


def increments_of(names: Iterable[str]) -> list[Increment]:
    """The increments among names, lowest offset first; other names are skipped."""
    return sorted(each for each in map(Increment.parse, names) if each is not None)


def chain(known: Iterable[Increment], last: Increment) -> tuple[Increment, ...] | None:
    """The increments that make up the state of `last`, oldest first; None when some are missing."""
    return _back_to_root(_by_offset(known), last)


def chains(known: Collection[Increment]) -> list[tuple[Increment, ...]]:
    """The complete chains, that of the newest state first."""
    by_offset = _by_offset(known)
    found = (_back_to_root(by_offset, each) for each in sorted(known, reverse=True))
    return [each for each in found if each is not None]


def needed_from(known: Collection[Increment]) -> int:
    """The offset of the oldest increment that a chain from the newest `ROOTS_KEPT` roots needs; 0 without any."""
    roots = sorted({each.root for each in known})
    return roots[-ROOTS_KEPT:][0] if roots else 0


def superfluous(known: Collection[Increment]) -> list[Increment]:
    """The increments that no chain from the newest `ROOTS_KEPT` roots needs."""
    first = needed_from(known)
    return [each for each in known if each.offset < first]


def _by_offset(known: Iterable[Increment]) -> dict[int, list[Increment]]:
    found: dict[int, list[Increment]] = {}
    for each in known:
        found.setdefault(each.offset, []).append(each)
    return found


def _back_to_root(by_offset: Mapping[int, list[Increment]], last: Increment) -> tuple[Increment, ...] | None:
    found = [last]
    while found[-1].offset > last.root:
        before = [each for each in by_offset.get(found[-1].since, ()) if each.offset < found[-1].offset]
        if not before or before[0].offset < last.root:
            return None
        # Of two increments of one offset, saved by an owner and a zombie, that with the newer root needs fewer others.
        found.append(max(before, key=lambda each: each.root))
    return tuple(reversed(found))
