"""The interface of decoders, which decode bytes from clients into messages of a schema.

A decoder gets all messages of a frame at once and reports which of them it cannot read, so that one bad message
never affects the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from bettong.schema.schema import Schema

Column = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Decoded:
    """The messages that could be read, as columns in the schema's order or as message objects.

    `refused` maps the index of each unreadable message to the reason.
    """

    columns: Sequence[Column] | None = None
    messages: Sequence[Any] | None = None
    refused: dict[int, str] = field(default_factory=dict)


@runtime_checkable
class Decoder(Protocol):
    """Reads the `rows` of a frame."""

    def check(self, source: str, schema: Schema) -> None:
        """Raises ApplicationError when this decoder cannot make messages of `schema`."""

    def decode(self, schema: Schema, rows: Sequence[bytes]) -> Decoded:
        """Reads all rows; never raises for what a client sent."""
