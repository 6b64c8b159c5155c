"""The word count by Spark's own operator, in update mode: the newest count of each word that a micro-batch had."""

from pyspark.sql import functions as fn

from benchmarks.peers.spark.from_topic_to_topic import DATA_ALONE, messages, session, write

if __name__ == "__main__":
    counts = messages(session("word-count", DATA_ALONE), "messages").groupBy("key").count()
    write(
        counts.select("key", fn.concat_ws(" ", fn.col("key").cast("string"), "count").alias("value")),
        "update",
    )
