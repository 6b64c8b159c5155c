"""Inputs of messages: a file, or a pipe, whose length is unknown."""

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

# Text is longer than its columns: by names of fields, escapes and spaces. But a text longer than so many frames cannot
# be a message that fits one.
_TEXT_FRAMES_MAX = 16
_BLOCK_BYTES = 1024 * 1024
_POLL_MS = 100  # how often a read that waits checks whether it was stopped


@dataclass(frozen=True, slots=True)
class Piped:
    """An input that can be read only once, from its beginning. `name`: what errors call it."""

    name: str
    stream: BufferedReader

    def __str__(self) -> str:
        return self.name


MessageFile: TypeAlias = Path | Piped


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a source takes, and the limits of one frame."""

    schema: pa.Schema
    takes_rows: bool
    messages_max: int
    bytes_max: int

    @property
    def text_bytes_max(self) -> int:
        """Limit of a row of text, and of a group of rows: it bounds memory, whatever the file holds."""
        return _TEXT_FRAMES_MAX * self.bytes_max


class Group(NamedTuple):
    """So many rows, which make one frame if all can be read and fit.

    `read` makes a body of the rows from one index to another; its SchemaError says why a row does not fit, not which.
    `position` says where a row is. `done`: share of the file that is read so far, None for a pipe.
    """

    length: int
    read: Callable[[int, int], Body]
    position: Callable[[int], str]
    done: float | None


class InterruptibleInput(io.RawIOBase):
    """A descriptor whose reads end when `stopped` is set, by another thread: a pipe may be silent for ever."""

    def __init__(self, descriptor: io.FileIO, stopped: threading.Event) -> None:
        self._input = descriptor
        self._stopped = stopped
        self._readable = select.poll()  # unlike `select.select` it takes descriptors above 1,023
        self._readable.register(descriptor, select.POLLIN)

    def readable(self) -> bool:
        """See RawIOBase."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int | None:  # type: ignore[override]
        """See RawIOBase. Blocks until there is something or the input ends. Raises ClientError once it is stopped."""
        while not self._stopped.is_set():
            if self._readable.poll(_POLL_MS):
                return self._input.readinto(buffer)
        raise ClientError("the input is not read any further")


def opened(file: MessageFile) -> AbstractContextManager[BufferedReader]:
    """Opens the input at its beginning."""
    return nullcontext(file.stream) if isinstance(file, Piped) else file.open("rb")


def size_of(file: MessageFile) -> int | None:
    """The length of the input in bytes; None if unknown."""
    return None if isinstance(file, Piped) else file.stat().st_size


def share(position: int, size: int | None) -> float | None:
    """The share of the input that is read, 0 to 1; a file may have grown meanwhile."""
    return None if size is None else min(1.0, position / max(size, 1))


class Rows(NamedTuple):
    """Rows of text without line ends, and the number of each in its file, from 1. One that is too long is truncated."""

    texts: list[bytes]
    numbers: Sequence[int]


def line_blocks(stream: BufferedReader, bytes_max: int) -> Iterator[list[bytes]]:
    """All lines, without their line feeds, in lists as they arrive.

    A line longer than `bytes_max` is truncated to one byte more than that, so that `check_lengths` finds it.
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
    """All lines that are not blank, with their numbers."""
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
    """Raises SchemaError when a row was truncated."""
    if max(map(len, texts)) > bytes_max:
        raise SchemaError(f"longer than {bytes_max:,} bytes; {remedy}")


def groups_of(blocks: Iterator[Rows], wanted: Wanted) -> Iterator[Rows]:
    """Splits rows into groups by their number and length alone, however they arrive."""
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
    """How many of these rows make a group."""
    most = texts[: wanted.messages_max]
    size_max = wanted.text_bytes_max
    if sum(map(len, most)) < size_max:
        return len(most)
    return next(count for count, size in enumerate(accumulate(map(len, most)), 1) if size >= size_max)
