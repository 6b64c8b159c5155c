"""The accumulators of compiled built-in aggregates: words of 64 bits, loaded from columns and read into columns.

Each aggregate has as many words as its value needs: none for a count, because every window counts its messages, one for
a number, two for a sum of integers, which may outgrow 64 bits, and as many as hold it for text. A condition (`where=`)
has one more, which counts the messages that meet it. What words hold, and how two of them are folded, is decided here;
`pane_kernels` only folds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bettong.application.windows.aggregate import Aggregate, Read
from bettong.application.windows.aggregated import Aggregated
from bettong.application.windows.aggregates import Distinct, First, Last, Max, Mean, Min, Sum
from bettong.application.windows.approx_distinct import ApproxDistinct
from bettong.application.windows.compiled_windows import check_key
from bettong.application.windows.quantile import Quantile
from bettong.application.windows.ranked import Top
from bettong.frames.columns import Array, Column, Columns
from bettong.frames.fitting import fitting_values
from bettong.schema.fields import Field, Kind
from bettong.schema.schema import Schema, schema_of
from bettong.worker.state.item_tables import PANE_WORDS, ItemSegments
from bettong.worker.windows.fold_kernels import (
    ADD,
    ADD_CARRYING,
    ADD_FLOATS,
    KEEP_NEWER,
    KEEP_OLDER,
    LEAST,
    LEAST_FLOAT,
    MOST,
    MOST_FLOAT,
    Folds,
    add_each,
)
from bettong.worker.windows.gathered import Gathered, ItemValues, RankedValues
from bettong.worker.windows.value_words import ordered_words, python_values, raw_words, values_in, words_for

# The operation of integers, and of floats.
_OPERATIONS: dict[type[Any], tuple[int, int]] = {
    Min: (LEAST, LEAST_FLOAT),
    Max: (MOST, MOST_FLOAT),
    First: (KEEP_OLDER, KEEP_OLDER),
    Last: (KEEP_NEWER, KEEP_NEWER),
}
# Aggregates that keep several values of each window.
_GATHERED = (Top, Distinct, ApproxDistinct, Quantile)
# Up to here floats hold every integer, so that a division rounds once, as in Python.
_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class _Accumulator:
    """The words of one aggregate, from `start` to `stop`. `field`: what it aggregates, None for a count.

    `condition`: the field that says which messages are added; its word is that at `stop`. Counts and sums may have one.
    """

    aggregate: Aggregate
    field: Field | None
    condition: Field | None
    start: int
    stop: int

    @property
    def all_operations(self) -> list[int]:
        """The operation of each word, the condition's included."""
        return self._operations if self.condition is None else [*self._operations, ADD]

    @property
    def _operations(self) -> list[int]:
        if isinstance(self.aggregate, Sum | Mean):
            return [ADD_FLOATS] if self._is_float else [ADD_CARRYING, ADD]
        if self.field is None:
            return []
        return [_OPERATIONS[type(self.aggregate)][self._is_float]] * (self.stop - self.start)

    @property
    def _is_float(self) -> bool:
        return self.field is not None and self.field.kind is Kind.FLOAT

    @property
    def _is_carried(self) -> bool:
        """Whether it is a sum of integers, which has a second word for what outgrows the first."""
        return self.field is not None and _is_carried(self.aggregate, self.field)

    @property
    def _is_sign_flipped(self) -> bool:
        """Whether its words are compared as signed ones, but are unsigned."""
        compared = isinstance(self.aggregate, Min | Max)
        return compared and self.field is not None and self.field.dtype == np.uint64

    def leave_out(self, fits: Column, into: Array) -> None:
        """Sets the words of rows that are not added to what changes no sum."""
        if self._is_float:
            # Adding 0.0 would turn -0.0 into 0.0.
            into.view(np.float64)[0, fits == 0] = -0.0
        else:
            into[:, fits == 0] = 0

    def load(self, column: Column, into: Array) -> None:
        """Fills rows of words, one for each of its own, with the values of a column."""
        assert isinstance(column, np.ndarray)  # noqa: S101 - its width is fixed
        assert self.field is not None  # noqa: S101 - a count loads none
        words = (ordered_words if self._is_sign_flipped else raw_words)(self.field, column)
        into[: len(words)] = words
        if self._is_carried:
            into[1] = 0 if column.dtype == np.uint64 else into[0] >> 63

    def values(self, messages: Array, words: Array) -> Array:
        """The result of each row of words."""
        added = messages if self.condition is None else words[:, self.stop]
        if self.field is None:
            return added
        found = self.accumulated(words)
        if self.condition is not None and self._is_float:
            # The sum of no messages: see `leave_out`.
            found = np.where(added == 0, 0.0, found)
        if not isinstance(self.aggregate, Mean):
            return found
        if self._is_float:
            return np.asarray(found / messages)
        means = found.astype(np.float64) / messages
        wide = (found > _EXACT) | (found < -_EXACT if found.dtype != np.uint64 else False)
        for row in np.flatnonzero(wide).tolist():
            means[row] = int(found[row]) / int(messages[row])
        return means

    def accumulated(self, words: Array) -> Array:
        """The value in each row of words: in the type that it was loaded from, or a wider one, maybe Python's."""
        own = np.ascontiguousarray(words[:, self.start : self.stop])
        assert self.field is not None  # noqa: S101 - a count has no words
        if self._is_carried:
            return _wide_sums(own[:, 0], own[:, 1])
        return values_in(
            self.field, ordered_words(self.field, own, are_words=True) if self._is_sign_flipped else own
        )


class WindowWords(NamedTuple):
    """A row for each window, its message count and accumulators; and the tables of all their items."""

    words: Array
    items: Array


class Accumulators:
    """The accumulators of `bettong.aggregate` over messages of a schema, by keys of a field's type."""

    def __init__(
        self, owner: str, aggregated: Aggregated[Any], takes: Schema, key: Field, *, are_timed: bool = False
    ) -> None:
        """Raises ApplicationError where the key does not fit the result's field of that name.

        `are_timed`: the first two words are the first and the last event time.
        """
        self.schema = schema_of(aggregated.result)
        # Columns of the computation's messages, without any.
        self.nothing = Columns.of_messages(takes, [])
        self._takes = takes
        self._key = key
        self._names = list(aggregated.fields)
        self._found: dict[str, _Accumulator] = {}
        own = [LEAST, MOST] if are_timed else []
        start = len(own)
        gathered = dict[str, Aggregate]()
        for name, aggregate in aggregated.fields.items():
            if isinstance(aggregate, _GATHERED):
                gathered[name] = aggregate
                continue
            field, where = (_field(takes, each) for each in (aggregate.reads.get("of"), aggregate.where))
            stop = start + _word_count(aggregate, field)
            self._found[name] = _Accumulator(aggregate, field, where, start, stop)
            start = stop + (where is not None)
        operations = [*own, *(each for found in self._found.values() for each in found.all_operations)]
        self._gathered = _gathered(gathered, takes, len(operations))
        spare = [each.spare for each in self._gathered.values() if isinstance(each, ItemValues)]
        operations += [ADD for each in spare if each is not None]
        self._loaded = len(operations) + sum(each.rows for each in self._gathered.values())
        self.words = len(operations) + sum(each.words for each in self._gathered.values())
        kinds = [each.kind for each in self._gathered.values() if isinstance(each, ItemValues)]
        self.folds = Folds(
            np.array(operations, np.int64),
            _matrix([each.top for each in self._gathered.values() if isinstance(each, RankedValues)], 5),
            _matrix(kinds, 4),
            self.words,
            self.words - PANE_WORDS * len(kinds),
        )
        for field in self.schema.fields:
            if field.name == "key" and field.name not in self._found:
                check_key(owner, field, key.kind)

    def load(self, columns: Columns, times: Array | None = None) -> tuple[Array, Array, Array]:
        """The words that each row adds, shape (words, rows): as integers, as floats, and as integers flattened.

        `times`: event times, where they are timed.
        """
        loaded = np.empty((self._loaded, columns.length), np.int64)
        if times is not None:
            loaded[:2] = times
        for each in self._found.values():
            if each.field is not None:
                column = columns.columns[self._takes.position(each.field.name)]
                each.load(column, loaded[each.start : each.stop])
            if each.condition is not None:
                fits = columns.columns[self._takes.position(each.condition.name)]
                each.leave_out(fits, loaded[each.start : each.stop])
                loaded[each.stop] = fits
        for gathered in self._gathered.values():
            gathered.load(columns, loaded[gathered.row : gathered.row + gathered.rows])
            if isinstance(gathered, ItemValues) and gathered.spare is not None:
                loaded[gathered.spare] = gathered.nans(columns)
        return loaded, loaded.view(np.float64), loaded.reshape(-1)

    def alone(self, columns: Columns) -> WindowWords:
        """The words of windows that have one row each."""
        values, items, row = self.load(columns), ItemSegments(), 0
        words = np.zeros((columns.length, 1 + self.words), np.int64)
        while True:
            row = add_each(row, values, self.folds, words, items.arrays)
            if row == columns.length:
                return WindowWords(words, items.words)
            items.grow()

    def refused(self, columns: Columns) -> dict[int, str]:
        """The rows that an aggregate refuses, and the reason of the first one that does."""
        found = dict[int, str]()
        for each in self._gathered.values():
            for row, reason in each.refused(columns):
                found.setdefault(row, reason)
        return found

    def results(
        self, keys: Array, starts: Array, ends: Array, kept: WindowWords, are_early: Array | None = None
    ) -> tuple[Columns, dict[int, str]]:
        """The results of windows, and by window the reason why its result does not fit the schema.

        `are_early`: which of them are of open windows, if any is.
        """
        words = kept.words
        own = {"key": (self._key.kind, keys), "start": (Kind.INT, starts), "end": (Kind.INT, ends)}
        are_final = np.ones(len(keys), np.bool_) if are_early is None else ~are_early
        own["final"] = (Kind.BOOL, are_final.view(np.uint8))
        values: list[tuple[Kind, Array | list[Any]]] = []
        for field in self.schema.fields:
            if (gathered := self._gathered.get(field.name)) is not None:
                values.append(
                    (Kind.INT, gathered.values(words[:, 1:]))
                    if isinstance(gathered, RankedValues)
                    else gathered.values(words[:, 0], words[:, 1:], kept.items)
                )
            elif (found := self._found.get(field.name)) is not None:
                kind = Kind.INT if found.field is None else found.field.kind
                kind = Kind.FLOAT if isinstance(found.aggregate, Mean) else kind
                values.append((kind, found.values(words[:, 0], words[:, 1:])))
            else:
                values.append(own[field.name])
        columns = [
            _fitting_column(field, each) if isinstance(each, np.ndarray) else None
            for field, (_, each) in zip(self.schema.fields, values, strict=True)
        ]
        fit = [column for column in columns if column is not None]
        if len(fit) == len(columns):
            return Columns(self.schema, len(keys), tuple(fit)), {}
        return fitting_values(
            self.schema,
            [each if isinstance(each, list) else python_values(kind, each) for kind, each in values],
        )

    def shown(self, words: Array, items: Array) -> list[Any]:
        """The accumulators of one window as JSON can hold them; `words`, `items`: see WindowWords."""
        row, found = words.reshape(1, -1), list[Any]()
        for name in self._names:
            if name in self._gathered:
                own = self._gathered[name]
                kept = words[1:]
                found.append(own.shown(kept) if isinstance(own, RankedValues) else own.shown(kept, items))
                continue
            each = self._found[name]
            added = int(words[0] if each.condition is None else words[1 + each.stop])
            if each.field is None or not added:
                found.append(added or None)
                continue
            (value,) = python_values(each.field.kind, each.accumulated(row[:, 1 : 1 + self.words]))
            found.append([value, added] if isinstance(each.aggregate, Mean) else value)
        return found


def _field(takes: Schema, read: Read | None) -> Field | None:
    """The field that an aggregate reads: compiled ones read nothing else."""
    return takes.fields[takes.position(read)] if isinstance(read, str) else None


def _gathered(aggregates: dict[str, Aggregate], takes: Schema, word: int) -> dict[str, Gathered]:
    """The aggregates that keep several values of each window, by field of the result. `word`: their first word.

    First come the counts of NaNs, then the words of `Top`, those of items last.
    """
    of = {name: _read_field(takes, each.reads["of"]) for name, each in aggregates.items()}
    spared = [
        name
        for name, each in aggregates.items()
        if isinstance(each, Distinct) and of[name].kind is Kind.FLOAT
    ]
    spares = {name: word + index for index, name in enumerate(spared)}
    word, row = word + len(spares), word + len(spares)
    found = dict[str, Gathered]()
    for name, each in sorted(aggregates.items(), key=lambda named: not isinstance(named[1], Top)):
        where = _field(takes, each.where)
        if isinstance(each, Top):
            by = of[name] if each.by is None else _read_field(takes, each.by)
            found[name] = RankedValues(each, of[name], by, where, word, row)
        elif isinstance(each, Distinct | ApproxDistinct | Quantile):
            found[name] = ItemValues(each, of[name], where, word, row, spares.get(name))
        word, row = word + found[name].words, row + found[name].rows
    return {name: found[name] for name in aggregates}


def _matrix(found: list[list[int]], width: int) -> Array:
    return np.array(found, np.int64).reshape(-1, width)


def _read_field(takes: Schema, read: Read) -> Field:
    field = _field(takes, read)
    assert field is not None  # noqa: S101 - see `_field`
    return field


def _word_count(aggregate: Aggregate, field: Field | None) -> int:
    """How many words an aggregate of the field has."""
    return 0 if field is None else words_for(field) + _is_carried(aggregate, field)


def _is_carried(aggregate: Aggregate, field: Field) -> bool:
    return isinstance(aggregate, Sum | Mean) and field.kind is Kind.INT


def _wide_sums(lower: Array, upper: Array) -> Array:
    """Integers of 128 bits: as 64 bits where these hold all, else as Python's."""
    if np.array_equal(upper, lower >> 63):
        return lower
    if not upper.any():
        return lower.view(np.uint64)
    pairs = zip(upper.tolist(), lower.view(np.uint64).tolist(), strict=True)
    return np.array([(high << 64) + low for high, low in pairs], object)


def _fitting_column(field: Field, values: Array) -> Array | None:
    """The values as a column of the field; None where one does not fit."""
    dtype = field.dtype
    assert dtype is not None  # noqa: S101 - compiled results have fixed widths
    if field.kind is Kind.INT:
        if values.dtype == object:
            return None
        limits = np.iinfo(dtype)
        narrow = len(values) and not np.can_cast(values.dtype, dtype)
        if narrow and not limits.min <= int(values.min()) <= int(values.max()) <= limits.max:
            return None
        return values.astype(dtype)
    if field.kind is Kind.FLOAT:
        # By way of 64 bits, as Python does: an integer rounded to 32 bits directly may be another number.
        wide = values.astype(np.float64)
        with np.errstate(over="ignore"):
            numbers = wide.astype(dtype)
        return None if (np.isinf(numbers) & np.isfinite(wide)).any() else numbers
    if dtype.kind == "S" and values.dtype.itemsize > dtype.itemsize:
        is_longer = field.kind is Kind.BYTES or np.strings.str_len(values).max(initial=0) > dtype.itemsize
        if is_longer:
            return None
    return values.astype(dtype)
