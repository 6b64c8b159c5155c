"""Words as a load of the lab: each of 50,000 once, then random ones, and the expected count of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bettong.lab.load import PARTITION, VALUE, LoadPart, SinkResults

SOURCE, SINK = "words", "counts"
WORDS = 50_000


class WordLoad:
    """See `bettong.lab.load.TopicLoad`. Each word has one partition, which keeps the order of its records."""

    def __init__(self, messages: int, seed: int) -> None:
        self._drawn = np.random.default_rng(seed).integers(WORDS, size=messages)
        counts, self._messages = [1] * WORDS, {f"word-{word} 1\n".encode(): -1 for word in range(WORDS)}
        for number, word in enumerate(self._drawn.tolist()):
            counts[word] += 1
            self._messages[f"word-{word} {counts[word]}\n".encode()] = number

    def first(self) -> Sequence[LoadPart]:
        """Every word once, which creates its state."""
        return [_part(np.arange(WORDS))]

    def rounds(self) -> Iterator[Sequence[LoadPart]]:
        """Random words, in one round."""
        yield [_part(self._drawn)]

    def result_bytes(self) -> Mapping[str, int]:
        """The bytes of one count per word sent."""
        return {SINK: sum(map(len, self._messages))}

    def wrong(self, results: Mapping[str, SinkResults]) -> str:
        """Checks that each count of each word arrived once."""
        found = results[SINK].each
        lost, strange = self._messages.keys() - set(found), set(found) - self._messages.keys()
        doubled = len(found) - len(set(found))
        if not (lost or strange or doubled):
            return ""
        return f"{len(lost)} counts lost, {doubled} doubled, {len(strange)} never expected"

    def message_of(self, result: bytes) -> int:
        """The message that a word's count belongs to."""
        return self._messages[result]


def load(messages: int, seed: int) -> WordLoad:
    """The words, with their expected counts."""
    return WordLoad(messages, seed)


def _part(words: np.ndarray) -> LoadPart:
    values = [f"word-{word}".encode() for word in words.tolist()]
    return LoadPart(SOURCE, {VALUE: np.array(values, dtype=object), PARTITION: words})
