"""Reference tables of random graphs: what their rows are, which row is whose, and what is made of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import bettong
from bettong.application.joins.referenced import On, ReferenceHow
from bettong.application.key import Key
from tests.simulation.functions import by_key, by_slot
from tests.simulation.messages import KEYS, SLOTS_PER_KEY, Item, Note, Part


@dataclass
class Grade:
    """Of a key, which each message has as a field."""

    key: str
    points: bettong.i32


@dataclass
class Place:
    """Of a slot, by a name that no message has."""

    where: bettong.u8
    height: bettong.u8


@dataclass(frozen=True)
class RowTable:
    """`ons`: how a message may say which row is its own; by message class, those that others have no use for."""

    key: str
    first: Callable[[], list[Any]]
    ons: Sequence[On | None]
    more: Mapping[type[Any], Sequence[On]]


@dataclass(frozen=True)
class Joining:
    """How messages meet rows of a class. `on`: see `Stream.join_reference`."""

    row: type[Any]
    on: On | None
    how: ReferenceHow

    def __str__(self) -> str:
        return f"{self.row.__name__} on={getattr(self.on, '__name__', self.on)} how={self.how}"


def first_grades() -> list[Grade]:
    return [Grade("a", 4), Grade("äö", 60)]


def first_places() -> list[Place]:
    return [Place(slot, 10 * slot) for slot in range(0, len(KEYS) * SLOTS_PER_KEY, 2)]


TABLES: Mapping[type[Any], RowTable] = {
    Grade: RowTable("key", first_grades, (None, by_key), {}),
    Place: RowTable("where", first_places, ("slot",), {Item: (by_slot,)}),
}
# Streams of these keys need not say which place is theirs.
_SLOT_KEYS: set[Key | None] = {"slot", by_slot}


def ons_of(row: type[Any], message: type[Any], keys: set[Key | None]) -> list[On | None]:
    """How messages of a stream may say which row is theirs. `keys`: those that the stream may have."""
    table = TABLES[row]
    by_own_key: list[On | None] = [None] if row is Place and keys <= _SLOT_KEYS else []
    return [*table.ons, *table.more.get(message, ()), *by_own_key]


def random_rows(row: type[Any], random: Random) -> list[Any]:
    """Of some keys; of none at times."""
    if row is Grade:
        keys = random.sample([*KEYS, "none"], random.randrange(4))
        return [Grade(key, random.choice([-3, 0, 5, 13, 40, 300])) for key in keys]
    slots = random.sample(range(len(KEYS) * SLOTS_PER_KEY + 1), random.randrange(9))
    return [Place(slot, random.choice([0, 1, 7, 200])) for slot in slots]


def grade(item: Item, row: Grade | None) -> Part | None:
    """Raises, gives nothing or what does not fit, and changes both."""
    points = -1 if row is None else row.points
    total = item.value + points
    item.value = -9
    if row is not None:
        row.points = 99
    if total % 11 == 5:
        raise ValueError("five")
    return None if total % 11 == 3 else Part(item.key, item.slot, total, "g")


def lift(part: Part, row: Place | None) -> Part:
    """Changes its message, which it gives; it may not fit."""
    if part.small == 7:
        raise ValueError("seven")
    part.small += 0 if row is None else row.height
    return part


def sign(note: Note, row: Grade | None) -> Note:
    """Adds to its message, which it gives."""
    if row is None:
        note.marks.append(-7)
    else:
        note.marks.append(row.points)
        row.points = 0
    return note


def move(item: Item, row: Place | None) -> Item:
    """Its row's height is its value."""
    if row is None:
        return Item(item.key, item.slot, -1)
    height, row.height = row.height, 255
    if height == 1:
        raise KeyError("one")
    return Item(item.key, item.slot, height)
