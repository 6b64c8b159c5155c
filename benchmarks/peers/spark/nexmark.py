"""Nexmark by Spark Structured Streaming, by its own operators: no row comes to Python."""

import os
from collections.abc import Callable
from functools import partial

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from benchmarks.peers.nexmark.bidding import TOP
from benchmarks.peers.nexmark.days import HIGH, LOW
from benchmarks.peers.nexmark.rules import (
    CATEGORY,
    CHANNEL_ID,
    EUROS_PER_DOLLAR,
    KNOWN_CHANNELS,
    SIDE_ROWS,
    STATES,
)
from benchmarks.peers.spark.from_topic_to_topic import messages, session, write

SCHEMAS = {
    "persons": "id long, name string, city string, state string, at long",
    "auctions": "id long, item string, at long, expires long, seller long, category long",
    "bids": "auction long, bidder long, price long, channel string, url string, at long, extra string",
}
# A micro-batch takes what is there of each partition, so partitions may be apart.
WATERMARK = "30 seconds"
SIZE, SLIDE = "10 seconds", "2 seconds"

# The messages of a topic, and by which of their times.
Topics = Callable[..., DataFrame]
Query = Callable[[Topics], DataFrame]
# Of queries of which the newest result of a key counts.
UPDATE_KEYS = {"q18": ("auction", "bidder"), "q19": ("auction", "rank")}


def topic(spark: SparkSession, name: str, by: str = "at") -> DataFrame:
    """The messages of a topic, by event time, or by another one of theirs."""
    values = messages(spark, name).select(
        fn.from_json(fn.col("value").cast("string"), SCHEMAS[name]).alias("row")
    )
    happened = fn.expr(f"timestamp_micros({by} DIV 1000)")
    return values.select("row.*").withColumn("happened", happened).withWatermark("happened", WATERMARK)


def ns(time: Column) -> Column:
    """Unix ns."""
    return fn.unix_micros(time) * 1000


def euros() -> Column:
    """A price."""
    return fn.lit(EUROS_PER_DOLLAR) * fn.col("price")


def q3(topics: Topics) -> DataFrame:
    """A join of two streams."""
    persons = topics("persons").where(fn.col("state").isin(*STATES))
    auctions = topics("auctions").where(fn.col("category") == CATEGORY)
    joined = persons.join(auctions, persons.id == auctions.seller)
    return joined.select("name", "city", "state", auctions.id.alias("auction"))


def q5(topics: Topics) -> DataFrame:
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


def q7(topics: Topics) -> DataFrame:
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


def q8(topics: Topics) -> DataFrame:
    """A join within a window; a seller who opens another auction is dropped."""
    persons = topics("persons").withColumn("window", fn.window("happened", SIZE))
    sellers = topics("auctions").withColumn("window", fn.window("happened", SIZE)).select("seller", "window")
    sellers = sellers.dropDuplicates(["seller", "window"])
    joined = persons.join(sellers, (persons.id == sellers.seller) & (persons.window == sellers.window))
    return joined.select(persons.id.alias("person"), "name", ns(persons.window.start).alias("start"))


def q9(topics: Topics) -> DataFrame:
    """A join, then the best bid of each auction when event time is past its end, by a watermark of that."""
    auctions = topics("auctions", "expires")
    bids = topics("bids").withColumnRenamed("at", "bid_at").withColumnRenamed("happened", "bid_happened")
    joined = auctions.join(
        bids, (auctions.id == bids.auction) & fn.col("bid_at").between(auctions.at, auctions.expires)
    )
    bid = fn.struct("bidder", "price", fn.col("bid_at").alias("at"))
    order = fn.struct("price", -fn.col("bid_at"), -fn.col("bidder"))
    best = (
        joined.drop("bid_happened")
        .groupBy("id", "seller", "category", "expires", "happened")
        .agg(fn.max_by(bid, order).alias("best"))
    )
    return best.select(
        fn.col("id").alias("auction"),
        "seller",
        "category",
        "best.*",
        (fn.col("expires") + 1).alias("closed"),
    )


def q18(topics: Topics) -> DataFrame:
    """The last bid of each pair."""
    columns = ("auction", "bidder", "price", "channel", "url", "at", "extra")
    last = topics("bids").groupBy("bidder", "auction").agg(fn.max_by(fn.struct(*columns), "at").alias("last"))
    return last.select("last.*")


def q19(topics: Topics) -> DataFrame:
    """All bids of an auction are kept: Spark ranks no rows of a stream."""
    order = fn.struct((-fn.col("price")).alias("minus"), "at", "bidder")
    bids = topics("bids").groupBy("auction").agg(fn.sort_array(fn.collect_list(order)).alias("bids"))
    top = bids.select("auction", fn.posexplode(fn.slice("bids", 1, TOP)).alias("index", "bid"))
    price, rank = -fn.col("bid.minus"), fn.col("index") + 1
    return top.select("auction", "bid.bidder", price.alias("price"), "bid.at", rank.alias("rank"))


def q11(topics: Topics) -> DataFrame:
    """Sessions, which end just behind the gap: 1 ns later here than in Spark."""
    session_of = fn.session_window("happened", SIZE)
    counts = topics("bids").groupBy(session_of, "bidder").agg(fn.count("*").alias("bids"))
    start, end = ns(fn.col("session_window.start")), ns(fn.col("session_window.end")) + 1
    return counts.select("bidder", start.alias("start"), end.alias("end"), "bids")


def q13(topics: Topics) -> DataFrame:
    """A join of a stream with a table."""
    numbers = topics("bids").sparkSession.range(SIDE_ROWS)
    side = numbers.select("id", fn.concat(fn.lit("value "), "id").alias("value"))
    joined = topics("bids").join(side, fn.col("auction") % SIDE_ROWS == side.id)
    return joined.select("auction", "bidder", "price", "at", "value")


def q14(topics: Topics) -> DataFrame:
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


def price_ranges() -> dict[str, Column]:
    """Which bids are meant, by the beginning of a column's name."""
    price = fn.col("price")
    middle = (price >= LOW) & (price < HIGH)
    return {"": fn.lit(True), "low_": price < LOW, "middle_": middle, "high_": price >= HIGH}  # noqa: FBT003


def bids_by_price() -> list[Column]:
    """How many bids there are, in all and by price."""
    return [fn.count_if(meant).alias(f"{name}bids") for name, meant in price_ranges().items()]


def distinct_by_price() -> list[Column]:
    """The same, and different bidders and auctions; streams know no COUNT(DISTINCT)."""
    found = bids_by_price()
    for field in ("bidder", "auction"):
        found += [
            fn.size(fn.collect_set(fn.when(meant, fn.col(field)))).alias(f"{name}{field}s")
            for name, meant in price_ranges().items()
        ]
    return found


def of_days(bids: DataFrame, keys: list[str], columns: list[Column]) -> DataFrame:
    """Aggregates of a day."""
    days = bids.groupBy(*keys, fn.window("happened", "1 day")).agg(*columns)
    return days.select(*keys, ns(fn.col("window.start")).alias("start"), *days.columns[len(keys) + 1 :])


def q17(topics: Topics) -> DataFrame:
    """Prices of an auction's day."""
    price = fn.col("price")
    mean = (fn.sum(price) / fn.count("*")).alias("mean_price")
    columns = [fn.min(price).alias("min_price"), fn.max(price).alias("max_price"), mean]
    return of_days(
        topics("bids"), ["auction"], [*bids_by_price(), *columns, fn.sum(price).alias("sum_price")]
    )


def q20(topics: Topics) -> DataFrame:
    """A join of two streams."""
    auctions, bids = topics("auctions").where(fn.col("category") == CATEGORY), topics("bids")
    joined = bids.join(auctions, bids.auction == auctions.id)
    return joined.select(
        "auction", "bidder", "price", "channel", bids.at, "item", "seller", "category", "expires"
    )


def q21(topics: Topics) -> DataFrame:
    """Known channels, or what the url says."""
    said = fn.regexp_extract("url", CHANNEL_ID, 1)
    channel_id = fn.when(said != "", said)
    for channel, known in KNOWN_CHANNELS.items():
        channel_id = fn.when(fn.lower("channel") == channel, known).otherwise(channel_id)
    rows = topics("bids").select("auction", "bidder", "price", "channel", channel_id.alias("channel_id"))
    return rows.where(fn.col("channel_id").isNotNull())


def q22(topics: Topics) -> DataFrame:
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
    "q9": q9,
    "q11": q11,
    "q13": q13,
    "q14": q14,
    "q15": lambda topics: of_days(topics("bids"), [], distinct_by_price()),
    "q16": lambda topics: of_days(topics("bids"), ["channel"], distinct_by_price()),
    "q17": q17,
    "q18": q18,
    "q19": q19,
    "q20": q20,
    "q21": q21,
    "q22": q22,
}


if __name__ == "__main__":
    spark = session("nexmark", {"spark.sql.session.timeZone": "UTC"})
    query = os.environ["PEER_QUERY"]
    found = QUERIES[query](partial(topic, spark))
    value = fn.to_json(fn.struct("*")).alias("value")
    if query in UPDATE_KEYS:
        write(found.select(fn.concat_ws(",", *UPDATE_KEYS[query]).alias("key"), value), "update")
    else:
        write(found.select(value))
