"""The word count by Bettong, from topic to topic: that of the lab, in the peers' topics."""

import bettong
from benchmarks.lab.word_count import Count, CountedWord, Word, count, read
from benchmarks.peers.bettong.topics import CONNECTION, RESULTS
from benchmarks.peers.load import INPUT


def write(counted: CountedWord) -> bytes:
    """A result as it goes out."""
    return b"%b %d" % (counted.word.encode(), counted.count)


app = bettong.Application("word-count-topic")
words = app.source(
    INPUT,
    schema=Word,
    key="word",
    decoder=bettong.each(read),
    from_=bettong.KafkaTopic(INPUT, connection=CONNECTION),
)
words.stateful(count, state=Count).sink("counts", encoder=write, to=RESULTS)
