"""`Stream.key_by`: a repartitioned stream."""

from __future__ import annotations

from dataclasses import dataclass

from bettong.application.callables import name_of
from bettong.application.key import Key, check_key, fields_of
from bettong.application.nodes.node import Derived, StreamNode
from bettong.application.on_error import DEAD_LETTER, OnError, check_on_error


@dataclass(frozen=True, eq=False)
class Keyed(Derived):
    """The input of a stage, which reads a topic of its own, so that its order is part of the log."""

    key: Key
    on_error: OnError = DEAD_LETTER


def keyed(parent: StreamNode, key: Key, name: str | None, on_error: OnError) -> Keyed:
    """The node of `key_by`. Raises ApplicationError."""
    # A merged stream is named `a+b`, but this name becomes part of a topic's.
    if name is None:
        by = "-".join(map(str, fields_of(key))) if isinstance(key, str | tuple) else name_of(key)
        name = (f"{parent.name}-by-{by}" if by else f"{parent.name}-collected").replace("+", "-")
    check_on_error(f"key_by {name!r}", on_error)
    schema = parent.one_schema(name)
    check_key(name, key, schema)
    return Keyed(name, schema, keyed=True, parent=parent, key=key, on_error=on_error)
