"""Compiled aggregates that keep several values of each window: `Top`, `Distinct`, `ApproxDistinct`, `Quantile`.

They load words from the columns of messages, and make results from the words of windows: the values of `Top` are words
of the pane (see `top_kernels`), the items of the others are in tables (see `state.item_tables`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from bettong.application.windows.aggregates import Distinct
from bettong.application.windows.approx_distinct import ApproxDistinct
from bettong.application.windows.quantile import Quantile
from bettong.application.windows.ranked import Top
from bettong.frames.columns import Array, Column, Columns
from bettong.schema.fields import Field, Kind
from bettong.user_errors import ANY_ERROR, reason_of
from bettong.worker.state.item_tables import COUNTED, GREATEST, KEPT, PANE_WORDS
from bettong.worker.windows.sketch_columns import (
    buckets_of,
    estimates,
    items_in,
    quantiles,
    registers_of,
)
from bettong.worker.windows.value_words import ordered_words, python_values, raw_words, values_in, words_for


@dataclass(frozen=True, slots=True)
class RankedValues:
    """One `Top`: values of field `of`, ranked by field `by`.

    Its words of a window begin at `word`, its loaded rows at `row`.
    """

    aggregate: Top
    of: Field
    by: Field
    condition: Field | None
    word: int
    row: int

    @property
    def words(self) -> int:
        """How many words a window has for it."""
        return 1 + self.aggregate.count * (self._rank_words + words_for(self.of))

    @property
    def rows(self) -> int:
        """How many rows of words are loaded."""
        return 1 + self._rank_words + words_for(self.of)

    @property
    def top(self) -> list[int]:
        """See `top_kernels`."""
        return [self.word, self.row, self.aggregate.count, self._rank_words, self.rows - 1]

    @property
    def _rank_words(self) -> int:
        return words_for(self.by)

    def load(self, columns: Columns, into: Array) -> None:
        """Fills its rows; the first one is 0 where a message is not added."""
        into[0] = _added(columns, self.condition)
        ranks = ordered_words(self.by, _column(columns, self.by))
        into[1 : 1 + self._rank_words] = ranks if self.aggregate.smallest else ~ranks
        into[1 + self._rank_words :] = raw_words(self.of, _column(columns, self.of))

    def refused(self, columns: Columns) -> Iterable[tuple[int, str]]:
        """The messages that it refuses because their value is NaN, and the reasons."""
        if self.by.kind is not Kind.FLOAT:
            return ()
        ranks = _column(columns, self.by)
        bad = np.flatnonzero(np.isnan(ranks) & (_added(columns, self.condition) != 0))
        return _reasons(self.aggregate, bad, ranks)

    def values(self, words: Array) -> list[Any]:
        """The results of windows."""
        held = words[:, self.word]
        entries = self._entries(words)[np.arange(self.aggregate.count) < held[:, None]]
        values = python_values(self.of.kind, values_in(self.of, entries[:, self._rank_words :]))
        stops = np.cumsum(held).tolist()
        return [values[stop - count : stop] for stop, count in zip(stops, held.tolist(), strict=True)]

    def shown(self, words: Array) -> Any:
        """What a window keeps, as `Aggregate` would keep it."""
        entries = self._entries(words.reshape(1, -1))[0, : words[self.word]]
        values = python_values(self.of.kind, values_in(self.of, entries[:, self._rank_words :]))
        ranks = entries[:, : self._rank_words]
        ranks = ordered_words(self.by, ranks if self.aggregate.smallest else ~ranks, are_words=True)
        shown = list(
            zip(
                python_values(self.by.kind, values_in(self.by, np.ascontiguousarray(ranks))),
                values,
                strict=True,
            )
        )
        return (shown if self.aggregate.smallest else shown[::-1]) or None

    def _entries(self, words: Array) -> Array:
        own = words[:, self.word + 1 : self.word + self.words]
        return own.reshape(len(words), self.aggregate.count, self.rows - 1)


@dataclass(frozen=True, slots=True)
class ItemValues:
    """See RankedValues: an aggregate that keeps items. `spare`: the word that counts NaNs, which are all distinct."""

    aggregate: Distinct | ApproxDistinct | Quantile
    of: Field
    condition: Field | None
    word: int
    row: int
    spare: int | None

    words: ClassVar[int] = PANE_WORDS

    @property
    def rows(self) -> int:
        """See RankedValues."""
        return 1 + self._item_words

    @property
    def kind(self) -> list[int]:
        """See `item_tables`."""
        numbers = {Distinct: KEPT, ApproxDistinct: GREATEST, Quantile: COUNTED}[type(self.aggregate)]
        return [self.word, self.row, self._item_words, numbers]

    @property
    def _item_words(self) -> int:
        return words_for(self.of) if isinstance(self.aggregate, Distinct) else 1

    def load(self, columns: Columns, into: Array) -> None:
        """See RankedValues."""
        column, added = _column(columns, self.of), _added(columns, self.condition)
        into[0] = added
        if isinstance(self.aggregate, ApproxDistinct):
            into[1], ranks = registers_of(self.of.kind, column)
            into[0] *= ranks
        elif isinstance(self.aggregate, Quantile):
            into[1] = buckets_of(column)
        elif self.of.kind is Kind.FLOAT:
            # -0.0 equals 0.0.
            into[1] = raw_words(self.of, column + 0.0)
            into[0] *= ~np.isnan(column)
        else:
            into[1:] = raw_words(self.of, column)

    def nans(self, columns: Columns) -> Array:
        """By row, whether it adds a NaN."""
        found: Array = np.isnan(_column(columns, self.of)) & (_added(columns, self.condition) != 0)
        return found

    def refused(self, columns: Columns) -> Iterable[tuple[int, str]]:
        """See RankedValues. Numbers that are not finite have no quantile."""
        if not isinstance(self.aggregate, Quantile) or self.of.kind is not Kind.FLOAT:
            return ()
        column = _column(columns, self.of)
        bad = np.flatnonzero(~np.isfinite(column) & (_added(columns, self.condition) != 0))
        return _reasons(self.aggregate, bad, column)

    def values(self, messages: Array, words: Array, items: Array) -> tuple[Kind, Array]:
        """See RankedValues. `messages`: how many each window has; `items`: all tables."""
        own = np.ascontiguousarray(words[:, self.word : self.word + PANE_WORDS])
        if isinstance(self.aggregate, Quantile):
            return Kind.FLOAT, quantiles(self.aggregate, messages, own, items)
        if isinstance(self.aggregate, ApproxDistinct):
            return Kind.INT, estimates(self.aggregate, own, items)
        return Kind.INT, own[:, 1] + (words[:, self.spare] if self.spare is not None else 0)

    def shown(self, words: Array, items: Array) -> Any:
        """See RankedValues."""
        found = items_in(words[self.word : self.word + PANE_WORDS], self._item_words, items)
        nans = int(words[self.spare]) if self.spare is not None else 0
        if isinstance(self.aggregate, Distinct):
            found = found[np.argsort(found[:, 0])]
            values = python_values(self.of.kind, values_in(self.of, np.ascontiguousarray(found[:, 1:])))
            return dict.fromkeys([*values, *(float("nan") for _ in range(nans))]) or None
        numbers = {item: number for number, item in found.tolist()}
        if not numbers:
            return None
        if isinstance(self.aggregate, Quantile):
            return self.aggregate.join([0, {}], [0, numbers])
        return self.aggregate.join({}, numbers)


Gathered: TypeAlias = RankedValues | ItemValues


def _column(columns: Columns, field: Field) -> Array:
    column: Column = columns.columns[columns.schema.position(field.name)]
    assert isinstance(column, np.ndarray)  # noqa: S101 - its width is fixed
    return column


def _added(columns: Columns, condition: Field | None) -> Array:
    """By row, 1 where the message is added."""
    if condition is None:
        return np.ones(columns.length, np.int64)
    return np.asarray(_column(columns, condition) != 0, np.int64)


def _reasons(aggregate: Top | Quantile, rows: Array, column: Array) -> Sequence[tuple[int, str]]:
    """The reasons that the aggregate itself raises for these values."""
    found = []
    for row in rows.tolist():
        try:
            aggregate.value(column[row].item())
        except ANY_ERROR as error:
            found.append((row, reason_of(error)))
    return found
