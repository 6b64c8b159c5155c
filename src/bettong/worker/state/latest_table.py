"""The newest message of a table by key, for folds over columns: a record a key."""

from typing import Any

import numpy as np

from bettong.application.joins.joined import Joined
from bettong.application.joins.states import LatestState
from bettong.errors import SnapshotError
from bettong.frames.columns import Array, Columns
from bettong.schema.fields import Field, Kind
from bettong.worker.batch import Batch
from bettong.worker.jsonable import to_jsonable
from bettong.worker.state.record_layout import check_described, check_fixed
from bettong.worker.state.records import RecordTable

# Values of `held` that are no row of the current batch: there is no message; it is the record's own.
NONE, KEPT = 0, -1


class LatestTable(RecordTable):
    """See StateTable. A record: `held`, see `joins.latest_kernels`, and the message in `value`, a member a field.

    Between batches each key has a message.
    """

    def __init__(self, node: Joined, key: tuple[Kind, np.dtype[Any], tuple[Field, ...] | None]) -> None:
        """`key`: its kind and type, and its fields where it is a tuple. Raises ApplicationError."""
        self.schema = node.sides[1]
        check_fixed("compiled", node.name, self.schema)
        members = [(field.name, field.dtype) for field in self.schema.fields]
        value = np.dtype(members)
        # Without padding, whose bytes numpy does not copy: equal states have equal bytes. `rest` fills the last word.
        rest = [("rest", f"V{-value.itemsize % 8}")] * bool(value.itemsize % 8)
        record = np.dtype([("held", "<i8"), ("value", value), *rest])
        check_described(f"compiled {node.name!r}: {self.schema.name}", record)
        super().__init__(node, key[1], key[0], key[2], first=np.zeros(1, record))

    @property
    def held(self) -> Array:
        """By slot, where its message is."""
        return np.asarray(self.states["held"])

    def find(self, batch: Batch) -> Array:
        """The slot of each row's key; -1 where it has none."""
        return self._table.find(self._column_of(batch))

    def put(self, slots: Array, messages: Columns) -> None:
        """Stores the messages of different slots."""
        value = self.states["value"]
        for field, column in zip(self.schema.fields, messages.columns, strict=True):
            value[field.name][slots] = column

    def at(self, slots: Array) -> Columns:
        """The messages of these slots."""
        value = self.states.take(slots)["value"]
        return Columns(self.schema, len(slots), tuple(value[field.name] for field in self.schema.fields))

    def drop(self, ended: Array, unknown: Array) -> None:
        """Removes keys: those whose messages are deleted, and those that never had one; each slot is given once."""
        self._deleted += len(ended)
        self._end(ended)
        self._drop(unknown)

    def _take_over(self, slots: Array, states: Array, beside: Any) -> None:
        if (states["held"] != KEPT).any():
            raise SnapshotError(f"state of {self.name!r}: a key without a message")
        super()._take_over(slots, states, beside)

    def _jsonable(self, slot: int) -> Any:
        (message,) = self.at(np.array([slot]))
        return to_jsonable(LatestState(message))
