"""A stateful word count, from topic to topic: for each word, how often it has occurred so far.

Spark's makers measure its real-time mode with this workload. A record is a word; a result is the word and its count.
"""

from dataclasses import dataclass

import bettong


@dataclass(slots=True)
class Word:
    """A word of the stream."""

    word: str


@dataclass(slots=True)
class Count:
    """How often a word has occurred."""

    count: int = 0


@dataclass(slots=True)
class CountedWord:
    """A word, and how often it has occurred."""

    word: str
    count: int


def read(value: bytes) -> Word:
    """Decodes a record's value."""
    return Word(value.decode())


def count(word: Word, state: Count) -> CountedWord:
    """Counts a word."""
    state.count += 1
    return CountedWord(word.word, state.count)


def write(counted: CountedWord) -> bytes:
    """Encodes a result as text."""
    return f"{counted.word} {counted.count}\n".encode()


app = bettong.Application("word-count")
words = app.source(
    "words", schema=Word, key="word", decoder=bettong.each(read), from_=bettong.KafkaTopic("words")
)
words.stateful(count, state=Count).sink("counts", encoder=write, to=bettong.KafkaTopic("counts"))
