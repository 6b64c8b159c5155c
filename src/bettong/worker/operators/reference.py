"""`Stream.join_reference`: pairs each message with the reference table's row of its key, a frame at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import length_hint
from typing import Any

import numpy as np

from bettong.application.joins.referenced import Referenced
from bettong.application.on_error import STOP
from bettong.frames.columns import Array
from bettong.schema.fields import Kind
from bettong.user_errors import ANY_ERROR, reason_of
from bettong.worker.batch import Batch
from bettong.worker.calling.result_builder import ResultBuilder
from bettong.worker.calling.results import Failure, Results
from bettong.worker.operators.operator import Operator, OperatorParts, WithoutTime, derived
from bettong.worker.output.dead_letters import DeadLetters
from bettong.worker.progress import FoldProgress
from bettong.worker.references.table import ReferenceTable
from bettong.worker.references.versions import References


def reference_operator(node: Referenced, parts: OperatorParts) -> Operator:
    """The operator of `join_reference`."""
    return ReferenceOperator(node, parts.references, parts.progress)


class ReferenceOperator(WithoutTime):
    """See Operator. It has no state: the partition holds the version of the table."""

    def __init__(self, node: Referenced, references: References, progress: FoldProgress) -> None:
        self.name = node.name
        self._node = node
        self._references = references
        self._progress = progress
        self._stops = node.on_error == STOP

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator. Raises StoreError where the table's version cannot be read."""
        table = self._references.table(self.name)
        rows, failures = self._rows(batch, table)
        is_asked = np.ones(batch.length, np.bool_) if self._node.how == "left" else rows >= 0
        is_asked[[row for row, _ in failures]] = False
        if failures and self._stops:
            is_asked[failures[0][0] :] = False
        asked = np.flatnonzero(is_asked)
        results = self._combined(batch if is_asked.all() else batch.take(asked), table, rows[asked])
        found = [*failures, *((int(asked[row]), reason) for row, reason in results.failures)]
        if not is_asked.all():
            results = results._replace(rows=asked if results.rows is None else asked[results.rows])
        return derived(self.name, batch, results._replace(failures=found), dead_letters)

    def _rows(self, batch: Batch, table: ReferenceTable) -> tuple[Array, list[Failure]]:
        """By message, its row of the table, -1 for none; and the messages whose key could not be read."""
        on = self._node.on
        if on is None:
            return self._rows_of_keys(table, batch.key_values())
        if isinstance(on, str):
            at = batch.schema.position(on)
            if batch.schema.fields[at].kind is Kind.INT:
                return table.rows_of_column(batch.columns.columns[at]), []
            return table.rows_of_values(batch.columns.values(at)), []
        keys, failures = self._keys(on, batch)
        rows, unfit = self._rows_of_keys(table, keys)
        return rows, sorted([*failures, *unfit])

    def _keys(self, on: Callable[[Any], Any], batch: Batch) -> tuple[list[Any], list[Failure]]:
        """The key that a function returns for each message; None where it raised."""
        found: list[Any] = [None] * batch.length
        failures: list[Failure] = []
        rows = iter(range(batch.length))
        messages = iter(self._progress.messages(self.name, batch, rows))
        last = batch.length - 1
        while True:
            # `rows` says how far the loop got, since making a message may raise, too.
            try:
                for row, message in zip(rows, messages, strict=True):
                    found[row] = on(message)
            except ANY_ERROR as error:
                failures.append((last - length_hint(rows), reason_of(error)))
                if not self._stops:
                    continue
            return found, failures

    def _rows_of_keys(self, table: ReferenceTable, keys: Sequence[Any]) -> tuple[Array, list[Failure]]:
        try:
            return table.rows_of_values(keys), []
        except ANY_ERROR:  # an unhashable value, or None where a function returned no key
            pass
        rows = np.full(len(keys), -1, np.int64)
        failures: list[Failure] = []
        for row, key in enumerate(keys):
            try:
                rows[row] = table.rows_of_values((key,))[0]
            except ANY_ERROR as error:
                failures.append((row, reason_of(error)))
        return rows, failures

    def _combined(self, batch: Batch, table: ReferenceTable, rows: Array) -> Results:
        """The results of the function for these messages and their rows. Failures and results by rows of `batch`."""
        combine, make = self._node.combine, table.columns.schema.make
        output = ResultBuilder(self._node.schema)
        partners = _values(table, rows)
        numbers = iter(range(batch.length))
        messages = iter(self._progress.messages(self.name, batch, numbers))
        last = batch.length - 1
        while True:
            try:
                for row, message in zip(numbers, messages, strict=True):
                    values = partners[row]
                    result = combine(message, None if values is None else make(*values))
                    if result is not None:
                        output.add(result, row)
            except ANY_ERROR as error:
                output.fail(last - length_hint(numbers), reason_of(error))
                if not self._stops:
                    continue
            return output.results(batch.length)


def _values(table: ReferenceTable, rows: Array) -> list[tuple[Any, ...] | None]:
    """The values of rows of the table, None for -1. Each message has its own: no call sees another one's changes."""
    is_there = rows >= 0
    columns = table.columns.take(rows[is_there])
    there = list(zip(*(columns.values(at) for at in range(len(columns.columns))), strict=True))
    if len(there) == len(rows):
        return list(there)
    each = iter(there)
    return [next(each) if found else None for found in is_there.tolist()]
