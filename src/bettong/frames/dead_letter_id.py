"""The id of a dead letter, and the name of the stream in which its message is sent again."""

from __future__ import annotations

import re
from typing import NamedTuple, Self

_ID = re.compile(r"([0-9]{1,5})\.([0-9]{1,19})\.([0-9]{1,9})")
_STREAM = "dead-letter."


class DeadLetterId(NamedTuple):
    """The location of a dead letter: partition and offset in the topic, and row in the frame."""

    partition: int
    offset: int
    row: int

    def __str__(self) -> str:
        return f"{self.partition}.{self.offset}.{self.row}"

    @property
    def stream(self) -> str:
        """The name of the stream under which it is sent again, always the same."""
        return f"{_STREAM}{self}"

    @classmethod
    def of(cls, text: str) -> Self | None:
        """The inverse of `str`; None for any other text."""
        found = _ID.fullmatch(text)
        return cls(*map(int, found.groups())) if found else None

    @classmethod
    def of_stream(cls, name: str) -> Self | None:
        """The dead letter that a stream is named after; None for any other stream."""
        return cls.of(name.removeprefix(_STREAM)) if name.startswith(_STREAM) else None
