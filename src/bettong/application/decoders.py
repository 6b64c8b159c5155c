"""Decoders: bytes from clients become messages.

A decoder gets all messages of a frame at once and says which of them it cannot read, so that one bad message
never takes its neighbours along. Any function `bytes -> message` serves through `each`; fixed binary layouts are read
a frame at a time (`layouts`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from bettong.application.on_error import ANY_ERROR, reason_of
from bettong.application.schema import Schema
from bettong.application.signatures import check_function

Column = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Decoded:
    """The messages that could be read, as columns in the schema's order or as message objects.

    `refused` maps the place of each unreadable message to the reason.
    """

    columns: Sequence[Column] | None = None
    messages: Sequence[Any] | None = None
    refused: dict[int, str] = field(default_factory=dict)


class Decoder(Protocol):
    """Reads the `rows` of a frame."""

    def check(self, source: str, schema: Schema) -> None:
        """Raises ApplicationError when this decoder cannot give messages of `schema`."""

    def decode(self, schema: Schema, rows: Sequence[bytes]) -> Decoded:
        """Reads all rows; never raises for what a client sent."""


@dataclass(frozen=True, slots=True)
class each:  # noqa: N801 - reads as a function in an application
    """`decoder=each(function)`: one call of `function(bytes) -> message` a message; it raises to refuse."""

    function: Callable[[bytes], Any]

    def check(self, source: str, schema: Schema) -> None:
        """See Decoder."""
        owner = f"decoder of {source!r}"
        check_function(owner, self.function, takes=bytes, returns=(schema.message,))

    def decode(self, schema: Schema, rows: Sequence[bytes]) -> Decoded:
        """See Decoder."""
        messages: list[Any] = []
        refused: dict[int, str] = {}
        for place, row in enumerate(rows):
            try:
                message = self.function(row)
            except ANY_ERROR as error:
                refused[place] = reason_of(error)
                continue
            if isinstance(message, schema.message):
                messages.append(message)
            else:
                refused[place] = f"the decoder returned {type(message).__name__}, not {schema.name}"
        return Decoded(messages=messages, refused=refused)
