"""Functions of random graphs that read what a computation could not process. Some fail at it, too."""

from __future__ import annotations

import json
import re
from typing import Any

from bettong import DeadLetter, Window
from tests.simulation.messages import KEYS, SLOTS_PER_KEY, Item, Kept, Note, Part
from tests.simulation.window_functions import slot_of

# How an execution mode says that a value does not fit differs; which field it is does not.
_FIELD = re.compile(r"field '\w+'")


def key_and_slot(dead: DeadLetter) -> tuple[str, int]:
    """Those of the message; of what fired, some that belong to its key."""
    fields = json.loads(dead.message)
    if "timer" not in fields:
        return fields["key"], fields["slot"]
    key = fields["key"]
    slot = slot_of(tuple(key) if isinstance(key, list) else key, [])
    return KEYS[slot // SLOTS_PER_KEY], slot


def why(dead: DeadLetter) -> str:
    """The reason, alike in each execution mode."""
    found = _FIELD.search(dead.reason)
    return found[0] if found else dead.reason


def mourn(dead: DeadLetter) -> Note:
    if "thirteen" in dead.reason:
        raise KeyError("again")
    key, slot = key_and_slot(dead)
    return Note(key, slot, f"{dead.computation}: {why(dead)}")


def unfit(dead: DeadLetter) -> bool:
    return "field" in dead.reason


def recall(dead: DeadLetter) -> list[Item]:
    key, slot = key_and_slot(dead)
    return [Item(key, slot, len(why(dead))), Item(key, slot, 13)]


def grieve(dead: DeadLetter, kept: Kept) -> Part:
    kept.count += 1
    kept.total += len(why(dead))
    key, slot = key_and_slot(dead)
    return Part(key, slot, kept.total, str(kept.count))


class Losses:
    """Accumulators are (slot, how long the reason is), in the order in which they came to be together."""

    def initial(self) -> list[list[int]]:
        return []

    def update(self, accumulator: list[list[int]], dead: DeadLetter) -> list[list[int]]:
        if "seven" in dead.reason:
            raise ValueError("no more")
        return [*accumulator, [key_and_slot(dead)[1], len(why(dead))]]

    def combine(self, left: list[list[int]], right: list[list[int]]) -> list[list[int]]:
        return [*left, *right]

    def output(self, key: Any, accumulator: list[list[int]], window: Window) -> Item | None:
        slot = slot_of(key, accumulator)
        total = sum(number for _, number in accumulator) - 1000 * (not window.final)
        return Item(KEYS[slot // SLOTS_PER_KEY], slot, total + window.end)
