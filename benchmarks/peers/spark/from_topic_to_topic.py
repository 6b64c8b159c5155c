"""What Spark's programs share: a session, the records of an input topic, and a query into the output topic."""

import os
import sys
from collections.abc import Callable, Iterator

import pandas as pd
from pyspark.sql import DataFrame, SparkSession

from benchmarks.peers.market import Market, step
from bettong.jars import CONNECTOR_JARS

OUTPUT = "key binary, value binary"
_KAFKA = os.environ.get("PEER_KAFKA", "")
_STATE = os.environ.get("PEER_STATE", "")
# Options of a session without timeouts and watermarks: a batch that has no data has nothing to do.
DATA_ALONE = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}


def judged(key: bytes, rows: Iterator[pd.DataFrame], market: Market) -> tuple[Market, pd.DataFrame]:
    """All of a symbol's messages in a batch. A shuffle promises no order, so they are put in that of the log."""
    results = []
    for message in pd.concat(list(rows)).sort_values("offset")["value"]:
        market, result = step(message, market)
        if result is not None:
            results.append(result)
    return market, pd.DataFrame({"key": [key] * len(results), "value": results})


def run(query: Callable[[DataFrame], DataFrame], more: dict[str, str]) -> None:
    """Runs until the process is ended. `more`: options of the session."""
    records = messages(session("market-spread", DATA_ALONE | more), "messages")
    write(query(records.select("key", "value", "offset")))


def session(name: str, more: dict[str, str]) -> SparkSession:
    """A session in this process."""
    processes = os.environ["PEER_PROCESSES"]
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.appName(name).master(f"local[{processes}]")
    options = {
        "spark.driver.extraClassPath": os.pathsep.join(map(str, CONNECTOR_JARS.glob("*.jar"))),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        # Spark's guide to stateful queries: one to two a core.
        "spark.sql.shuffle.partitions": processes,
        **more,
    }
    for option, value in options.items():
        builder = builder.config(option, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def messages(spark: SparkSession, topic: str) -> DataFrame:
    """The records of a topic."""
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", _KAFKA)
    return source.option("subscribe", topic).option("startingOffsets", "earliest").load()


def write(results: DataFrame, mode: str = "append") -> None:
    """Writes the results until the process is ended."""
    sink = results.writeStream.format("kafka").outputMode(mode)
    sink = sink.option("kafka.bootstrap.servers", _KAFKA).option("topic", "results")
    sink.option("checkpointLocation", f"{_STATE}/checkpoint").start().awaitTermination()
