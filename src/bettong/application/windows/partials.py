"""`Stream.local`: messages are pre-aggregated before `key_by`, so that fewer of them are sent to the next stage.

    stream.local("page").window(windows, aggregation)     is     stream.key_by("page").window(windows, aggregation)

In the stage before, the messages of a frame that have one key and fall into the same windows become one message with
their accumulator, a partial. The windows of the next stage combine partials as they would have added messages. Nothing
waits, and nothing is kept: the same frames are sent, at the same positions in the log, with fewer rows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass, replace
from datetime import timedelta
from functools import wraps
from keyword import iskeyword
from typing import Any, TypedDict

import msgpack  # type: ignore[import-untyped]

from bettong.application.execution_mode import ExecutionMode
from bettong.application.key import Key, fields_of
from bettong.application.nodes.computation import Computation
from bettong.application.nodes.keyed import Keyed, keyed
from bettong.application.nodes.node import StreamNode
from bettong.application.on_error import DEAD_LETTER, OnError
from bettong.application.signatures import plain_type
from bettong.application.windows.aggregate import Aggregate
from bettong.application.windows.aggregated import Aggregated
from bettong.application.windows.aggregates import Mean, Sum
from bettong.application.windows.aggregation import Aggregation
from bettong.application.windows.kinds import Ranges, WindowKind
from bettong.application.windows.readings import description_of, held_field
from bettong.application.windows.windowed import Windowed, windowed
from bettong.errors import ApplicationError
from bettong.schema.forms.decimals import DecimalForm
from bettong.schema.record_classes import record_class_of
from bettong.schema.schema import Schema, schema_of

# The positions of a partial's fields behind those of the key.
ACCUMULATOR, MESSAGES = -2, -1

_REMEDY = "put key_by(...) in place of local(...)"
# Python adds Decimals of 28 digits without rounding: of these, ten thousand million.
_DECIMAL_DIGITS_MAX = 18
_EXACT_KINDS = ("int", "bool", "timedelta")
_EXACT_TYPES = (int, bool, timedelta)


@dataclass(frozen=True, eq=False)
class Partials(Computation):
    """The partials that are sent instead of messages.

    `plain`: the windows as they would be without it, behind `plain_keyed`. Neither is a node of the application.
    """

    plain: Windowed
    plain_keyed: Keyed
    on_error: OnError = DEAD_LETTER
    method = "local"


class LocalOptions(TypedDict, total=False):
    """The other keyword arguments of `LocalStream.window`: see `Stream.window`."""

    name: str | None
    emit_empty: bool
    early: timedelta | None
    version: int
    on_error: OnError


def local_windows(
    parent: StreamNode,
    key: Key,
    key_on_error: OnError,
    windows: WindowKind,
    aggregation: Aggregation[Any, Any, Any],
    *,
    name: str | None = None,
    emit_empty: bool = False,
    early: timedelta | None = None,
    version: int = 1,
    on_error: OnError = DEAD_LETTER,
) -> tuple[Partials, Keyed, Windowed]:
    """The nodes of `LocalStream.window`, in order. Raises ApplicationError if results could differ from `key_by`'s."""
    before = keyed(parent, key, "local", key_on_error)
    plain, _ = windowed(
        before,
        windows,
        aggregation,
        name=name,
        late="drop",
        emit_empty=emit_empty,
        early=early,
        version=version,
        on_error=on_error,
    )
    _check(plain, before.schema)
    named = replace(before, name=f"{plain.name}-keyed")
    schema = _schema(before.schema, key)
    partials = Partials(f"{plain.name}-partials", schema, parent.keyed, parent, plain, named, on_error)
    behind = replace(
        named, schema=schema, parent=partials, key=key if not callable(key) else _packed_key_reader(key)
    )
    merging = replace(
        plain, parent=behind, handlers={schema: plain.windowing.aggregation.update}, merges_partials=True
    )
    return partials, behind, merging


def _schema(messages: Schema, key: Key) -> Schema:
    """The schema of partials: the fields of the key, or its bytes; an accumulator, and its number of messages."""
    hints = record_class_of(messages.message).hints
    names = () if callable(key) else fields_of(key)
    for part in names:
        if not part.isidentifier() or iskeyword(part):
            raise ApplicationError(
                f"local: key {part!r} is no name of Python's; give a function of the message"
            )
    fields = [("packed_key", bytes)] if callable(key) else [(part, hints[part]) for part in names]
    taken = {field for field, _ in fields}
    own = [(_free_name("accumulator", taken), bytes), (_free_name("messages", taken), int)]
    return schema_of(make_dataclass("Partial", [*fields, *own]))


def _free_name(name: str, taken: set[str]) -> str:
    return name if name not in taken else f"{name}_"


def _packed_key_reader(key: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A key function of partials, which returns the key that `key` returned for their messages."""

    @wraps(key)
    def read(partial: Any) -> Any:
        return msgpack.unpackb(partial.packed_key, use_list=False)

    return read


def _check(plain: Windowed, schema: Schema) -> None:
    owner, windowing = f"window {plain.name!r}: local", plain.windowing
    if not isinstance(windowing.kind, Ranges):
        raise ApplicationError(
            f"{owner}: {type(windowing.kind).__name__.lower()} depend on each message's own time or number; messages"
            f" are combined for tumbling and sliding windows only: {_REMEDY}"
        )
    if windowing.mode is ExecutionMode.COMPILED:
        raise ApplicationError(
            f"{owner}: compiled windows add messages, no accumulators; take off the mark, or {_REMEDY}"
        )
    if isinstance(windowing.aggregation, Aggregated):
        for name, each in windowing.aggregation.fields.items():
            if isinstance(each, Sum | Mean) and not _adds_exactly(each, schema):
                raise ApplicationError(
                    f"{owner}: {name}={description_of(each)}: a sum of floats depends on the order of addition, so it"
                    " would differ with how messages are batched into frames. Sum whole numbers, such as cents (of a"
                    f" function: one that says -> int), or {_REMEDY}"
                )


def _adds_exactly(aggregate: Aggregate, schema: Schema) -> bool:
    read = aggregate.reads["of"]
    if not isinstance(read, str):
        try:
            stated = inspect.signature(read, eval_str=True).return_annotation
        except (ValueError, TypeError, NameError):
            return False
        return plain_type(stated) in _EXACT_TYPES
    field = held_field(schema.fields[schema.position(read)])
    if isinstance(field.form, DecimalForm):
        return field.form.precision.digits <= _DECIMAL_DIGITS_MAX
    return field.kind_name in _EXACT_KINDS
