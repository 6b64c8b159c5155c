"""Starts Spark's Python workers on every slot before the first task needs them."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from pyspark import SparkContext

from bettong.config.processor import ProcessorSettings, Schedule
from bettong.errors import BettongError

# Spark keeps a Python daemon and idle workers for each environment that tasks request. SQL tasks add this variable.
_OF_SQL = {"SPARK_SIMPLIFIED_TRACEBACK": "1"}


def warm_up(context: SparkContext, settings: ProcessorSettings) -> None:
    """Starts Python on every slot, which loads and compiles the application, so that the first batch need not wait.

    It runs a job without SQL, which Java plans at once: meanwhile it plans the query.
    """
    slots = context.defaultParallelism
    if settings.schedule is Schedule.MICRO_BATCH:
        context.environment |= _OF_SQL
    context.parallelize(range(slots), slots).mapPartitions(_Readied(settings)).count()


@dataclass(frozen=True, slots=True)
class _Readied:
    """The function of `mapPartitions`: makes the objects that the process keeps for all its tasks."""

    settings: ProcessorSettings

    def __call__(self, slots: Iterable[int]) -> Iterator[int]:
        if self.settings.schedule is Schedule.MICRO_BATCH:
            from bettong_processor.micro_batch.task import resources_of

            with suppress(BettongError):  # the first batch raises it again
                resources_of(self.settings).guard.exclusions.refresh()
        yield from slots
