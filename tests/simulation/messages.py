"""Messages and states of random graphs. `at`: a message's event time; functions that make one leave it out."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any

import bettong
from bettong import Width

KEYS = ("a", "b", "äö")
SLOTS_PER_KEY = 3
# How much a state keeps of what came.
RECENT_MAX = 3
_VALUES = (-3, 0, 1, 2, 3, 5, 7, 13, 40, 100, 150, 300)


@dataclass(slots=True)
class Item:
    """A slot belongs to one key: `key_by("slot")` keeps the messages of a slot in the order of their key."""

    key: Annotated[str, Width(4)]
    slot: bettong.u8
    value: bettong.i32
    at: int = 0


@dataclass(slots=True)
class Part:
    """Narrow: a number beyond 255 or a tag of more than three bytes does not fit."""

    key: Annotated[str, Width(4)]
    slot: bettong.u8
    small: bettong.u8
    tag: Annotated[str, Width(3)]
    at: int = 0


@dataclass(slots=True)
class Note:
    """With text of any length and a list, which are not compiled."""

    key: Annotated[str, Width(4)]
    slot: bettong.u8
    text: str
    at: int = 0
    marks: list[bettong.i32] = field(default_factory=list)


MESSAGES: tuple[type[Any], ...] = (Item, Part, Note)


@dataclass(slots=True)
class Kept:
    """A state of numbers."""

    count: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Spot:
    """A value of a state."""

    slot: int = 0
    value: int = 0


@dataclass(slots=True)
class Nest:
    """A state of states, a list and a value, which may be compiled."""

    kept: Kept = field(default_factory=Kept)
    last: Spot = Spot()
    recent: Annotated[list[int], bettong.AtMost(RECENT_MAX)] = field(default_factory=list)


@dataclass(slots=True)
class Span:
    """Of windows of a text key, which may have no messages: so it has no slot. A total beyond 255 does not fit."""

    key: Annotated[str, Width(4)]
    start: int
    count: int
    total: bettong.u8
    different: int


@dataclass(slots=True)
class Alarm(Kept):
    """A state with timers. `key` and `slot`: of the newest message."""

    key: Annotated[str, Width(4)] = ""
    slot: bettong.u8 = 0
    ring: bettong.LogTimer = bettong.NEVER
    late: bettong.LogTimer = bettong.NEVER


@dataclass(slots=True)
class Reminder(Alarm):
    """With timers of both clocks."""

    ring: bettong.Timer = bettong.NEVER


@dataclass(slots=True)
class Held:
    """A state that holds messages."""

    part: Part = field(default_factory=lambda: Part("", 0, 0, ""))
    item: Item | None = None


def random_message(message: type[Any], random: Random, at_ns: int) -> Any:
    """Of a class, at an event time."""
    slot = random.randrange(len(KEYS) * SLOTS_PER_KEY)
    key = KEYS[slot // SLOTS_PER_KEY]
    if message is Item:
        return Item(key, slot, random.choice(_VALUES), at_ns)
    if message is Part:
        return Part(
            key, slot, random.choice([0, 1, 7, 100, 200, 255]), random.choice(["", "ä", "abc"]), at_ns
        )
    return Note(key, slot, random.choice(["", "ab", "äöü", "x" * 40]), at_ns, [len(key)] * (slot % 3))
