"""Nexmark by Spark Structured Streaming, by its own operators: no row comes to Python."""

import os
from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from benchmarks.peers.nexmark.rules import CATEGORY, CHANNEL_ID, EUROS_PER_DOLLAR, KNOWN_CHANNELS, STATES
from benchmarks.peers.spark.from_topic_to_topic import messages, session, write

SCHEMAS = {
    "persons": "id long, name string, city string, state string, at long",
    "auctions": "id long, item string, at long, expires long, seller long, category long",
    "bids": "auction long, bidder long, price long, channel string, url string, at long, extra string",
}
# A micro-batch takes what is there of each partition, so partitions may be apart.
WATERMARK = "30 seconds"
SIZE, SLIDE = "10 seconds", "2 seconds"

Query = Callable[[Callable[[str], DataFrame]], DataFrame]


def topic(spark: SparkSession, name: str) -> DataFrame:
    """The messages of a topic, by event time."""
    values = messages(spark, name).select(
        fn.from_json(fn.col("value").cast("string"), SCHEMAS[name]).alias("row")
    )
    happened = fn.expr("timestamp_micros(at DIV 1000)")
    return values.select("row.*").withColumn("happened", happened).withWatermark("happened", WATERMARK)


def ns(time: Column) -> Column:
    """Unix ns."""
    return fn.unix_micros(time) * 1000


def euros() -> Column:
    """A price."""
    return fn.lit(EUROS_PER_DOLLAR) * fn.col("price")


def q3(topics: Callable[[str], DataFrame]) -> DataFrame:
    """A join of two streams."""
    persons = topics("persons").where(fn.col("state").isin(*STATES))
    auctions = topics("auctions").where(fn.col("category") == CATEGORY)
    joined = persons.join(auctions, persons.id == auctions.seller)
    return joined.select("name", "city", "state", auctions.id.alias("auction"))


def q5(topics: Callable[[str], DataFrame]) -> DataFrame:
    """Counts of windows, then all that have the most."""
    counts = (
        topics("bids").groupBy(fn.window("happened", SIZE, SLIDE), "auction").agg(fn.count("*").alias("bids"))
    )
    of_all = counts.groupBy("window").agg(
        fn.max("bids").alias("most"), fn.collect_list(fn.struct("auction", "bids")).alias("counts")
    )
    rows = of_all.select(
        "window", fn.explode(fn.filter("counts", lambda count: count.bids == fn.col("most"))).alias("top")
    )
    return rows.select(
        ns(fn.col("window.start")).alias("start"),
        ns(fn.col("window.end")).alias("end"),
        "top.auction",
        "top.bids",
    )


def q7(topics: Callable[[str], DataFrame]) -> DataFrame:
    """Bids of each price, of which the highest are kept: a join with their maximum would keep all."""
    bid = fn.struct("price", "auction", "bidder", "at")
    prices = (
        topics("bids")
        .groupBy(fn.window("happened", SIZE))
        .agg(fn.max("price").alias("most"), fn.collect_list(bid).alias("bids"))
    )
    rows = prices.select(
        "window", fn.explode(fn.filter("bids", lambda each: each.price == fn.col("most"))).alias("top")
    )
    return rows.select(
        ns(fn.col("window.start")).alias("start"), "top.auction", "top.price", "top.bidder", "top.at"
    )


def q8(topics: Callable[[str], DataFrame]) -> DataFrame:
    """A join within a window; a seller who opens another auction is dropped."""
    persons = topics("persons").withColumn("window", fn.window("happened", SIZE))
    sellers = topics("auctions").withColumn("window", fn.window("happened", SIZE)).select("seller", "window")
    sellers = sellers.dropDuplicates(["seller", "window"])
    joined = persons.join(sellers, (persons.id == sellers.seller) & (persons.window == sellers.window))
    return joined.select(persons.id.alias("person"), "name", ns(persons.window.start).alias("start"))


def q11(topics: Callable[[str], DataFrame]) -> DataFrame:
    """Sessions, which end just behind the gap: 1 ns later here than in Spark."""
    session_of = fn.session_window("happened", SIZE)
    counts = topics("bids").groupBy(session_of, "bidder").agg(fn.count("*").alias("bids"))
    start, end = ns(fn.col("session_window.start")), ns(fn.col("session_window.end")) + 1
    return counts.select("bidder", start.alias("start"), end.alias("end"), "bids")


def q14(topics: Callable[[str], DataFrame]) -> DataFrame:
    """The time of day in words."""
    hour = fn.hour("happened")
    words = fn.when(hour.between(8, 18), "dayTime").when((hour <= 6) | (hour >= 20), "nightTime")
    return (
        topics("bids")
        .where((euros() > 1_000_000) & (euros() < 50_000_000))
        .select(
            "auction",
            "bidder",
            euros().alias("price"),
            words.otherwise("otherTime").alias("time_of_day"),
            "at",
            "extra",
            fn.regexp_count("extra", fn.lit("c")).alias("cs"),
        )
    )


def q20(topics: Callable[[str], DataFrame]) -> DataFrame:
    """A join of two streams."""
    auctions, bids = topics("auctions").where(fn.col("category") == CATEGORY), topics("bids")
    joined = bids.join(auctions, bids.auction == auctions.id)
    return joined.select(
        "auction", "bidder", "price", "channel", bids.at, "item", "seller", "category", "expires"
    )


def q21(topics: Callable[[str], DataFrame]) -> DataFrame:
    """Known channels, or what the url says."""
    said = fn.regexp_extract("url", CHANNEL_ID, 1)
    channel_id = fn.when(said != "", said)
    for channel, known in KNOWN_CHANNELS.items():
        channel_id = fn.when(fn.lower("channel") == channel, known).otherwise(channel_id)
    rows = topics("bids").select("auction", "bidder", "price", "channel", channel_id.alias("channel_id"))
    return rows.where(fn.col("channel_id").isNotNull())


def q22(topics: Callable[[str], DataFrame]) -> DataFrame:
    """Folders of the url."""
    parts = fn.split("url", "/")
    folders = [parts[2 + number].alias(f"folder_{number}") for number in (1, 2, 3)]
    return topics("bids").select("auction", "bidder", "price", "channel", *folders)


QUERIES: dict[str, Query] = {
    "q0": lambda topics: topics("bids").select("auction", "bidder", "price", "channel", "url", "at", "extra"),
    "q1": lambda topics: topics("bids").select("auction", "bidder", euros().alias("price"), "at"),
    "q2": lambda topics: topics("bids").where(fn.col("auction") % 123 == 0).select("auction", "price"),
    "q3": q3,
    "q5": q5,
    "q7": q7,
    "q8": q8,
    "q11": q11,
    "q14": q14,
    "q20": q20,
    "q21": q21,
    "q22": q22,
}


if __name__ == "__main__":
    spark = session("nexmark", {"spark.sql.session.timeZone": "UTC"})
    found = QUERIES[os.environ["PEER_QUERY"]](lambda name: topic(spark, name))
    write(found.select(fn.to_json(fn.struct("*")).alias("value")))
