"""Checks of the keys of streams that share a state: of different types, they would never be equal."""

import inspect
from collections.abc import Iterator

from bettong.application.key import fields_of, key_name
from bettong.application.nodes.keyed import Keyed
from bettong.application.nodes.node import StreamNode
from bettong.application.nodes.source import Source
from bettong.application.nodes.stateful import Stateful
from bettong.application.signatures import plain_type
from bettong.application.windows.aggregated import Aggregated
from bettong.application.windows.readings import held_field
from bettong.application.windows.windowed import Windowed
from bettong.errors import ApplicationError
from bettong.schema.fields import Kind
from bettong.schema.key_types import KEY_TYPES
from bettong.schema.schema import schema_of

# A function that returns a tuple does not say of what.
_OF_FUNCTIONS = {kind: text for kind, text in KEY_TYPES.items() if kind is not tuple} | {bool: KEY_TYPES[int]}
_OF_FIELDS = {Kind.TEXT: KEY_TYPES[str], Kind.BYTES: KEY_TYPES[bytes]} | dict.fromkeys(
    (Kind.INT, Kind.BOOL), KEY_TYPES[int]
)
# By the type of a key, the kinds of fields that can hold one; the first is the annotation to write.
_FIELDS_OF_KEYS = {
    KEY_TYPES[str]: ("str", "text", "json"),
    KEY_TYPES[int]: ("int", "float", "bool", "json"),
    KEY_TYPES[bytes]: ("bytes",),
}


def check_keys(node: Stateful) -> None:
    """Raises ApplicationError when the keys of the streams that a computation reads are known to differ in type.

    A key function without an annotation may return anything.
    """
    types = {name: kind for parent in node.parents for name, kind in key_types(parent).items()}
    if len(set(types.values())) > 1:
        kinds = ", ".join(f"{name} ({kind})" for name, kind in types.items())
        raise ApplicationError(
            f"stateful {node.name!r}: keys of different types never meet in one state: {kinds};"
            " key them by fields, or functions, of one type"
        )


def key_types(node: StreamNode) -> dict[str, str]:
    """The types of a stream's keys, where they are known: by the source, or the `key_by`, that assigned them."""
    return {entry.name: kind for entry in _inputs(node) if (kind := _type_of(entry)) is not None}


def check_window_key(node: Windowed) -> None:
    """Raises ApplicationError for results whose field `key` cannot hold the key: of several parts, or another type."""
    aggregation = node.windowing.aggregation
    if not isinstance(aggregation, Aggregated) or not aggregation.shows_key:
        return
    for entry in _inputs(node.parent):
        if isinstance(entry.key, tuple):
            parts = ", ".join(f"{part}=bettong.First({part!r})" for part in entry.key)
            raise ApplicationError(
                f"window {node.name!r}: {aggregation.result.__name__}.key is one value, and {entry.name!r} is keyed by"
                f" {key_name(entry.key)}; leave the field out" + (f", and give {parts}" if parts else "")
            )
    result = schema_of(aggregation.result)
    held = held_field(result.fields[result.position("key")]).kind_name
    for name, kind in key_types(node.parent).items():
        if held not in _FIELDS_OF_KEYS[kind]:
            raise ApplicationError(
                f"window {node.name!r}: {result.name}.key is {held}, and {name!r} is keyed by {kind}; annotate the"
                f" field as {_FIELDS_OF_KEYS[kind][0]}"
            )


def _inputs(node: StreamNode) -> Iterator[Source | Keyed]:
    """The streams that assigned the keys of a stream's messages."""
    if isinstance(node, Source | Keyed):
        yield node
    else:
        for parent in node.parents:
            yield from _inputs(parent)


def _type_of(entry: Source | Keyed) -> str | None:
    key = entry.key
    if isinstance(key, str | tuple):
        kinds = [
            _OF_FIELDS.get(entry.schema.fields[entry.schema.position(part)].kind, "?")
            for part in fields_of(key)
        ]
        return kinds[0] if isinstance(key, str) else f"({', '.join(kinds)})"
    try:
        stated = inspect.signature(key, eval_str=True).return_annotation if key is not None else None
    except (ValueError, TypeError, NameError):
        return None
    return _OF_FUNCTIONS.get(plain_type(stated))
