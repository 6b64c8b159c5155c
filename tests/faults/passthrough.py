"""What comes in goes out, keyed by its first byte: the output of each key is its input, byte for byte."""

import struct
from dataclasses import dataclass
from typing import Annotated

import bettong
from bettong import Width

PAYLOAD_BYTES = 999
_LENGTH = struct.Struct(">I")


@dataclass(slots=True)
class Letter:
    """A key and what it carries."""

    key: Annotated[bytes, Width(1)]
    payload: Annotated[bytes, Width(PAYLOAD_BYTES)]


def same(letter: Letter) -> Letter:
    """Nothing is done to it."""
    return letter


def pack(letter: Letter) -> bytes:
    """As it came in: its length, then key and payload."""
    return _LENGTH.pack(1 + PAYLOAD_BYTES) + letter.key + letter.payload


def read(row: bytes) -> Letter:
    """Key and payload."""
    return Letter(row[:1], row[1:])


app = bettong.Application("passthrough")
app.source("letters", schema=Letter, key="key", decoder=bettong.each(read)).map(same).sink(
    "copies", encoder=pack
)
