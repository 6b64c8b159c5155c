"""`Stream.sink`: the end of a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bettong.application.external.destination import Destination, check_destination
from bettong.application.nodes.node import StreamNode
from bettong.application.on_error import DEAD_LETTER, OnError, check_on_error
from bettong.application.signatures import check_function


@dataclass(frozen=True, eq=False)
class Sink:
    """See `Stream.sink`. Nothing can follow it."""

    name: str
    parent: StreamNode
    encoder: Callable[[Any], bytes] | None
    on_error: OnError = DEAD_LETTER
    to: Destination | None = None

    @property
    def parents(self) -> tuple[StreamNode, ...]:
        """See StreamNode."""
        return (self.parent,)


def sink(
    parent: StreamNode,
    name: str,
    encoder: Callable[[Any], bytes] | None,
    to: Destination | None,
    on_error: OnError,
) -> Sink:
    """The node of `Stream.sink`. Raises ApplicationError."""
    check_on_error(f"sink {name!r}", on_error)
    if encoder is not None:
        message = parent.one_schema(name).message
        check_function(f"encoder of sink {name!r}", encoder, takes=message, returns=(bytes,))
    if to is not None:
        check_destination(name, to, parent.schema, encoded=encoder is not None)
    return Sink(name, parent, encoder, on_error, to)
