"""Spark's Python, started on every slot before the first task needs it."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from pyspark import SparkContext

from bettong.config.processor import ProcessorSettings, Schedule
from bettong.errors import BettongError

# Spark keeps a Python daemon, and idle workers, for each environment that tasks ask for. Those of SQL ask for this too.
_OF_SQL = {"SPARK_SIMPLIFIED_TRACEBACK": "1"}


def warm_up(context: SparkContext, settings: ProcessorSettings) -> None:
    """Starts Python on every slot, which loads and compiles the application: the first batch need not wait.

    By a job without SQL, which Java plans in no time: it has enough to do with the plan of the query meanwhile.
    """
    slots = context.defaultParallelism
    if settings.schedule is Schedule.MICRO_BATCH:
        context.environment |= _OF_SQL
    context.parallelize(range(slots), slots).mapPartitions(_Readied(settings)).count()


@dataclass(frozen=True, slots=True)
class _Readied:
    """The function of `mapPartitions`: makes what the process keeps for all its tasks."""

    settings: ProcessorSettings

    def __call__(self, slots: Iterable[int]) -> Iterator[int]:
        if self.settings.schedule is Schedule.MICRO_BATCH:
            from bettong_processor.micro_batch.task import process_of

            with suppress(BettongError):  # the first batch meets it again, and says it
                process_of(self.settings).guard.exclusions.refresh()
        yield from slots
