"""The word count by Spark's `applyInPandasWithState`: every count of each word."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from benchmarks.peers.spark.from_topic_to_topic import OUTPUT, run


def count(key: tuple[Any, ...], rows: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """A batch's records of a word."""
    before = state.get[0] if state.exists else 0
    after = before + sum(map(len, rows))
    state.update((after,))
    values = [b"%b %d" % (key[0], each) for each in range(before + 1, after + 1)]
    yield pd.DataFrame({"key": [key[0]] * len(values), "value": values})


if __name__ == "__main__":
    run(
        lambda records: records.groupBy("key").applyInPandasWithState(
            count, OUTPUT, "times long", "append", GroupStateTimeout.NoTimeout
        ),
        {},
    )
