"""Spark's Python, started on every slot before the first task needs it."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from pyspark import SparkContext
from pyspark.sql import SparkSession

from bettong.config.processor import Schedule

_Item = TypeVar("_Item")


def warm_up(context: SparkContext, schedule: Schedule) -> None:
    """Starts Python on every slot, which loads and compiles the application: the first batch need not wait.

    By the same way as the schedule does: Spark keeps other Python daemons for other kinds of tasks.
    """
    slots = context.defaultParallelism
    if schedule is Schedule.RESIDENT:
        context.parallelize(range(slots), slots).mapPartitions(_same).count()
        return
    numbers = SparkSession.builder.getOrCreate().range(slots, numPartitions=slots)
    numbers.mapInArrow(_same, numbers.schema).write.format("noop").mode("overwrite").save()


def _same(items: Iterable[_Item]) -> Iterator[_Item]:
    """The shortest task there is."""
    yield from items
