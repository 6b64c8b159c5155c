"""Functions that random graphs are made of.

The functions misbehave where the contract lets them: they raise for some values, give what does not fit, change the
messages that they take, give one object several times, keep results in their state to change them later. None changes
a message's `key` or `slot`, so that results can be told by key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import bettong
from bettong import RowIndexes
from tests.simulation.messages import RECENT_MAX, Held, Item, Kept, Nest, Note, Part, Spot


def shrink(item: Item) -> Part:
    if item.value == 13:
        raise ValueError("thirteen")
    return Part(item.key, item.slot, item.value, "s")


@bettong.vectorized
def shrink_all(item: Item) -> Part:
    if np.any(item.value == 13):
        raise ValueError("thirteen")
    return Part(item.key, item.slot, item.value, "s")


def grow(part: Part) -> Item:
    if part.small == 7:
        raise ValueError("seven")
    return Item(part.key, part.slot, part.small - 3 if part.small < 200 else 2**31)


@bettong.vectorized
def grow_all(part: Part) -> Item:
    if np.any(part.small == 7):
        raise ValueError("seven")
    grown: Any = np.where(np.less(part.small, 200), part.small - 3, 2**31)
    return Item(part.key, part.slot, grown)


def write(item: Item) -> Note:
    if item.value == 2:
        raise ValueError("two")
    return Note(item.key, item.slot, "x" * (item.value % 5))


@bettong.vectorized
def write_all(item: Item) -> Note:
    if np.any(item.value == 2):
        raise ValueError("two")
    text: Any = pa.array(["x" * (each % 5) for each in np.asarray(item.value).tolist()], pa.string())
    return Note(item.key, item.slot, text)


def label(item: Item) -> Note:
    """Gives text that is none, and text that is no UTF-8."""
    text: Any = {5: None, 100: "\ud800"}.get(item.value, "l")
    return Note(item.key, item.slot, text)


def read(note: Note) -> Item:
    """Changes its message behind its result."""
    found = Item(note.key, note.slot, 10 * len(note.text))
    note.text += "!"
    note.marks.append(-1)
    return found


def relabel(part: Part) -> Part:
    return Part(part.key, part.slot, part.small, part.tag + "ab")


def spoil(item: Item) -> Item:
    """Changes its message, which is also its result, and raises for some of them after that."""
    item.value += 1000
    if item.value == 1013:
        raise ValueError("spoilt")
    return item


def spoil_part(part: Part) -> Part:
    """Changes its message to what does not fit, and gives another one."""
    small, part.small, part.tag = part.small, -1, "far too long"
    return Part(part.key, part.slot, small, "p")


_REUSED = Part("", 0, 0, "")


def reuse(item: Item) -> Part:
    """Gives one object each time."""
    _REUSED.key, _REUSED.slot, _REUSED.small, _REUSED.tag = item.key, item.slot, item.value, "r"
    return _REUSED


def lose(item: Item) -> Item:
    """Gives None where it must give a message."""
    lost: Any = None
    return item if item.value != 5 else lost


def even(item: Item) -> bool:
    if item.value == 13:
        raise ValueError("odd")
    return item.value % 2 == 0


@bettong.vectorized
def all_even(item: Item) -> bool:
    if np.any(item.value == 13):
        raise ValueError("odd")
    found: bool = item.value % 2 == 0
    return found


def pry(item: Item) -> bool:
    """Changes its message, and raises for some of them after that."""
    value, item.value = item.value, 99
    if value == 40:
        raise KeyError("forty")
    return value > 0


def narrow(part: Part) -> bool:
    return part.small < 100


@bettong.vectorized
def all_narrow(part: Part) -> bool:
    return part.small < 100


def reported(note: Note) -> bool:
    note.text = ""
    note.marks.clear()
    return True


def split(item: Item) -> list[Part]:
    """Results of which some fit and others do not."""
    if item.value == 13:
        raise ValueError("thirteen")
    return [Part(item.key, item.slot, item.value * step, "f") for step in range(1, 4)]


@bettong.vectorized
def split_all(item: Item) -> tuple[Part, RowIndexes]:
    if np.any(item.value == 13):
        raise ValueError("thirteen")
    rows = np.repeat(np.arange(len(np.asarray(item.value))), 3)
    small: Any = np.asarray(item.value)[rows] * np.tile(np.arange(1, 4), len(rows) // 3)
    key: Any = np.asarray(item.key)[rows]
    slot: Any = np.asarray(item.slot)[rows]
    return Part(key, slot, small, "f"), rows


def halve(item: Item) -> list[Part]:
    if item.value == 13:
        raise ValueError("thirteen")
    half = abs(item.value) // 2 % 200
    return [Part(item.key, item.slot, half, "h1"), Part(item.key, item.slot, half + 1, "h2")]


@bettong.vectorized
def halve_all(item: Item) -> tuple[Part, RowIndexes]:
    if np.any(item.value == 13):
        raise ValueError("thirteen")
    rows = np.repeat(np.arange(len(np.asarray(item.value))), 2)
    half: Any = np.repeat(np.abs(item.value) // 2 % 200, 2)
    half[1::2] += 1
    tag: Any = np.where(np.arange(len(rows)) % 2 == 0, b"h1", b"h2")
    key: Any = np.asarray(item.key)[rows]
    slot: Any = np.asarray(item.slot)[rows]
    return Part(key, slot, half, tag), rows


def again(item: Item) -> Iterator[Item]:
    """Yields its message and one object over and over, changed in between; raises half-way for some."""
    yield item
    found = Item(item.key, item.slot, 0)
    for step in range(2):
        found.value = item.value = item.value + step
        yield found
        if item.value == 41:
            raise ValueError("half-way")


def echo(item: Item) -> list[Item]:
    """Lists its message twice, and None."""
    item.value += 1
    nothing: Any = None
    return [item, nothing, item]


def spell(note: Note) -> Iterator[Part]:
    for step, character in enumerate(note.text):
        yield Part(note.key, note.slot, step, character)


def tally(item: Item, kept: Kept) -> Part | None:
    """Raises after a change; some totals do not fit."""
    kept.count += 1
    kept.total += item.value
    if item.value == 13:
        raise ValueError("thirteen")
    if kept.total % 3 == 0:
        return None
    return Part(item.key, item.slot, kept.total % 300, "t")


def nest(item: Item, state: Nest) -> Part | None:
    """Raises after a change; some sums do not fit."""
    state.kept.count += 1
    state.kept.total += item.value + state.last.value
    state.last = Spot(item.slot, item.value)
    if len(state.recent) == RECENT_MAX:
        state.recent.pop(0)
    state.recent.append(item.value)
    if item.value == 40:
        raise ValueError("forty")
    if state.recent[0] == 13:
        return None
    return Part(item.key, item.slot, (state.kept.total + state.recent[0]) % 300, "n")


def tally_part(part: Part, kept: Kept) -> Part | None:
    kept.count += 1
    kept.total += 2 * part.small + kept.count
    if part.small == 7:
        raise ValueError("seven")
    return Part(part.key, part.slot, kept.total % 300, "tp")


@bettong.vectorized
def tally_all(item: Item, kept: Kept, key_rows: RowIndexes) -> tuple[Part, RowIndexes]:
    totals: list[int] = []
    rows: list[int] = []
    for row, (value, key_row) in enumerate(pairs(item.value, key_rows)):
        _counted(kept, key_row, value)
        if value == 13:
            raise ValueError("thirteen")
        total = int(columns_of(kept).total[key_row])
        if total % 3:
            totals.append(total % 300)
            rows.append(row)
    return parts_of(item, rows, totals, "t")


@bettong.vectorized
def tally_all_parts(part: Part, kept: Kept, key_rows: RowIndexes) -> tuple[Part, RowIndexes]:
    totals: list[int] = []
    for small, key_row in pairs(part.small, key_rows):
        _counted(kept, key_row, 2 * small)
        columns_of(kept).total[key_row] += columns_of(kept).count[key_row]
        if small == 7:
            raise ValueError("seven")
        totals.append(int(columns_of(kept).total[key_row]) % 300)
    return parts_of(part, list(range(len(totals))), totals, "tp")


def steps(item: Item, kept: Kept) -> list[Part]:
    """Several results, some of which do not fit, with a change of the state between them; raises half-way for some."""
    found = []
    for step in range(item.value % 4):
        kept.count += 1
        if item.value == 7 and step == 2:
            raise ValueError("half-way")
        found.append(Part(item.key, item.slot, kept.count * 37 % 300, "n"))
    return found


@bettong.vectorized
def all_steps(item: Item, kept: Kept, key_rows: RowIndexes) -> tuple[Part, RowIndexes]:
    counts: list[int] = []
    rows: list[int] = []
    for row, (value, key_row) in enumerate(pairs(item.value, key_rows)):
        for step in range(value % 4):
            _counted(kept, key_row, 0)
            if value == 7 and step == 2:
                raise ValueError("half-way")
            counts.append(int(columns_of(kept).count[key_row]) * 37 % 300)
            rows.append(row)
    return parts_of(item, rows, counts, "n")


def keep_inside(item: Item, held: Held) -> Part:
    """Gives an object of its state, and changes it the next time."""
    held.part.key, held.part.slot = item.key, item.slot
    held.part.small += 50
    return held.part


def keep_part_inside(part: Part, held: Held) -> Part:
    held.part.key, held.part.slot = part.key, part.slot
    held.part.small += part.small
    return held.part


def whole(note: Note, state: Note) -> Note:
    """Gives its state."""
    state.key, state.slot = note.key, note.slot
    state.text += f"{len(note.text)}."
    state.marks += [*note.marks, len(note.text)]
    return state


def hoard(item: Item, held: Held) -> Item:
    """Keeps its message, gives it, and changes it the next time."""
    if held.item is not None:
        held.item.value = -77
    held.item = item
    return item


def pour(item: Item, held: Held) -> Iterator[Part]:
    """Yields an object of its state over and over, changed in between; raises half-way for some."""
    held.part.key, held.part.slot = item.key, item.slot
    for step in range(3):
        held.part.small += step
        yield held.part
        if item.value == 1 and step == 1:
            raise ValueError("half-way")


def scatter(item: Item, kept: Kept) -> list[Part]:
    """Of its items one is None, and one does not fit."""
    kept.count += 1
    nothing: Any = None
    wide = Part(item.key, item.slot, 0, "wide")
    return [Part(item.key, item.slot, kept.count, "x"), nothing, wide, Part(item.key, item.slot, 1, "y")]


def by_key(message: Item | Part | Note) -> str:
    """As the field."""
    return message.key


def by_both(message: Item | Part | Note) -> tuple[str, int]:
    """As the fields."""
    return message.key, message.slot


def by_slot(item: Item) -> int:
    """As the field, but it changes its message and refuses some."""
    if item.value == 300:
        raise ValueError("no slot")
    item.value = 0
    return item.slot


def coded(item: Item) -> bytes:
    """The bytes of a message: its slot first. Changes its message, and refuses some."""
    if item.value == -3:
        raise ValueError("not that one")
    text = f"{item.slot}:{item.key}:{item.value}"
    item.value = 0
    return text.encode()


def pairs(values: Any, key_rows: RowIndexes) -> Iterable[tuple[int, int]]:
    return zip(np.asarray(values).tolist(), key_rows.tolist(), strict=True)


def columns_of(state: Kept) -> Any:
    """What a vectorized function gets: the fields are columns."""
    return state


def _counted(kept: Kept, key_row: int, more: int) -> None:
    columns_of(kept).count[key_row] += 1
    columns_of(kept).total[key_row] += more


def parts_of(message: Any, rows: list[int], small: list[int], tag: str) -> tuple[Part, RowIndexes]:
    where = np.array(rows, np.int64)
    column: Any = np.array(small, np.int64)
    return Part(message.key[where], message.slot[where], column, tag), where
