"""The computations without state: map, filter, flat_map.

Each call of the user's function stands alone: what it raises makes a dead letter of that message, and the next one
goes on.
"""

from typing import Any, Protocol

from bettong.application.on_error import ANY_ERROR
from bettong.application.streams import Filtered, FlatMapped, Mapped
from bettong.worker.given import flat
from bettong.worker.letters import Letters
from bettong.worker.rows import Rows


class Operator(Protocol):
    """One computation of a stage."""

    name: str

    def run(self, rows: Rows, letters: Letters) -> Rows:
        """The rows that these rows lead to. Never raises for what the user's function raises."""


class Exact:
    """A computation whose function could run compiled: it sees and gives only what fits a schema, as it would there."""

    def __init__(self, plain: Operator) -> None:
        self.name = plain.name
        self._plain = plain

    def run(self, rows: Rows, letters: Letters) -> Rows:
        """See Operator."""
        rows.columns(self.name, letters)
        given = self._plain.run(rows, letters)
        given.columns(self.name, letters)
        return given


class MapOperator:
    """`Stream.map`."""

    def __init__(self, node: Mapped) -> None:
        self.name = node.name
        self._node = node

    def run(self, rows: Rows, letters: Letters) -> Rows:
        """See Operator."""
        function = self._node.function
        results: list[Any] = []
        parents: list[int] | None = None
        numbers = iter(range(rows.length))
        messages = letters.progress.messages(self.name, rows, numbers)
        for row, message in zip(numbers, messages, strict=True):
            try:
                result = function(message)
            except ANY_ERROR as error:
                if parents is None:
                    parents = [rows.parent(earlier) for earlier in range(row)]
                letters.add(self.name, error, rows.parent(row))
                continue
            results.append(result)
            if parents is not None:
                parents.append(rows.parent(row))
        return rows.of_messages(self._node.schema, results, parents)


class FilterOperator:
    """`Stream.filter`."""

    def __init__(self, node: Filtered) -> None:
        self.name = node.name
        self._node = node

    def run(self, rows: Rows, letters: Letters) -> Rows:
        """See Operator."""
        function = self._node.function
        results: list[Any] = []
        parents: list[int] = []
        numbers = iter(range(rows.length))
        messages = letters.progress.messages(self.name, rows, numbers)
        for row, message in zip(numbers, messages, strict=True):
            try:
                keep = function(message)
            except ANY_ERROR as error:
                letters.add(self.name, error, rows.parent(row))
                continue
            if keep:
                results.append(message)
                parents.append(rows.parent(row))
        return rows.of_messages(rows.schema, results, parents)


class FlatMapOperator:
    """`Stream.flat_map`."""

    def __init__(self, node: FlatMapped) -> None:
        self.name = node.name
        self._node = node

    def run(self, rows: Rows, letters: Letters) -> Rows:
        """See Operator. An iterable that raises half-way gives nothing: all or none of a message's results."""
        function = self._node.function
        results: list[Any] = []
        parents: list[int] = []
        numbers = iter(range(rows.length))
        messages = letters.progress.messages(self.name, rows, numbers)
        for row, message in zip(numbers, messages, strict=True):
            try:
                several = flat(function, message)
            except ANY_ERROR as error:
                letters.add(self.name, error, rows.parent(row))
                continue
            results.extend(several)
            parents.extend([rows.parent(row)] * len(several))
        return rows.of_messages(self._node.schema, results, parents)
