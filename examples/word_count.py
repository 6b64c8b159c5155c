"""Word count: lines of text in, how often each word has been seen so far out.

bettong run examples/word_count.py
bettong send lines README.jsonl     (one {"text": "..."} a line)
bettong tail counts
"""

from collections.abc import Iterator
from dataclasses import dataclass

import bettong


@dataclass(slots=True)
class Line:
    """A line of text."""

    text: str


@dataclass(slots=True)
class Word:
    """One word of a line, in lower case."""

    word: str


@dataclass(slots=True)
class Count:
    """How often a word has been seen."""

    word: str
    total: int


@dataclass(slots=True)
class Seen:
    """What is kept of a word."""

    total: int = 0


def read_line(data: bytes) -> Line:
    """A line as clients send it: UTF-8 text."""
    return Line(data.decode())


def words(line: Line) -> Iterator[Word]:
    """The words of a line."""
    for word in line.text.lower().split():
        yield Word(word)


def count(word: Word, seen: Seen) -> Count:
    """Counts a word."""
    seen.total += 1
    return Count(word.word, seen.total)


app = bettong.Application("word-count")
(
    app.source("lines", schema=Line, decoder=bettong.each(read_line))
    .flat_map(words)
    .key_by("word")
    .stateful(count, state=Seen)
    .sink("counts")
)
