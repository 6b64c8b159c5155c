"""Functions that set timers, and those that are called when they fire."""

from __future__ import annotations

from typing import Any

import numpy as np

import bettong
from bettong import Fired, RowIndexes
from tests.simulation.functions import columns_of, pairs, parts_of
from tests.simulation.messages import Alarm, Item, Part


def wake(item: Item, alarm: Alarm) -> Part | None:
    """Sets one timer or the other by its value; raises when that is done for some."""
    alarm.key, alarm.slot = item.key, item.slot
    alarm.count += 1
    if item.value % 2:
        alarm.ring = item.value
    else:
        alarm.late = item.value // 2
    if item.value == 13:
        raise ValueError("thirteen")
    if item.value < 3:
        return None
    return Part(item.key, item.slot, alarm.count, "w")


@bettong.vectorized
def wake_all(item: Item, alarm: Alarm, key_rows: RowIndexes) -> tuple[Part, RowIndexes]:
    counts: list[int] = []
    rows: list[int] = []
    state = columns_of(alarm)
    for row, (value, key_row) in enumerate(pairs(item.value, key_rows)):
        state.key[key_row], state.slot[key_row] = _at(item.key, row), _at(item.slot, row)
        state.count[key_row] += 1
        if value % 2:
            state.ring[key_row] = value
        else:
            state.late[key_row] = value // 2
        if value == 13:
            raise ValueError("thirteen")
        if value >= 3:
            counts.append(int(state.count[key_row]))
            rows.append(row)
    return parts_of(item, rows, counts, "w")


def on_ring(fired: Fired[Any], alarm: Alarm) -> Part | None:
    """Sets itself again, for a time that has come and for one to come; raises, gives nothing, or what does not fit."""
    alarm.count += 1
    if fired.at % 5 == 0 and fired.at > 0:
        alarm.ring = fired.at - 4
    if fired.at % 5 == 1:
        alarm.ring = fired.at + 6
        raise ValueError("rang")
    if fired.at % 5 == 2:
        return None
    return Part(alarm.key, alarm.slot, alarm.count * 50, "r")


@bettong.vectorized
def all_on_ring(fired: Fired[Any], alarm: Alarm, key_rows: RowIndexes) -> tuple[Part, RowIndexes]:
    state, at = columns_of(alarm), np.asarray(fired.at)
    state.count += 1
    state.ring = np.where((at % 5 == 0) & (at > 0), at - 4, np.where(at % 5 == 1, at + 6, state.ring))
    if np.any(at % 5 == 1):
        raise ValueError("rang")
    rows = np.flatnonzero(at % 5 != 2)
    return Part(state.key[rows], state.slot[rows], state.count[rows] * 50, "r"), rows


def on_late(fired: Fired[Any], alarm: Alarm) -> Part | None:
    """Changes another timer."""
    alarm.ring = fired.at + 9
    return Part(alarm.key, alarm.slot, alarm.count, "l")


@bettong.vectorized
def all_on_late(fired: Fired[Any], alarm: Alarm, key_rows: RowIndexes) -> tuple[Part, RowIndexes]:
    state = columns_of(alarm)
    state.ring = np.asarray(fired.at) + 9
    return Part(state.key, state.slot, state.count, "l"), np.arange(len(state.count))


def _at(column: Any, row: int) -> Any:
    return np.asarray(column)[row]
