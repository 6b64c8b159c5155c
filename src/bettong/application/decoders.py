"""The decoder that calls a user's function, `bytes -> message`. Decoders of fixed layouts: `schema.layouts`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bettong.application.signatures import check_function
from bettong.schema.decoded import Decoded
from bettong.schema.schema import Schema
from bettong.user_errors import ANY_ERROR, reason_of


@dataclass(frozen=True, slots=True)
class each:  # noqa: N801 - reads as a function in an application
    """`decoder=each(function)`: one call of `function(bytes) -> message` a message; it raises to refuse."""

    function: Callable[[bytes], Any]

    def check(self, source: str, schema: Schema) -> None:
        """See Decoder."""
        owner = f"decoder of {source!r}"
        check_function(owner, self.function, takes=bytes, returns=(schema.made_class,))

    def decode(self, schema: Schema, rows: Sequence[bytes]) -> Decoded:
        """See Decoder."""
        messages: list[Any] = []
        copied = schema.copied
        refused: dict[int, str] = {}
        for index, row in enumerate(rows):
            try:
                message = self.function(row)
            except ANY_ERROR as error:
                refused[index] = reason_of(error)
                continue
            if isinstance(message, schema.made_class):
                # A function may return the same object again.
                messages.append(message if copied is None else copied(message))
            else:
                refused[index] = f"the decoder returned {type(message).__name__}, not {schema.name}"
        return Decoded(messages=messages, refused=refused)
