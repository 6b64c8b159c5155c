"""The words that panes keep for a join: lists of the messages of both sides, loaded from columns and read back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bettong.frames.columns import Array, Columns
from bettong.schema.fields import Field
from bettong.schema.schema import Schema
from bettong.worker.joins.sides import SidedColumns
from bettong.worker.state.item_tables import ITEM_WORDS, LISTED, LOADED, PANE_WORDS, WORD
from bettong.worker.state.pane_items import list_all
from bettong.worker.windows.accumulators import WindowWords
from bettong.worker.windows.fold_kernels import Folds
from bettong.worker.windows.value_words import raw_words, values_in, words_for


class ListedMessages(NamedTuple):
    """Messages of one side, window by window, and how many each window has. The last message is one of zeros."""

    columns: Columns
    counts: Array


class PaneMessages:
    """See PaneWords."""

    def __init__(self, sides: tuple[Schema, Schema]) -> None:
        """`sides`: the schemas of their messages, whose fields have fixed widths."""
        self._sides = sides
        self.words = 2 * PANE_WORDS
        left_words, right_words = (sum(map(words_for, schema.fields)) for schema in sides)
        # The first row of each side says which messages belong to it.
        kinds = [[0, 0, left_words, LISTED], [PANE_WORDS, 1 + left_words, right_words, LISTED]]
        self._rows = left_words + right_words + 2
        self.folds = Folds(
            np.empty(0, np.int64), np.empty((0, 5), np.int64), np.array(kinds, np.int64), self.words, 0
        )
        left, right = (Columns.of_messages(schema, []) for schema in sides)
        self.nothing = SidedColumns(sides[0], 0, (), left, right, np.empty(0, np.int64))

    def load(self, columns: Columns) -> tuple[Array, Array, Array]:
        """See PaneWords. `columns`: SidedColumns."""
        assert isinstance(columns, SidedColumns)  # noqa: S101 - a join reads no others
        loaded, of_right = np.empty((self._rows, columns.length), np.int64), columns.of_right
        for is_right, (schema, kind) in enumerate(zip(self._sides, self.folds.items, strict=True)):
            rows = loaded[kind[LOADED] : kind[LOADED] + 1 + kind[ITEM_WORDS]]
            rows[0] = of_right == is_right
            own = np.flatnonzero(rows[0])
            if len(own):
                messages = columns.of_side(own, is_right=bool(is_right)).columns
                for (field, position), column in zip(_positions(schema), messages, strict=True):
                    rows[position, own] = raw_words(field, np.asarray(column))
        return loaded, loaded.view(np.float64), loaded.reshape(-1)

    def listed(self, kept: WindowWords) -> tuple[ListedMessages, ListedMessages]:
        """The messages of windows, of the left side and of the right one."""
        words = np.ascontiguousarray(kept.words[:, 1:])
        left, right = (
            _listed(schema, kind, words, kept.items)
            for schema, kind in zip(self._sides, self.folds.items, strict=True)
        )
        return left, right

    def shown(self, words: Array, items: Array) -> list[Any]:
        """The messages of a window as plain Python keeps them: see `Gathered`. `words`, `items`: see WindowWords."""
        sides = self.listed(WindowWords(words.reshape(1, -1), items))
        return [each.columns.slice(0, each.columns.length - 1).messages() for each in sides]


def _listed(schema: Schema, kind: Array, words: Array, items: Array) -> ListedMessages:
    counts = words[:, kind[WORD] + 1]
    found = np.zeros((int(counts.sum()) + 1, 1 + kind[ITEM_WORDS]), np.int64)
    list_all(words, kind, items, found)
    columns = (
        np.asarray(values_in(field, found[:, position]), field.dtype)
        for field, position in _positions(schema)
    )
    return ListedMessages(Columns(schema, len(found), tuple(columns)), counts)


def _positions(schema: Schema) -> Iterator[tuple[Field, slice]]:
    """By field, the position of its words in an item, whose first word is the number."""
    start = 1
    for field in schema.fields:
        stop = start + words_for(field)
        yield field, slice(start, stop)
        start = stop
