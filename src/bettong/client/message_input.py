"""Where messages are read from: a file, or a pipe, of which nobody knows how long it is."""

from __future__ import annotations

import io
import select
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from io import BufferedReader
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from bettong.errors import ClientError, SchemaError

# What a frame is made of: bytes for a decoder, or columns.
Body: TypeAlias = list[bytes] | pa.RecordBatch

# Text is longer than its columns: by names of fields, escapes and spaces. More than this is no message of that size.
_TEXT_FRAMES_MAX = 16
_BLOCK_BYTES = 1024 * 1024
_POLL_S = 0.1  # between two polls whether an input is still wanted


@dataclass(frozen=True, slots=True)
class Piped:
    """An input that is read once, from its beginning. `name`: what errors call it."""

    name: str
    stream: BufferedReader

    def __str__(self) -> str:
        return self.name


MessageFile: TypeAlias = Path | Piped


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a source takes, and how much of it at a time."""

    schema: pa.Schema
    takes_rows: bool
    messages_max: int
    bytes_max: int

    @property
    def text_bytes_max(self) -> int:
        """The longest row of text, and where a group of them ends: so memory is bounded, whatever is in the file."""
        return _TEXT_FRAMES_MAX * self.bytes_max


class Group(NamedTuple):
    """So many rows, which make one frame where all can be read and it is not too large.

    `read` makes a body of the rows from one index to another; a SchemaError for one that does not fit says why, not
    where. `position` says where a row is. `done`: share of the file so far, None where it has no end.
    """

    length: int
    read: Callable[[int, int], Body]
    position: Callable[[int], str]
    done: float | None


class InterruptibleInput(io.RawIOBase):
    """A descriptor whose reads end when `stop` is called by another thread: a pipe may be silent for ever."""

    def __init__(self, descriptor: io.FileIO) -> None:
        self._input = descriptor
        self._stopped = threading.Event()

    def readable(self) -> bool:
        """It is."""
        return True

    def stop(self) -> None:
        """Lets a read that waits, and each later one, raise ClientError. Harmless when nobody reads."""
        self._stopped.set()

    def readinto(self, buffer: bytearray | memoryview) -> int | None:  # type: ignore[override]
        """See RawIOBase. Blocks until there is something, the input ends, or `stop`."""
        while not self._stopped.is_set():
            if select.select([self._input], [], [], _POLL_S)[0]:
                return self._input.readinto(buffer)
        raise ClientError("the input is not read any further")


def opened(file: MessageFile) -> AbstractContextManager[BufferedReader]:
    """Its bytes, from the beginning."""
    return nullcontext(file.stream) if isinstance(file, Piped) else file.open("rb")


def size_of(file: MessageFile) -> int | None:
    """Its length in bytes; None where nobody knows."""
    return None if isinstance(file, Piped) else file.stat().st_size


def share(position: int, size: int | None) -> float | None:
    """How much of an input that is, 0 to 1; a file may have grown meanwhile."""
    return None if size is None else min(1.0, position / max(size, 1))


class Rows(NamedTuple):
    """Rows of text without their ends, and the number of each in its file, from 1. What is too long is cut."""

    texts: list[bytes]
    numbers: Sequence[int]


def line_blocks(stream: BufferedReader, bytes_max: int) -> Iterator[list[bytes]]:
    """All lines, without their line feeds, as they come: some at a time.

    Of one that is longer than `bytes_max` there is one byte more than that, for `check_lengths`.
    """
    rest = b""
    while block := stream.read1(_BLOCK_BYTES):
        first, *lines = block.split(b"\n")
        rest = (rest + first)[: bytes_max + 1]
        if lines:
            whole = [rest, *lines[:-1]]
            if max(map(len, whole)) > bytes_max:
                whole = [line[: bytes_max + 1] for line in whole]
            rest = lines[-1][: bytes_max + 1]
            yield whole
    if rest:
        yield [rest]


def lines_of(stream: BufferedReader, bytes_max: int) -> Iterator[Rows]:
    """All lines that are not empty."""
    before = 0
    for lines in line_blocks(stream, bytes_max):
        numbers = range(before + 1, before + 1 + len(lines))
        before += len(lines)
        if all(map(bytes.strip, lines)):
            yield Rows(lines, numbers)
        else:
            full = [number for number, line in zip(numbers, lines, strict=True) if line.strip()]
            yield Rows([line for line in lines if line.strip()], full)


def check_lengths(texts: list[bytes], bytes_max: int, remedy: str) -> None:
    """Raises SchemaError when there is a row that was cut."""
    if max(map(len, texts)) > bytes_max:
        raise SchemaError(f"longer than {bytes_max:,} bytes; {remedy}")


def groups_of(blocks: Iterator[Rows], wanted: Wanted) -> Iterator[Rows]:
    """Cuts rows into groups, by their number and length alone, however they come."""
    texts: list[bytes] = []
    numbers: list[int] = []
    size = 0
    for block in blocks:
        texts += block.texts
        numbers += block.numbers
        size += sum(map(len, block.texts))
        while len(texts) >= wanted.messages_max or size >= wanted.text_bytes_max:
            count = _count(texts, wanted)
            size -= sum(map(len, texts[:count]))
            yield Rows(texts[:count], numbers[:count])
            del texts[:count], numbers[:count]
    if texts:
        yield Rows(texts, numbers)


def _count(texts: list[bytes], wanted: Wanted) -> int:
    """How many of these make a group."""
    most = texts[: wanted.messages_max]
    size_max = wanted.text_bytes_max
    if sum(map(len, most)) < size_max:
        return len(most)
    return next(count for count, size in enumerate(accumulate(map(len, most)), 1) if size >= size_max)
