"""Inputs out of other inputs: the same for the same numbers drawn."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from random import Random

from tests.fuzz.harness import INPUT_BYTES_MAX

_NUMBERS = (0, 1, 2, 7, 8, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1)
_BYTES = (0x00, 0x01, 0x0A, 0x22, 0x2C, 0x5B, 0x7B, 0x7F, 0x80, 0xC3, 0xFF)
# Enough for every parser's recursion to end, or not.
_NESTED = 20_000


def mutated(random: Random, inputs: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """One of the inputs, changed in one to eight places."""
    data = bytearray(random.choice(inputs))
    for _ in range(random.choice((1, 1, 1, 2, 3, 5, 8))):
        _change(random, data, inputs, words)
    return bytes(data[:INPUT_BYTES_MAX])


def _change(random: Random, data: bytearray, inputs: Sequence[bytes], words: Sequence[bytes]) -> None:
    offset = random.randrange(len(data) + 1)
    kind = random.randrange(9)
    if kind == 0 and offset < len(data):
        data[offset] ^= 1 << random.randrange(8)
    elif kind == 1 and offset < len(data):
        data[offset] = random.choice(_BYTES)
    elif kind == 2:
        size = random.choice((2, 4, 8))
        number = random.choice(_NUMBERS) * random.choice((1, -1)) % 2 ** (8 * size)
        offset -= offset % size
        data[offset : offset + size] = number.to_bytes(size, random.choice(("little", "big")))
    elif kind == 3:
        del data[offset : offset + random.randrange(1, 17)]
    elif kind == 4:
        data[offset:offset] = data[offset : offset + random.randrange(1, 33)]
    elif kind == 5:
        other = random.choice(inputs)
        start = random.randrange(len(other) + 1)
        data[offset : offset + random.randrange(33)] = other[start : start + random.randrange(65)]
    elif kind == 6 and words:
        data[offset : offset + random.choice((0, 0, 4, 8))] = random.choice(words)
    elif kind == 7:
        data[offset:offset] = random.randbytes(random.randrange(1, 9))
    elif random.randrange(50) == 0:
        data[offset:offset] = random.choice((b"[", b"{", b'{"a":', b"\x0a\xff", b"9", b"-")) * _NESTED
    else:
        del data[offset:]


def floats() -> tuple[bytes, ...]:
    """Numbers that break arithmetic, as words of binary inputs."""
    return tuple(struct.pack("<d", value) for value in (float("nan"), float("inf"), -0.0, 1e308))
