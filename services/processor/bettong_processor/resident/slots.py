"""Reads slots from Spark: how many tasks its executors can run at a time, and which tasks of a slot have ended.

It calls the class that Spark's REST API reads (https://spark.apache.org/docs/latest/monitoring.html#rest-api), as the
API itself may be disabled. All functions raise Py4JError when Java has ended.
"""

from collections.abc import Iterator
from typing import Any

from pyspark import SparkContext

from bettong_processor.scala import elements, scala_context

# The newest of a slot's jobs may still wait for an executor, and the one before it may have just failed.
_JOBS_MAX = 2
# The newest attempts of a job. Lost machines do not count for `spark.task.maxFailures`, so there may be many.
_ATTEMPTS_MAX = 100
# A task whose executor lives is looked up after so long without a heartbeat, four of its intervals.
LOOK_UP_MS = 200


def group_of(slot: int) -> str:
    """The job group of a slot."""
    return f"bettong-resident-{slot}"


def slots_of(context: SparkContext) -> int:
    """The sum of Spark's `maxTasks` over all live executors; N on `local[N]`."""
    executors = scala_context(context).statusStore().executorList(True)  # noqa: FBT003 - Java takes no keywords
    return sum(each.maxTasks() for each in elements(executors))


def usable(slots: int, *, kept_free: int) -> int:
    """How many of `slots` the schedule may use if `kept_free` are for other jobs; one at least."""
    return max(1, slots - kept_free)


def has_task(context: SparkContext, slot: int) -> bool:
    """Whether a task of the slot runs. Spark may not list a task for some ms after its launch."""
    return _has_task(context, slot, _live_executors(context))


class TaskExecutors:
    """Knows on which executors the slots' tasks run, so that one call of Java tells which have lost theirs."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        # By slot: the newest task that was asked about, by its `taskAttemptId`, and its executor.
        self._found: dict[int, tuple[int, str]] = {}

    def has_ended(self, slot: int, attempt: int, *, silent_ms: int) -> bool:
        """Whether this task of the slot has certainly ended, after it has sent no heartbeat for `silent_ms`.

        A task has ended once its executor has closed its connection: Spark itself waits for the reason, for seconds if
        a machine is lost. One whose executor lives is looked up after LOOK_UP_MS only, as that takes some ms, and has
        not ended while another runs in its slot. False for a task that Spark does not know.
        """
        if self._found.get(slot, (None,))[0] != attempt:
            executors = {task.taskId(): str(task.executorId()) for task in _tasks(self._context, slot)}
            if attempt not in executors:
                return False
            self._found[slot] = attempt, executors[attempt]
        live = _live_executors(self._context)
        if self._found[slot][1] not in live:
            return True
        return silent_ms >= LOOK_UP_MS and not _has_task(self._context, slot, live)


def _has_task(context: SparkContext, slot: int, live: set[str]) -> bool:
    return any(task.status() == "RUNNING" and task.executorId() in live for task in _tasks(context, slot))


def _live_executors(context: SparkContext) -> set[str]:
    """Those that are connected, of `local[N]` the driver."""
    return set(
        scala_context(context).taskScheduler().runningTasksByExecutors().keySet().mkString(" ").split()
    )


def _tasks(context: SparkContext, slot: int) -> Iterator[Any]:
    """Java's `TaskData` of the slot's newest jobs. A job has one stage, which is never retried."""
    tracker, scala = context.statusTracker(), scala_context(context)
    for job in sorted(tracker.getJobIdsForGroup(group_of(slot)), reverse=True)[:_JOBS_MAX]:
        known = tracker.getJobInfo(job)
        for stage in known.stageIds if known is not None else ():
            yield from elements(scala.statusStore().taskList(stage, 0, _ATTEMPTS_MAX))
