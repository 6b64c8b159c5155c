"""Keys of streams that share a state: they must be of one type, or messages of one key never meet."""

import inspect
from collections.abc import Iterator

from bettong.application.signatures import plain_type
from bettong.application.streams import Keyed, Node, Source, Stateful, parents_of
from bettong.errors import ApplicationError
from bettong.schema.fields import Kind
from bettong.schema.key_types import KEY_TYPES

_OF_FUNCTIONS = {**KEY_TYPES, bool: KEY_TYPES[int]}
_OF_FIELDS = {Kind.TEXT: KEY_TYPES[str], Kind.BYTES: KEY_TYPES[bytes]} | dict.fromkeys(
    (Kind.INT, Kind.BOOL), KEY_TYPES[int]
)


def check_keys(node: Stateful) -> None:
    """Raises ApplicationError when the keys of the streams that a computation reads are known to differ in type.

    A key function that does not say what it returns may return anything.
    """
    types = {entry.name: kind for entry in _inputs(node) if (kind := _type_of(entry)) is not None}
    if len(set(types.values())) > 1:
        kinds = ", ".join(f"{name} ({kind})" for name, kind in types.items())
        raise ApplicationError(
            f"stateful {node.name!r}: keys of different types never meet in one state: {kinds};"
            " key them by fields, or functions, of one type"
        )


def _inputs(node: Node) -> Iterator[Source | Keyed]:
    """The streams that gave a node's messages their keys."""
    for parent in parents_of(node):
        if isinstance(parent, Source | Keyed):
            yield parent
        else:
            yield from _inputs(parent)


def _type_of(entry: Source | Keyed) -> str | None:
    key = entry.key
    if isinstance(key, str):
        return _OF_FIELDS.get(entry.schema.fields[entry.schema.position(key)].kind)
    try:
        stated = inspect.signature(key, eval_str=True).return_annotation if key is not None else None
    except (ValueError, TypeError, NameError):
        return None
    return _OF_FUNCTIONS.get(plain_type(stated))
