"""Builds the results of a batch from the objects that plain Python functions returned."""

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np

from bettong.frames.fitting import fitting_values
from bettong.schema.schema import Schema
from bettong.worker.calling.results import Failure, Results

# Iterables that are never meant as several results.
_TEXTS = (str, bytes, bytearray, memoryview)


class ResultBuilder:
    """The results of one batch: the values of their fields, by result."""

    def __init__(self, schema: Schema) -> None:
        self.values: list[Any] = []
        self.rows: list[int] = []
        self.failures: list[Failure] = []
        # By failure, how many results there were before it.
        self._results_before: list[int] = []
        self._read = schema.read
        self._unreadable = schema.unreadable
        self._schema = schema
        self._is_single = len(schema.fields) == 1

    def add(self, result: Any, row: int) -> None:
        """Adds the result of a row. Raises what reading its attributes raises."""
        try:
            values = self._read(result)
        except self._unreadable:
            self.fail(row, self._wrong_type(result))
            return
        self.values.append(values)
        self.rows.append(row)

    def fail(self, row: int, reason: str) -> None:
        """Adds a failure of a row, ordered after what was added before."""
        self.failures.append((row, reason))
        self._results_before.append(len(self.rows))

    def extend(self, results: Iterable[Any], row: int) -> None:
        """Adds all results of a row, or none of them when making one raises. None among them is skipped."""
        if isinstance(results, _TEXTS):
            raise TypeError(f"returned {type(results).__name__}, expected an iterable of {self._schema.name}")
        found: list[Any] = []
        strange: list[tuple[int, Failure]] = []
        for each in results:
            try:
                found.append(self._read(each))
            except self._unreadable:
                if each is not None:
                    strange.append((len(self.rows) + len(found), (row, self._wrong_type(each))))
        self.values += found
        self.rows += [row] * len(found)
        self.failures += [failure for _, failure in strange]
        self._results_before += [behind for behind, _ in strange]

    @property
    def count(self) -> tuple[int, int]:
        """How many results and failures there are."""
        return len(self.rows), len(self.failures)

    def keep(self, results: int, failures: int) -> None:
        """Drops all but the first `results` and `failures`."""
        del (
            self.values[results:],
            self.rows[results:],
            self.failures[failures:],
            self._results_before[failures:],
        )

    def results(self, length: int) -> Results:
        """The results of a batch of `length` rows: those that do not fit the schema become failures."""
        values: list[list[Any]] = (
            [self.values]
            if self._is_single
            else [list(each) for each in zip(*self.values, strict=True)] or [[] for _ in self._schema.fields]
        )
        columns, violations = fitting_values(self._schema, values)
        rows = self.rows
        if violations:
            self.failures = self._with(violations)
            rows = [row for result, row in enumerate(rows) if result not in violations]
        is_each = len(rows) == length and not self.failures and rows == list(range(length))
        return Results(columns, None if is_each else np.array(rows, np.int64), self.failures)

    def _with(self, violations: Mapping[int, str]) -> list[Failure]:
        """All failures in the order in which they arose. `violations`: by result."""
        found = [(behind, 0, each) for behind, each in zip(self._results_before, self.failures, strict=True)]
        found += [(result, 1, (self.rows[result], reason)) for result, reason in violations.items()]
        return [failure for *_, failure in sorted(found, key=itemgetter(0, 1))]

    def _wrong_type(self, value: object) -> str:
        return f"{type(value).__name__} is no {self._schema.name}"
