"""DataFrames whose rows Python tasks produce: the only module here that calls pyspark, imported within functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from bettong.errors import SettingsError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A function for `mapInArrow`.
Mapping = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
# The most rows in a batch that is handed to Spark.
ROWS_A_BATCH = 8192


def require_spark() -> None:
    """Raises SettingsError where pyspark is not installed."""
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        raise SettingsError(
            f"bettong.spark needs the package pyspark ({error}): pip install 'bettong[spark]'"
        ) from None


def of_tasks(
    spark: SparkSession, tasks: int, rows_of: Callable[[int], Iterator[pa.RecordBatch]], schema: pa.Schema
) -> DataFrame:
    """A DataFrame of `tasks` tasks; task n produces the rows `rows_of(n)`. Lazy: tasks run when an action does."""
    return mapped(spark.range(0, tasks, 1, tasks), _Numbered(rows_of), schema)


def mapped(frame: DataFrame, function: Mapping, schema: pa.Schema) -> DataFrame:
    """Applies a function to the rows of each of Spark's partitions."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return frame.mapInArrow(function, from_arrow_schema(schema))


def kafka_stream(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """A stream of Spark's Kafka source. Raises SettingsError where the session lacks the connector's jars."""
    from pyspark.errors import AnalysisException

    try:
        return spark.readStream.format("kafka").options(**options).load()
    except AnalysisException as error:
        raise SettingsError(
            f"Spark cannot read Kafka ({str(error).splitlines()[0]}): make the session with"
            ' .config("spark.jars", bettong.spark.connector_jars())'
        ) from None


class _Numbered:
    """The function of `of_tasks`; its only input row is the number of its task."""

    def __init__(self, rows_of: Callable[[int], Iterator[pa.RecordBatch]]) -> None:
        self._rows_of = rows_of

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """See `mapInArrow`."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self._rows_of(number)
