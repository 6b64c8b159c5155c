"""The word count by PyFlink, in SQL from table to table: no row comes to Python. Exactly once.

A result is there for a reader when its checkpoint is complete: ten a second.
"""

from pyflink.table import StreamTableEnvironment

from benchmarks.peers.flink.flow import KAFKA, environment

CHECKPOINT_MS = 100
# By default records wait up to 100 ms between two subtasks; Flink's guide to low latency says 5 or 10.
BUFFER_MS = 5
WORDS = f"""
    CREATE TABLE words (word STRING) WITH (
        'connector' = 'kafka', 'topic' = 'messages', 'properties.bootstrap.servers' = '{KAFKA}',
        'properties.group.id' = 'race', 'scan.startup.mode' = 'earliest-offset', 'format' = 'raw'
    )
"""
COUNTS = f"""
    CREATE TABLE counts (word STRING, times BIGINT, PRIMARY KEY (word) NOT ENFORCED) WITH (
        'connector' = 'upsert-kafka', 'topic' = 'results', 'properties.bootstrap.servers' = '{KAFKA}',
        'key.format' = 'raw', 'value.format' = 'csv', 'value.csv.field-delimiter' = ' ',
        'value.csv.disable-quote-character' = 'true', 'sink.delivery-guarantee' = '{{guarantee}}',
        'sink.transactional-id-prefix' = 'race', 'properties.transaction.timeout.ms' = '60000'
    )
"""


def run(guarantee: str, checkpoint_ms: int) -> None:
    """Runs until the process is ended."""
    flow = environment(checkpoint_ms).set_buffer_timeout(BUFFER_MS)
    tables = StreamTableEnvironment.create(flow)
    tables.execute_sql(WORDS)
    tables.execute_sql(COUNTS.format(guarantee=guarantee))
    tables.execute_sql("INSERT INTO counts SELECT word, COUNT(*) FROM words GROUP BY word").wait()


def main() -> None:
    """See `run`."""
    run("exactly-once", CHECKPOINT_MS)
