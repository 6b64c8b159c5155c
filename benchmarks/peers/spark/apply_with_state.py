"""Market Spread by Spark's `applyInPandasWithState`, with its default store: state in memory, saved each batch."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from benchmarks.peers.market import NEW
from benchmarks.peers.spark.from_topic_to_topic import OUTPUT, judged, run


def check(key: tuple[Any, ...], rows: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """A batch's messages of a symbol."""
    market, results = judged(key[0], rows, state.get if state.exists else NEW)
    state.update(tuple(market))
    yield results


if __name__ == "__main__":
    run(
        lambda records: records.groupBy("key").applyInPandasWithState(
            check,
            OUTPUT,
            "bid double, offer double, rejects boolean",
            "append",
            GroupStateTimeout.NoTimeout,
        ),
        {},
    )
