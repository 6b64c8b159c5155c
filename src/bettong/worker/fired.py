"""What timers pass to their functions: batches of `Fired`, whose rows come from no message."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import make_dataclass
from functools import cache
from typing import Annotated, Any, NamedTuple

import msgpack  # type: ignore[import-untyped]
import numpy as np

from bettong.application.plan import StageInput
from bettong.application.timers import Fired
from bettong.frames.columns import Array, Columns
from bettong.frames.composite_keys import unpacked_columns
from bettong.frames.key_values import key_json
from bettong.frames.text import to_json
from bettong.schema.annotations import field_of
from bettong.schema.fields import Field, Kind, Width, u64
from bettong.schema.key_types import KeyValue
from bettong.schema.schema import Schema, schema_of
from bettong.schema.values import column_of_values
from bettong.worker.batch import Batch, FrameKeys
from bettong.worker.event_times import EventTimes
from bettong.worker.key_parts import KEY_PARTS

_AT = field_of("at", int)
# Fields for keys that are Python objects, by type; u64 is for integers that need all 64 bits without a sign.
_KEY_FIELDS = {
    kind: field_of("key", annotation)
    for kind, annotation in (
        *(("text", str), ("bytes", bytes), ("bool", bool), ("int", int), ("u64", u64)),
        ("tuple", bytes),
    )
}


class _FiredOfTuple(Fired[Any]):
    """`Fired` with a key of several parts, which a column holds as msgpack."""

    def __init__(self, key: bytes, at: int) -> None:
        super().__init__(msgpack.unpackb(key, use_list=False), at)


class Firing(NamedTuple):
    """A timer that fired: a dead letter holds it in place of a message."""

    timer: str
    key: KeyValue
    at_ns: int

    def text(self) -> bytes:
        """As JSON."""
        values = {"key": key_json(self.key), "timer": self.timer, "at": self.at_ns}
        return to_json(values, separators=(",", ":")).encode()


class DueTimers(NamedTuple):
    """Timers of one state field that fire now, at most one a key. `rows`: of Fired, by time, then by key."""

    field: str
    rows: Batch

    def text(self, source: int) -> bytes:
        """`Firing.text` of the row with that source."""
        keys = self.rows.keys
        return Firing(self.field, keys.values()[source], due_times(keys.columns)[source]).text()


def due_times(fired: Columns) -> list[int]:
    """When each of the fired timers was due."""
    return fired.values(fired.schema.position("at"))


def one_by_one(due: Iterable[DueTimers]) -> Iterator[DueTimers]:
    """The same timers, one at a time."""
    for field, rows in due:
        for row in range(rows.length):
            yield DueTimers(field, rows.slice(row, row + 1))


def of_any_key(function: Callable[..., Any]) -> Mapping[Schema, Callable[..., Any]]:
    """A timer's function under every schema of Fired, whatever the type of the keys."""
    return defaultdict(lambda: function)


def rows_of_keys(keys: Sequence[Any], at_ns: Sequence[int], field: Field | None) -> list[Batch]:
    """The rows for keys that are Python objects, in their order: a batch for each type of key among them.

    `field`: the fixed width that all keys have; None: it depends on the key.
    """
    groups: dict[tuple[Field, bool], list[int]] = {}
    for row, key in enumerate(keys):
        own = field or _KEY_FIELDS[_kind_of(key)]
        groups.setdefault((own, isinstance(key, tuple)), []).append(row)
    found = []
    for (own, is_tuple), rows in groups.items():
        values = [keys[row] for row in rows]
        times = np.array([at_ns[row] for row in rows], np.int64)
        held = list(map(msgpack.packb, values)) if is_tuple else values
        schema = Schema(_FiredOfTuple if is_tuple else Fired, (own, _AT))
        columns = Columns(schema, len(rows), (column_of_values(own, held), times))
        own_keys = FrameKeys(_input(columns), columns, _values=values, are_fired=True)
        found.append(Batch(columns, own_keys, times=_event_times(times)))
    return found


def rows_of_column(
    schema: Schema, keys: Array, at_ns: Array, parts: tuple[Field, ...] | None = None
) -> Batch:
    """The rows for keys of a fixed width. `schema`: from `fired_schema`.

    `parts`: the fields of keys that are tuples (see `composite_keys`); then `schema` is from `fired_of_parts`.
    """
    own = [keys] if parts is None else unpacked_columns(parts, keys)
    held = [column.astype(field.dtype, copy=False) for field, column in zip(schema.fields, own, strict=False)]
    columns = Columns(schema, len(keys), (*held, at_ns))
    return Batch(columns, FrameKeys(_input(columns), columns, are_fired=True), times=_event_times(at_ns))


def fired_at(rows: Batch, at_ns: Array) -> Batch:
    """The same rows as a batch of their own, with other event times, one a row."""
    keys = FrameKeys(rows.keys.entry, rows.columns, _values=rows.key_values(), are_fired=True)
    return Batch(rows.columns, keys, times=EventTimes.of(at_ns))


def keys_in_order(rows: Sequence[Batch], order: Array) -> FrameKeys:
    """The keys of rows that fired: of all batches, one after the other, then put in that order."""
    columns = rows[0].columns
    if len({batch.schema for batch in rows}) == 1:
        columns = Columns.concatenated(columns.schema, [batch.columns for batch in rows]).take(order)
    # Keys of several types have no column; no compiled function takes them.
    values = [key for batch in rows for key in batch.key_values()]
    return FrameKeys(
        _input(columns), columns, _values=[values[row] for row in order.tolist()], are_fired=True
    )


@cache  # bounded: one class for each type of key, at most one a width
def fired_schema(kind: Kind, dtype: np.dtype[Any]) -> Schema:
    """The schema of Fired for keys of a fixed width: a class of its own, which compiled code can make."""
    annotation = _annotation(kind, dtype)
    return schema_of(make_dataclass("Fired", [("key", annotation), ("at", int)], bases=(Fired,)))


def fired_of_parts(parts: tuple[Field, ...]) -> Schema:
    """The same for keys that are tuples: each part is a field, and `key` of such a message is the tuple."""
    return _fired_of_types(tuple((field.kind, field.dtype) for field in parts if field.dtype is not None))


@cache  # one class for each type of key that an application has
def _fired_of_types(parts: tuple[tuple[Kind, np.dtype[Any]], ...]) -> Schema:
    names = [f"key_{index}" for index in range(len(parts))]
    fields = [*zip(names, itertools.starmap(_annotation, parts), strict=True), ("at", int)]
    key = property(lambda fired: tuple(getattr(fired, name) for name in names))
    return schema_of(make_dataclass("Fired", fields, namespace={"key": key, KEY_PARTS: len(parts)}))


def _annotation(kind: Kind, dtype: np.dtype[Any]) -> Any:
    if kind in (Kind.TEXT, Kind.BYTES):
        return Annotated[str if kind is Kind.TEXT else bytes, Width(dtype.itemsize)]
    return bool if kind is Kind.BOOL else u64 if dtype == np.uint64 else int


def order_of_key(key: Any) -> tuple[str, Any]:
    """What keys are sorted by: their type, then their value, as a column of them would be."""
    if isinstance(key, tuple):
        return "tuple", tuple(map(order_of_key, key))
    kind = _kind_of(key)
    return ("int", int(key)) if kind in ("bool", "u64") else (kind, key)


def _kind_of(key: Any) -> str:
    if isinstance(key, tuple):
        return "tuple"
    if isinstance(key, str):
        return "text"
    if isinstance(key, bytes):
        return "bytes"
    return "bool" if isinstance(key, bool) else "int" if key < 2**63 else "u64"


def _event_times(at_ns: Array) -> EventTimes:
    # A timer may be set to a time before 1970, so that it fires at once.
    return EventTimes.of(np.maximum(at_ns, 0))


def _input(columns: Columns) -> StageInput:
    parts = getattr(columns.schema.message, KEY_PARTS, None)
    key = "key" if parts is None else tuple(field.name for field in columns.schema.fields[:parts])
    return StageInput("", columns.schema, key)
