"""The word count by bytewax: `python -m bytewax.run benchmarks.peers.bytewax.word_count`."""

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSourceMessage

from benchmarks.peers.bytewax.flow import from_topic_to_topic


def keyed(records: list[KafkaSourceMessage]) -> list[tuple[str, bytes]]:
    """A word a record."""
    return [(record.key.decode(), record.value) for record in records]


def count(kept: int | None, word: bytes) -> tuple[int, bytes]:
    """Once more."""
    count = (kept or 0) + 1
    return count, b"%b %d" % (word, count)


flow = from_topic_to_topic("word-count", keyed, lambda words: op.stateful_map("count", words, count))
