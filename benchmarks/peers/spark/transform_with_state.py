"""Market Spread by Spark's `transformWithStateInPandas`; state in RocksDB, which it needs, with changelogs."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from benchmarks.peers.market import NEW
from benchmarks.peers.spark.from_topic_to_topic import OUTPUT, judged, run

STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Check(StatefulProcessor):
    """Keeps a symbol's market as a value."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """See StatefulProcessor."""
        self._market = handle.getValueState("market", "bid double, offer double, rejects boolean")

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """A batch's messages of a symbol."""
        before = self._market.get()
        market, results = judged(key[0], rows, NEW if before is None else before)
        self._market.update(tuple(market))
        yield results

    def close(self) -> None:
        """See StatefulProcessor."""


if __name__ == "__main__":
    run(
        lambda records: records.groupBy("key").transformWithStateInPandas(
            statefulProcessor=Check(), outputStructType=OUTPUT, outputMode="append", timeMode="None"
        ),
        {
            "spark.sql.streaming.stateStore.providerClass": STORE,
            "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        },
    )
