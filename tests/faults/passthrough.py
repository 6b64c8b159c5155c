"""What comes in goes out, keyed by its first byte: the output of each key is its input, byte for byte."""

import ctypes
import os
import struct
from collections.abc import Iterator
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


def read_known(row: bytes) -> Letter:
    """As `read`, of ten keys alone."""
    if not b"A" <= row[:1] <= b"J":
        raise ValueError("no letter begins so")
    return read(row)


def unfaithful(letter: Letter) -> Iterator[Letter]:
    """Loses some of A, doubles some of B and changes some of C: a test sees whether that is found out."""
    chosen = letter.payload[0] < 64
    if letter.key == b"A" and chosen:
        return
    if letter.key == b"C" and chosen:
        letter = Letter(letter.key, b"changed" + letter.payload[7:])
    yield letter
    if letter.key == b"B" and chosen:
        yield letter


def deadly(letter: Letter) -> Letter:
    """Ends its process for one letter in 6,500."""
    if letter.payload[0] == 0 and letter.payload[1] < 10:
        if letter.payload[2] % 2:
            os._exit(7)
        ctypes.string_at(0)
    return letter


app = bettong.Application("passthrough")
app.source("letters", schema=Letter, key="key", decoder=bettong.each(read)).map(same).sink(
    "copies", encoder=pack
)

choosy = bettong.Application("choosy")
choosy.source("letters", schema=Letter, key="key", decoder=bettong.each(read_known)).map(same).sink(
    "copies", encoder=pack
)

broken = bettong.Application("unfaithful")
(
    broken.source("letters", schema=Letter, key="key", decoder=bettong.each(read))
    .flat_map(unfaithful)
    .sink("copies", encoder=pack)
)

killing = bettong.Application("deadly")
(
    killing.source("letters", schema=Letter, key="key", decoder=bettong.each(read))
    .map(deadly)
    .sink("copies", encoder=pack)
)
