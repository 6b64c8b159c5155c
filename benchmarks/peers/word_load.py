"""The word count by which Spark's makers measure its real-time mode: words, and how often each has come so far.

A record is a word, under itself; a result is the word and its count as text. First each of 50,000 comes once, so that
there is a state of each, then words by chance, always the same.
"""

import time
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from benchmarks.lab.word_count_load import WORDS
from benchmarks.peers.load import Load, Record
from examples.market_spread_oracle import Results


def word_load(messages: int) -> Load:
    """So many words by chance behind the first ones."""
    opening = [_record(word) for word in range(WORDS)]
    timed = [_record(word) for word in np.random.default_rng(1).integers(0, WORDS, messages).tolist()]
    expected = by_word(_counts([record.value for record in opening + timed]))
    return Load(opening, timed, messages, len(opening), expected, by_word)


def word_loop(messages: int) -> float:
    """Messages a second of the plain loop that gives the answer."""
    load = word_load(messages)
    words = [record.value for record in load.opening + load.timed]
    begun = time.process_time()
    _counts(words)
    return len(words) / (time.process_time() - begun)


def by_word(results: Sequence[bytes]) -> Results:
    """The results of each word, in their order."""
    found: Results = {}
    for result in results:
        found.setdefault(result.partition(b" ")[0], []).append(result)
    return found


def _counts(words: Sequence[bytes]) -> list[bytes]:
    counts: defaultdict[bytes, int] = defaultdict(int)
    results = []
    for word in words:
        counts[word] += 1
        results.append(b"%b %d" % (word, counts[word]))
    return results


def _record(word: int) -> Record:
    value = b"word-%d" % word
    return Record(value, value)
