"""Aggregations of windows of random graphs: they raise, give nothing or what does not fit, and change messages."""

from __future__ import annotations

from typing import Any

import bettong
from bettong import Window
from tests.simulation.messages import KEYS, SLOTS_PER_KEY, Item, Note, Part, Span


class _OfSlots:
    """Accumulators are (slot, number) of each message, in the order in which they came to be together."""

    def initial(self) -> list[list[int]]:
        return []

    def combine(self, left: list[list[int]], right: list[list[int]]) -> list[list[int]]:
        return [*left, *right]


class SlotSums(_OfSlots):
    """The same whatever the order: sliding windows and sessions put together what came at different times."""

    def update(self, accumulator: list[list[int]], item: Item) -> list[list[int]]:
        if item.value == 13:
            raise ValueError("thirteen")
        accumulator.append([item.slot, item.value])
        item.value = -5
        return accumulator

    def output(self, key: Any, accumulator: list[list[int]], window: Window) -> Part | None:
        total = (
            sum(number for _, number in accumulator) + window.start + 3 * window.end + 7 * (not window.final)
        )
        if total % 11 == 5:
            raise ValueError("five")
        if total % 11 == 3:
            return None
        slot = slot_of(key, accumulator)
        return Part(KEYS[slot // SLOTS_PER_KEY], slot, total % 300, str(len(accumulator)))


class LocalSums(SlotSums):
    """As slots and values come. It takes every message: what could not be added would not travel, where messages are
    combined before another key, and with it no word of how far event time has come.
    """

    def update(self, accumulator: list[list[int]], item: Item) -> list[list[int]]:
        found = [*accumulator, [item.slot, item.value]]
        item.value = -5
        return found

    def output(self, key: Any, accumulator: list[list[int]], window: Window) -> Part | None:
        weighed = [[slot, place * number] for place, (slot, number) in enumerate(accumulator, 1)]
        return super().output(key, weighed, window)


class PartSums(_OfSlots):
    """Of what other windows gave, among others."""

    def update(self, accumulator: list[list[int]], part: Part) -> list[list[int]]:
        if part.small == 7:
            raise KeyError("seven")
        return [*accumulator, [part.slot, part.small]]

    def output(self, key: Any, accumulator: list[list[int]], window: Window) -> Item | None:
        total = sum(number for _, number in accumulator) + 1000 * len(accumulator) - 500 * (not window.final)
        slot = slot_of(key, accumulator)
        return Item(KEYS[slot // SLOTS_PER_KEY], slot, total + window.end - window.start)


class Sequences(_OfSlots):
    """What came when: of windows that nothing is put together for."""

    def update(self, accumulator: list[list[int]], item: Item) -> list[list[int]]:
        if item.value == 40:
            raise ValueError("forty")
        accumulator.append([item.slot, item.value])
        return accumulator

    def combine(self, left: list[list[int]], right: list[list[int]]) -> list[list[int]]:
        raise AssertionError(f"{left} and {right} are of different windows")

    def output(self, key: Any, accumulator: list[list[int]], window: Window) -> Item | None:
        found = 0
        for _, number in accumulator:
            found = (31 * found + number + (not window.final)) % 1009
        if found % 13 == 1:
            raise ValueError("one")
        slot = slot_of(key, accumulator)
        return Item(KEYS[slot // SLOTS_PER_KEY], slot, found + window.start)


def _value(item: Item) -> int:
    if item.value == 7:
        raise ValueError("seven")
    return item.value


def _is_odd(item: Item) -> bool:
    return item.value % 2 == 1


def ranked() -> bettong.Aggregation[Item, Any, Note]:
    """Built-in aggregates, of which none depends on the order. The greatest slot is one of the greatest key."""
    return bettong.aggregate(
        Note,
        key=bettong.Max("key"),
        slot=bettong.Max("slot"),
        text=bettong.Min(lambda item: f"{_value(item) % 5}"),
        at=bettong.ApproxDistinct("value", where=_is_odd),
        marks=bettong.Top(3, "value", where=_is_odd, smallest=True),
    )


def totals() -> bettong.Aggregation[Item, Any, Part]:
    """What has a compiled form. Some sums, and some tags, do not fit; first and last ones depend on the order."""
    return bettong.aggregate(
        Part,
        key=bettong.First("key"),
        slot=bettong.First("slot"),
        small=bettong.Sum("value"),
        tag=bettong.Last("key"),
        at=bettong.Count(),
    )


def differing() -> bettong.Aggregation[Item, Any, Part]:
    """What is compiled and keeps more than a value."""
    return bettong.aggregate(
        Part,
        key=bettong.First("key"),
        slot=bettong.First("slot"),
        small=bettong.Distinct("value"),
        tag=bettong.Last("key"),
        at=bettong.ApproxDistinct("value"),
    )


def spans() -> bettong.Aggregation[Item, Any, Span]:
    """What is compiled and has a result of no messages."""
    return bettong.aggregate(
        Span, count=bettong.Count(), total=bettong.Sum("value"), different=bettong.Distinct("value")
    )


def part_totals() -> bettong.Aggregation[Part, Any, Item]:
    """The same of parts."""
    return bettong.aggregate(
        Item,
        key=bettong.Last("key"),
        slot=bettong.Last("slot"),
        value=bettong.Max("small"),
        at=bettong.Sum("small"),
    )


def slot_of(key: Any, accumulator: list[list[int]]) -> int:
    """One that belongs to the key."""
    if isinstance(key, tuple):
        key = key[-1] if key else 0
    own = KEYS.index(key) * SLOTS_PER_KEY if isinstance(key, str) else key
    return max((slot for slot, _ in accumulator), default=int(own))
