"""The states of a computation as rows: the key, the state's fields, and the partition and offset. Pure.

A key of fields has a column for each, under their names, if all streams that the computation reads have the same key;
any other key is text in a column `key`. A state whose class is a schema has a column for each field; its numbers have
64 bits, as in the computation. Any other state, also of windows and joins, is JSON text in a column `state`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from bettong.application.joins.joined import Joined
from bettong.application.key import fields_of
from bettong.application.nodes.stateful import Stateful
from bettong.application.plan import Plan, Stage
from bettong.application.timers import NEVER
from bettong.application.windows.windowed import Windowed
from bettong.errors import ApplicationError, SchemaError
from bettong.frames.key_values import key_text
from bettong.frames.text import to_json
from bettong.inspection.states import RestoredSnapshot
from bettong.schema.fields import Field, Kind
from bettong.schema.form import UnfitValueError
from bettong.schema.key_types import KeyValue
from bettong.schema.schema import schema_of
from bettong.spark.arrow_types import spark_array, spark_field
from bettong.spark.data_frames import ROWS_A_BATCH
from bettong.worker.stage_program import inputs_of

# The partition of a state, and the offset up to which the log is folded into it.
ORIGIN = pa.schema([("_partition", pa.int32()), ("_offset", pa.int64())])
_PLAIN = {
    Kind.INT: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.BOOL: pa.bool_(),
    Kind.TEXT: pa.string(),
    Kind.BYTES: pa.binary(),
}


class StateColumns:
    """The columns of one computation's states. `as_json`: every state as JSON text, also one with a schema."""

    def __init__(self, stage: Stage, node: Stateful, *, as_json: bool) -> None:
        self._node = node
        self._key = _key_fields(stage, node)
        self._fields = None if as_json else _state_fields(node)
        self._timers = frozenset(timer.field for timer in node.timers)
        keys = list(map(_key_field, self._key)) if self._key else [pa.field("key", pa.string())]
        own = (
            [pa.field("state", pa.string())]
            if self._fields is None
            else list(map(_state_field, self._fields))
        )
        taken = {*ORIGIN.names, *(each.name for each in keys)}
        own = [each.with_name(f"state_{each.name}") if each.name in taken else each for each in own]
        self.arrow = pa.schema([*keys, *own, *ORIGIN])

    def rows(self, held: RestoredSnapshot) -> Iterator[pa.RecordBatch]:
        """All states of a partition. Raises SchemaError for one that does not fit the annotations of its class."""
        table = held.worker.tables[self._node.name]
        if self._fields is None:
            keys, columns = [], [[]]  # type: tuple[list[KeyValue], list[list[Any]]]
            for key, state in table.items():
                keys.append(key)
                columns[0].append(to_json(state))
        else:
            try:
                keys, columns = table.columns([field.name for field in self._fields])
            except (AttributeError, KeyError) as error:
                raise SchemaError(self._unfit(f"a state lacks {error}")) from None
        for start in range(0, len(keys), ROWS_A_BATCH):
            stop = start + ROWS_A_BATCH
            arrays = self._keys(keys[start:stop])
            arrays += self._states([values[start:stop] for values in columns])
            rows = len(arrays[0])
            arrays += [
                pa.repeat(pa.scalar(value, kind), rows)
                for value, kind in zip((held.partition, held.offset), ORIGIN.types, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.arrow)

    def _keys(self, keys: Sequence[KeyValue]) -> list[pa.Array]:
        if self._key is None:
            return [pa.array(list(map(key_text, keys)), pa.string())]
        parts = [key if isinstance(key, tuple) else (key,) for key in keys]
        columns = zip(*parts, strict=True)
        return [_key_array(field, list(column)) for field, column in zip(self._key, columns, strict=True)]

    def _states(self, columns: list[list[Any]]) -> list[pa.Array]:
        if self._fields is None:
            return [pa.array(columns[0], pa.string())]
        return [self._state(field, values) for field, values in zip(self._fields, columns, strict=True)]

    def _state(self, field: Field, values: list[Any]) -> pa.Array:
        if field.name in self._timers:
            values = [None if each == NEVER else each for each in values]
        try:
            if field.form is not None:
                return spark_array(field.arrow_field, field.form.array(values))
            return pa.array(values, _PLAIN[field.kind])
        except (UnfitValueError, pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise SchemaError(self._unfit(f"field {field.name!r}: {error}")) from None

    def _unfit(self, what: str) -> str:
        return (
            f"states of {self._node.name!r}: {what}; this does not fit the annotation. Correct the annotation, or read"
            " the states with as_json=True"
        )


def computation_named(plan: Plan, name: str | None) -> tuple[Stage, Stateful]:
    """The stateful computation of that name, and its stage; without a name, the only one.

    Raises ApplicationError, which lists the stateful computations.
    """
    found = {
        operator.node.name: (stage, operator.node)
        for stage in plan.stages
        for operator in stage.operators
        if isinstance(operator.node, Stateful)
    }
    if not found:
        raise ApplicationError(
            f"application {plan.application!r} keeps no states: it has no stateful computation"
        )
    known = ", ".join(map(repr, found))
    if name is None and len(found) > 1:
        raise ApplicationError(
            f"application {plan.application!r} has several computations that keep states: give one of {known}"
        )
    if name is not None and name not in found:
        raise ApplicationError(
            f"application {plan.application!r} has no computation {name!r} that keeps states; give one of {known}"
        )
    return next(iter(found.values())) if name is None else found[name]


def _key_fields(stage: Stage, node: Stateful) -> tuple[Field, ...] | None:
    """The fields of the key; None where the inputs have different keys, or keys without fields."""
    found: dict[tuple[tuple[str, Kind], ...], tuple[Field, ...]] = {}
    for entry in inputs_of(stage, node.name):
        if entry.key is None or not isinstance(entry.key, str | tuple):
            return None
        fields = tuple(entry.schema.fields[entry.schema.position(name)] for name in fields_of(entry.key))
        found.setdefault(tuple((field.name, field.kind) for field in fields), fields)
    (only, *others) = found.values()
    return only or None if not others else None


def _state_fields(node: Stateful) -> tuple[Field, ...] | None:
    """The fields of a state whose class is a schema; None of any other."""
    if isinstance(node, Windowed | Joined):
        return None
    try:
        return schema_of(node.state).fields
    except SchemaError:
        return None


def _state_field(field: Field) -> pa.Field:
    if field.form is not None:
        return spark_field(field.arrow_field)
    return pa.field(field.name, _PLAIN[field.kind])


def _key_field(field: Field) -> pa.Field:
    return pa.field(field.name, _key_type(field))


def _key_type(field: Field) -> pa.DataType:
    """As of states, whose integers are signed; a key may also be an unsigned integer of 64 bits."""
    return pa.decimal128(20, 0) if field.arrow == pa.uint64() else _PLAIN[field.kind]


def _key_array(field: Field, values: list[Any]) -> pa.Array:
    if field.kind is Kind.BOOL:
        values = list(map(bool, values))
    elif field.kind is Kind.TEXT:
        values = [each.decode() if isinstance(each, bytes) else each for each in values]
    return pa.array(values, _key_type(field))
