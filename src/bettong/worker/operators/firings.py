"""The timers that fire in one call of `Operator.on_time`: in rounds, with results in the order of a timer queue.

A timer queue holds (due time, key), and fires the earliest; a function may set its key's timer again, also to a time
that has passed. Keys are independent. So it is equivalent to fire the first timer of every key at once, then the next
one of each key that has one, and to sort the results by the latest due time that the key has had so far.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bettong.frames.columns import Array, Columns
from bettong.schema.schema import Schema
from bettong.worker.batch import Batch
from bettong.worker.calling.results import Results, joined
from bettong.worker.event_times import EventTimes
from bettong.worker.exclusions import ExcludedTimer
from bettong.worker.fired import DueTimers, Firing, due_times, keys_in_order
from bettong.worker.firing_bounds import FiringBounds
from bettong.worker.output.dead_letters import FiringDeadLetters

# Rounds that are joined into one: a round of a single key takes kilobytes, for some bytes of content.
_ROUNDS_JOINED = 256


@dataclass(frozen=True, slots=True)
class _Fired:
    """Timers that fired, by row the field of each, and their results."""

    rows: Batch
    fields: Sequence[str]
    results: Results


@dataclass(slots=True)
class Firings:
    """The firings of a computation whose results are of `schema`. `left_out`: see `Exclusion.of_timers`."""

    schema: Schema
    left_out: Mapping[bytes, ExcludedTimer]
    _count: int = 0
    # By firing, why its function was not called.
    _refused: dict[int, str | ExcludedTimer] = field(default_factory=dict)
    _fired: list[_Fired] = field(default_factory=list)
    # How many of `_fired` are joined rounds.
    _joined: int = 0
    # None before the second round: nearly always there is only one, of one field.
    _bounds: FiringBounds | None = None

    def refused(self, due: DueTimers) -> Mapping[int, str | ExcludedTimer]:
        """Of the timers that fire next, the rows that must not be called, and why. Call `add` afterwards."""
        refused: dict[int, str | ExcludedTimer] = {}
        if self._fired:
            if self._bounds is None:
                self._bounds = FiringBounds()
                first = self._fired[0]
                self._take(self._bounds, first.fields[0] if first.fields else "", first.rows)
            refused |= self._take(self._bounds, due.field, due.rows)
        if self.left_out:
            for row in range(due.rows.length):
                why = self.left_out.get(b"") or self.left_out.get(due.text(due.rows.source(row)))
                if why is not None:
                    refused[row] = why
        for row, reason in refused.items():
            self._refused[self._count + row] = reason
        return refused

    @staticmethod
    def _take(bounds: FiringBounds, timer: str, rows: Batch) -> Mapping[int, str]:
        return bounds.take(timer, rows.key_values(), due_times(rows.columns))

    def add(self, due: DueTimers, results: Results) -> None:
        """Records timers that fired, and their results."""
        self._count += due.rows.length
        self._fired.append(_Fired(due.rows, [due.field] * due.rows.length, results))
        if len(self._fired) - self._joined > _ROUNDS_JOINED:
            self._fired[self._joined :] = _joined_round(self.schema, self._fired[self._joined :])
            self._joined = len(self._fired)

    def results(self, computation: str, dead_letters: FiringDeadLetters) -> Sequence[Batch]:
        """The results of all firings; adds their failures to `dead_letters`."""
        if not self._fired:
            return ()
        starts = np.cumsum([0, *(each.rows.length for each in self._fired)]).tolist()
        order = np.arange(starts[-1]) if self._bounds is None else self._bounds.order()
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        dead_letters.firing = lambda rank: self._firing_at(int(order[rank]), starts)
        failures = [
            (start + row, reason)
            for start, each in zip(starts, self._fired, strict=False)
            for row, reason in each.results.failures
        ]
        dead_letters.add_all(
            computation,
            [(int(ranks[number]), reason) for number, reason in (*failures, *self._refused.items())],
        )
        return self._batches(order, ranks)

    def _batches(self, order: Array, ranks: Array) -> Sequence[Batch]:
        if len(self._fired) == 1 and self._bounds is None:
            columns, rows = self._fired[0].results.columns, self._fired[0].results.rows
            return (
                () if columns is None or not columns.length else [self._fired[0].rows.derived(columns, rows)]
            )
        results = _results(self.schema, self._fired)
        if results.columns is None or not results.columns.length:
            return ()
        assert results.rows is not None  # noqa: S101 - joined results say which row each is of
        sources = ranks[results.rows]
        by_source = np.argsort(sources, kind="stable")
        keys = keys_in_order([each.rows for each in self._fired], order)
        times = np.concatenate([each.rows.event_times() for each in self._fired])[order]
        return [Batch(results.columns.take(by_source), keys, sources[by_source], EventTimes.of(times))]

    def _firing_at(self, number: int, starts: Sequence[int]) -> Firing:
        index = bisect_right(starts, number) - 1
        fired, row = self._fired[index], number - starts[index]
        own = fired.rows.slice(row, row + 1)
        return Firing(fired.fields[row], own.key_values()[0], due_times(own.columns)[0])


def _joined_round(schema: Schema, found: Sequence[_Fired]) -> list[_Fired]:
    """Joins rounds into one, if all of their keys are of one type: others do not fit one column."""
    batches = [each.rows for each in found]
    if len({batch.schema for batch in batches}) > 1:
        return list(found)
    columns = Columns.concatenated(batches[0].schema, [batch.columns for batch in batches])
    times = EventTimes.of(np.concatenate([batch.event_times() for batch in batches]))
    rows = Batch(columns, keys_in_order(batches, np.arange(columns.length)), times=times)
    fields = [field for each in found for field in each.fields]
    return [_Fired(rows, fields, _results(schema, found))]


def _results(schema: Schema, found: Sequence[_Fired]) -> Results:
    starts = np.cumsum([0, *(each.rows.length for each in found)]).tolist()
    pieces = zip(starts, starts[1:], (each.results for each in found), strict=False)
    return joined(schema, list(pieces))
