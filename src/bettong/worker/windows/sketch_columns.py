"""Registers and buckets of a column's values, and the results of those of windows: see `ApproxDistinct` and `Quantile`.

`tables`: a row for each window, which locates its items (see `state.item_tables`).
"""

from fractions import Fraction
from functools import cache
from math import ceil
from typing import Any

import numpy as np

from bettong.application.windows.approx_distinct import HASH_BITS, REGISTER_BITS, REGISTERS, ApproxDistinct
from bettong.application.windows.quantile import (
    BUCKETS_MAX,
    EXPONENT_MIN,
    NUMBER_MIN,
    PER_DOUBLING,
    Quantile,
    middle,
    widened,
)
from bettong.frames.columns import Array
from bettong.machine_code import allocating, inlined, kernel
from bettong.schema.fields import Kind
from bettong.worker.state.item_tables import DENSE, NUMBER_LIMIT, list_items
from bettong.worker.windows.value_hashes import hashes_of

_widened = inlined(widened)


def registers_of(kind: Kind, column: Array) -> tuple[Array, Array]:
    """See `ApproxDistinct.value`."""
    hashes = hashes_of(kind, column)
    ranks = np.empty(len(hashes), np.int64)
    _rank(hashes, ranks)
    return (hashes % np.uint64(REGISTERS)).astype(np.int64), ranks


def buckets_of(column: Array) -> Array:
    """See `Quantile.value`. The buckets of numbers that are not finite mean nothing."""
    numbers = column.astype(np.float64)
    sizes = np.abs(np.where(np.isfinite(numbers), numbers, 0.0))
    mantissas, exponents = np.frexp(sizes)
    buckets = (exponents.astype(np.int64) - EXPONENT_MIN) * PER_DOUBLING
    buckets += (mantissas * (2 * PER_DOUBLING)).astype(np.int64)
    return np.where(sizes < NUMBER_MIN, 0, np.where(numbers > 0, buckets, -buckets))


def estimates(aggregate: ApproxDistinct, tables: Array, items: Array) -> Array:
    """See `ApproxDistinct.result`."""
    counts = np.empty(len(tables), np.int64)
    _count_registers(tables, items, counts)
    touched, which = np.unique(counts, return_inverse=True)
    known = [_estimate_of(aggregate, count) for count in touched.tolist()]
    found = np.array([-1 if each is None else each for each in known], np.int64)[which]
    for row in np.flatnonzero(found < 0).tolist():
        registers = dict(items_in(tables[row], 1, items)[:, ::-1].tolist())
        found[row] = aggregate.result(registers)
    return found


@cache  # no more than there are registers
def _estimate_of(aggregate: ApproxDistinct, registers: int) -> int | None:
    """The estimate of so many registers where it does not depend on their numbers; else None."""
    least, most = (dict.fromkeys(range(registers), number) for number in (1, NUMBER_LIMIT - 1))
    found = aggregate.result(least)
    return found if found == aggregate.result(most) else None


def quantiles(aggregate: Quantile, messages: Array, tables: Array, items: Array) -> Array:
    """See `Quantile.result`. `messages`: how many each window has."""
    share = Fraction(str(aggregate.q))
    counts, which = np.unique(messages, return_inverse=True)
    targets = np.array([max(1, ceil(share * count)) for count in counts.tolist()], np.int64)[which]
    found = np.zeros((len(tables), 2), np.int64)
    room = np.empty((int(tables[:, 1].max(initial=0)), 2), np.int64)
    _find_buckets(targets, tables, items, room, found)
    buckets, which = np.unique(found, axis=0, return_inverse=True)
    return np.array([middle(*each) for each in buckets.tolist()])[which.reshape(-1)]


def items_in(table: Array, item_words: int, items: Array) -> Array:
    """The items of one table, a row each, number first."""
    count = int(table[1])
    found = np.empty((REGISTERS if count == DENSE else count, 1 + item_words), np.int64)
    listed = list_items(int(table[0]), count, item_words, items, found) if table[0] else 0
    return found[:listed]


@kernel
def _rank(hashes: Any, ranks: Any) -> None:
    """One more than the leading zeros of each hash, without the bits that choose a register."""
    for row in range(len(hashes)):
        left, rank = hashes[row] >> np.uint64(REGISTER_BITS), HASH_BITS - REGISTER_BITS + 1
        while left:
            left >>= np.uint64(1)
            rank -= 1
        ranks[row] = rank


@allocating
def _count_registers(tables: Any, items: Any, counts: Any) -> None:
    """How many registers each window has that are not 0."""
    room = np.empty((REGISTERS, 2), np.int64)
    for row in range(len(tables)):
        counts[row] = tables[row, 1]
        if counts[row] == DENSE:
            counts[row] = list_items(tables[row, 0], DENSE, 1, items, room)


@allocating
def _find_buckets(targets: Any, tables: Any, items: Any, room: Any, found: Any) -> None:
    """Of each window the bucket of its number of rank `targets`, and how often the number of buckets was halved."""
    for row in range(len(tables)):
        count = list_items(tables[row, 0], tables[row, 1], 1, items, room)
        order = np.argsort(room[:count, 1])
        halvings = 0
        while _touched(room, order, halvings) > BUCKETS_MAX:
            halvings += 1
        left = targets[row]
        for at in order:
            left -= room[at, 0]
            if left <= 0:
                found[row, 0], found[row, 1] = _widened(room[at, 1], halvings), halvings
                break


@kernel
def _touched(room: Any, order: Any, halvings: Any) -> Any:
    """How many distinct buckets these are after so many halvings."""
    if len(order) <= BUCKETS_MAX:
        return len(order)
    touched, before = 1, _widened(room[order[0], 1], halvings)
    for at in order:
        bucket = _widened(room[at, 1], halvings)
        if bucket != before:
            touched, before = touched + 1, bucket
    return touched
