"""Nexmark by PyFlink, in SQL from table to table: no row comes to Python."""

# ruff: noqa: S608 - queries are made of our own constants

import os

from pyflink.table import StreamTableEnvironment

from benchmarks.peers.flink.flow import KAFKA, environment
from benchmarks.peers.nexmark.bidding import TOP
from benchmarks.peers.nexmark.days import HIGH, LOW
from benchmarks.peers.nexmark.rules import CHANNEL_ID, EUROS_PER_DOLLAR, SIDE_ROWS

TOPICS = {
    "persons": "id BIGINT, name STRING, city STRING, state STRING",
    "auctions": "id BIGINT NOT NULL, item STRING, expires BIGINT, seller BIGINT, category BIGINT NOT NULL",
    "bids": "auction BIGINT NOT NULL, bidder BIGINT NOT NULL, price BIGINT, channel STRING, url STRING, extra STRING",
}
# A partition's messages come in the order of their times, two at one time behind each other.
TABLE = """
    CREATE TABLE {name} (
        {columns}, `at` BIGINT,
        happened AS TO_TIMESTAMP_LTZ(`at` / 1000000, 3), WATERMARK FOR happened AS happened - INTERVAL '0.001' SECOND
    ) WITH (
        'connector' = 'kafka', 'topic' = '{name}', 'properties.bootstrap.servers' = '{kafka}',
        'properties.group.id' = 'race', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
    )
"""
RESULTS = """
    CREATE TABLE results WITH (
        'connector' = 'kafka', 'topic' = 'results', 'properties.bootstrap.servers' = '{kafka}', 'format' = 'json',
        'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'race',
        'properties.transaction.timeout.ms' = '60000'
    ) AS {query}
"""
# Where the newest result of a key counts.
UPDATES = """
    CREATE TABLE results (PRIMARY KEY ({key}) NOT ENFORCED) WITH (
        'connector' = 'upsert-kafka', 'topic' = 'results', 'properties.bootstrap.servers' = '{kafka}',
        'key.format' = 'json', 'value.format' = 'json',
        'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'race',
        'properties.transaction.timeout.ms' = '60000'
    ) AS {query}
"""
UPDATE_KEYS = {"q4": "category", "q9": "auction", "q18": "auction, bidder", "q19": "auction, `rank`"}

SIDE = f"""
    CREATE TABLE side (id BIGINT, `value` AS 'value ' || CAST(id AS STRING)) WITH (
        'connector' = 'datagen', 'number-of-rows' = '{SIDE_ROWS}',
        'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '{SIDE_ROWS - 1}'
    )
"""

SIZE, SLIDE = "INTERVAL '10' SECOND", "INTERVAL '2' SECOND"
PRICE = f"CAST({EUROS_PER_DOLLAR} AS DOUBLE) * price"


def ns(column: str) -> str:
    """Unix ns of a window's border."""
    milliseconds = f"TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', {column}) * CAST(1000 AS BIGINT)"
    return f"({milliseconds} + EXTRACT(MILLISECOND FROM {column})) * 1000000"


def window(function: str, topic: str, *lengths: str, keys: str = "") -> str:
    """A table of a topic with windows."""
    return f"TABLE({function}(TABLE {topic}{keys}, DESCRIPTOR(happened), {', '.join(lengths)}))"


COUNTS = f"""
    SELECT auction, COUNT(*) AS bids, window_start, window_end FROM {window("HOP", "bids", SLIDE, SIZE)}
    GROUP BY auction, window_start, window_end
"""
# How many bids there are, in all and by price; different bidders and auctions.
RANGES = {
    "": "",
    "low_": f" FILTER (WHERE price < {LOW})",
    "middle_": f" FILTER (WHERE price >= {LOW} AND price < {HIGH})",
    "high_": f" FILTER (WHERE price >= {HIGH})",
}
BIDS = ", ".join(f"COUNT(*){meant} AS {name}bids" for name, meant in RANGES.items())
DISTINCT = ", ".join(
    f"COUNT(DISTINCT {field}){meant} AS {name}{field}s"
    for field in ("bidder", "auction")
    for name, meant in RANGES.items()
)


def of_days(columns: str, keys: str = "") -> str:
    """Aggregates of a day. `keys`: before the day, with a comma behind each."""
    return f"""
        SELECT {keys} {ns("window_start")} AS `start`, {columns} FROM {window("TUMBLE", "bids", "INTERVAL '1' DAY")}
        GROUP BY {keys} window_start, window_end
    """


JOINED_BIDS = """
    (SELECT id, seller, category, `at`, expires FROM auctions) a
    JOIN (SELECT auction, bidder, price, `at` FROM bids) b ON a.id = b.auction AND b.`at` BETWEEN a.`at` AND a.expires
"""
QUERIES = {
    "q0": "SELECT auction, bidder, price, channel, url, `at`, extra FROM bids",
    "q1": f"SELECT auction, bidder, {PRICE} AS price, `at` FROM bids",
    "q2": "SELECT auction, price FROM bids WHERE MOD(auction, 123) = 0",
    "q3": """
        SELECT p.name, p.city, p.state, a.id AS auction FROM auctions a JOIN persons p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
    """,
    "q4": f"""
        SELECT category, CAST(SUM(price) AS DOUBLE) / COUNT(*) AS price FROM (
            SELECT a.category, MAX(b.price) AS price FROM {JOINED_BIDS} GROUP BY a.id, a.category
        ) GROUP BY category
    """,
    "q5": f"""
        SELECT {ns("c.window_start")} AS `start`, {ns("c.window_end")} AS `end`, c.auction, c.bids FROM ({COUNTS}) c
        JOIN (
            SELECT MAX(bids) AS bids, window_start, window_end FROM ({COUNTS}) GROUP BY window_start, window_end
        ) m ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.bids = m.bids
    """,
    "q7": f"""
        SELECT {ns("b.window_start")} AS `start`, b.auction, b.price, b.bidder, b.`at`
        FROM (SELECT * FROM {window("TUMBLE", "bids", SIZE)}) b JOIN (
            SELECT MAX(price) AS price, window_start, window_end FROM {window("TUMBLE", "bids", SIZE)}
            GROUP BY window_start, window_end
        ) m ON b.window_start = m.window_start AND b.window_end = m.window_end AND b.price = m.price
    """,
    "q8": f"""
        SELECT p.id AS person, p.name, {ns("p.window_start")} AS `start`
        FROM (SELECT id, name, window_start, window_end FROM {window("TUMBLE", "persons", SIZE)}) p JOIN (
            SELECT seller, window_start, window_end FROM {window("TUMBLE", "auctions", SIZE)}
            GROUP BY seller, window_start, window_end
        ) a ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end
    """,
    "q9": f"""
        SELECT id AS auction, seller, category, bidder, price, `at`, expires + 1 AS closed FROM (
            SELECT a.id, a.seller, a.category, a.expires, b.bidder, b.price, b.`at`,
                ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.`at`, b.bidder) AS place
            FROM {JOINED_BIDS}
        ) WHERE place = 1
    """,
    # A session of the model ends just behind the gap, 1 ns later than in SQL.
    "q11": f"""
        SELECT bidder, {ns("window_start")} AS `start`, {ns("window_end")} + 1 AS `end`, COUNT(*) AS bids
        FROM {window("SESSION", "bids", SIZE, keys=" PARTITION BY bidder")}
        GROUP BY bidder, window_start, window_end
    """,
    # Flink can look up rows of what its connectors ask for each one; a bounded table is joined, and all bids are kept.
    "q13": f"SELECT auction, bidder, price, `at`, `value` FROM bids JOIN side ON MOD(auction, {SIDE_ROWS}) = id",
    "q14": f"""
        SELECT auction, bidder, {PRICE} AS price, CASE
            WHEN HOUR(happened) BETWEEN 8 AND 18 THEN 'dayTime'
            WHEN HOUR(happened) <= 6 OR HOUR(happened) >= 20 THEN 'nightTime'
            ELSE 'otherTime' END AS time_of_day,
            `at`, extra, CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS cs
        FROM bids WHERE {PRICE} > 1000000 AND {PRICE} < 50000000
    """,
    "q15": of_days(f"{BIDS}, {DISTINCT}"),
    "q16": of_days(f"{BIDS}, {DISTINCT}", "channel,"),
    "q17": of_days(
        f"""
            {BIDS}, MIN(price) AS min_price, MAX(price) AS max_price,
            CAST(SUM(price) AS DOUBLE) / COUNT(*) AS mean_price, SUM(price) AS sum_price
        """,
        "auction,",
    ),
    "q18": """
        SELECT auction, bidder, price, channel, url, `at`, extra FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY happened DESC) AS place FROM bids
        ) WHERE place = 1
    """,
    "q19": f"""
        SELECT auction, bidder, price, `at`, `rank` FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, `at`, bidder) AS `rank` FROM bids
        ) WHERE `rank` <= {TOP}
    """,
    "q20": """
        SELECT b.auction, b.bidder, b.price, b.channel, b.`at`, a.item, a.seller, a.category, a.expires
        FROM bids b JOIN auctions a ON b.auction = a.id WHERE a.category = 10
    """,
    "q21": f"""
        SELECT * FROM (
            SELECT auction, bidder, price, channel, CASE LOWER(channel)
                WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
                ELSE REGEXP_EXTRACT(url, '{CHANNEL_ID}', 1) END AS channel_id
            FROM bids
        ) WHERE channel_id IS NOT NULL
    """,
    "q22": """
        SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3) AS folder_1,
            SPLIT_INDEX(url, '/', 4) AS folder_2, SPLIT_INDEX(url, '/', 5) AS folder_3
        FROM bids
    """,
}


def main() -> None:
    """Runs until the process is ended."""
    tables = StreamTableEnvironment.create(environment())
    tables.get_config().set_local_timezone("UTC")
    for name, columns in TOPICS.items():
        tables.execute_sql(TABLE.format(name=name, columns=columns, kafka=KAFKA))
    tables.execute_sql(SIDE)
    query = os.environ["PEER_QUERY"]
    key = UPDATE_KEYS.get(query)
    made = (UPDATES if key else RESULTS).format(query=QUERIES[query], kafka=KAFKA, key=key)
    tables.execute_sql(made).wait()
