"""What fires in one call of `Operator.on_time`: in rounds, and told in the order of an interpreter's queue.

That queue holds (due time, key), and gives the earliest; a function may put its key in again, for a time that has
come, too. Keys have nothing to do with one another. So it gives the same to call for the first timer of every key at
once, then for the next one of each key that has one, and to sort by the latest time that the key has had so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bettong.frames.columns import Array, Columns
from bettong.schema.schema import Schema
from bettong.worker.batch import Batch
from bettong.worker.calling.results import Results
from bettong.worker.event_times import EventTimes
from bettong.worker.fired import DueTimers, keys_in_order, order_of_key
from bettong.worker.output.dead_letters import Firing, FiringDeadLetters


@dataclass(slots=True)
class Firings:
    """Of a computation whose results are of `schema`."""

    schema: Schema
    rounds: int = 0
    _due: list[DueTimers] = field(default_factory=list)
    _results: list[Results] = field(default_factory=list)

    def add(self, due: DueTimers, results: Results) -> None:
        """Timers of the present round fired, and gave this."""
        self._due.append(due)
        self._results.append(results)

    def tell(self, computation: str, dead_letters: FiringDeadLetters) -> Sequence[Batch]:
        """Their results, and their failures to `dead_letters`."""
        if not self._due:
            return ()
        order = self._order()
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        dead_letters.firing = lambda rank: self._at(int(order[rank]))
        if dead_letters.excluded:
            for rank in range(len(order)):
                dead_letters.exclude(computation, rank)
            return ()
        starts = np.cumsum([0, *(each.rows.length for each in self._due)]).tolist()
        failures = [
            (int(ranks[start + row]), reason)
            for start, results in zip(starts, self._results, strict=False)
            for row, reason in results.failures
        ]
        for rank, reason in sorted(failures, key=lambda failure: failure[0]):
            dead_letters.add(computation, reason, rank)
        return self._batches(order, ranks, starts)

    def _batches(self, order: Array, ranks: Array, starts: list[int]) -> Sequence[Batch]:
        if len(self._due) == 1:
            columns, rows = self._results[0].columns, self._results[0].rows
            return () if columns is None or not columns.length else [self._due[0].rows.derived(columns, rows)]
        parts = [results.columns for results in self._results if results.columns is not None]
        columns = Columns.concatenated(self.schema, parts)
        if not columns.length:
            return ()
        sources = np.concatenate(
            [
                ranks[start + (np.arange(due.rows.length) if results.rows is None else results.rows)]
                for start, due, results in zip(starts, self._due, self._results, strict=False)
                if results.columns is not None
            ]
        )
        by_source = np.argsort(sources, kind="stable")
        keys = keys_in_order([due.rows for due in self._due], order)
        times = np.concatenate([due.rows.event_times() for due in self._due])[order]
        return [Batch(columns.take(by_source), keys, sources[by_source], EventTimes.of(times))]

    def _order(self) -> Array:
        """The firings as they go, each by its number as they were added."""
        if len(self._due) == 1:
            return np.arange(self._due[0].rows.length)
        latest_ns: dict[Any, int] = {}
        found: list[tuple[int, tuple[str, Any], int]] = []
        for due in self._due:
            for key, at_ns in zip(due.rows.key_values(), due.rows.columns.values(1), strict=True):
                latest_ns[key] = max(at_ns, latest_ns.get(key, at_ns))
                found.append((latest_ns[key], order_of_key(key), len(found)))
        return np.array([number for *_, number in sorted(found)], np.int64)

    def _at(self, number: int) -> Firing:
        for due in self._due:
            if number < due.rows.length:
                row = due.rows.slice(number, number + 1)
                return Firing(due.field, row.key_values()[0], row.columns.values(1)[0])
            number -= due.rows.length
        raise IndexError(number)
