"""A stateful word count, from topic to topic: for each word how often it has come so far.

The workload by which Spark's makers measure its real-time mode. A record is a word; a result is the word and its count.
"""

from dataclasses import dataclass

import bettong


@dataclass(slots=True)
class Word:
    """One that came."""

    word: str


@dataclass(slots=True)
class Count:
    """So often until now."""

    count: int = 0


@dataclass(slots=True)
class CountedWord:
    """A word, which has come so often."""

    word: str
    count: int


def read(value: bytes) -> Word:
    """A record's value."""
    return Word(value.decode())


def count(word: Word, state: Count) -> CountedWord:
    """Once more."""
    state.count += 1
    return CountedWord(word.word, state.count)


def write(counted: CountedWord) -> bytes:
    """As text."""
    return f"{counted.word} {counted.count}\n".encode()


app = bettong.Application("word-count")
words = app.source(
    "words", schema=Word, key="word", decoder=bettong.each(read), from_=bettong.KafkaTopic("words")
)
words.stateful(count, state=Count).sink("counts", encoder=write, to=bettong.KafkaTopic("counts"))
