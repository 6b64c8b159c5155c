"""The application that runs while `recording` records Java's classes: two stages, with a `key_by` and a sink."""

from collections.abc import Iterator
from dataclasses import dataclass

import bettong


@dataclass(slots=True)
class RecordedLine:
    """A line of text."""

    text: str


@dataclass(slots=True)
class RecordedWord:
    """One word of a line."""

    word: str


@dataclass(slots=True)
class RecordedCount:
    """How often a word has been seen: the state of a word, and the result."""

    word: str = ""
    total: int = 0


def words(line: RecordedLine) -> Iterator[RecordedWord]:
    """The words of a line."""
    for word in line.text.split():
        yield RecordedWord(word)


def count(word: RecordedWord, seen: RecordedCount) -> RecordedCount:
    """Counts a word."""
    seen.word, seen.total = word.word, seen.total + 1
    return RecordedCount(seen.word, seen.total)


app = bettong.Application("recorded")
app.source("lines", schema=RecordedLine).flat_map(words).key_by("word").stateful(
    count, state=RecordedCount
).sink("counts")
