"""Reads slots from Spark: how many tasks its executors can run at a time, and which tasks of a slot have ended.

It calls the class that Spark's REST API reads (https://spark.apache.org/docs/latest/monitoring.html#rest-api), as the
API itself may be disabled. All functions raise Py4JError when Java has ended.
"""

from collections.abc import Iterator
from typing import Any

from pyspark import SparkContext

# The newest of a slot's jobs may still wait for an executor, and the one before it may have just failed.
_JOBS_MAX = 2
# The newest attempts of a job. Lost machines do not count for `spark.task.maxFailures`, so there may be many.
_ATTEMPTS_MAX = 100


def group_of(slot: int) -> str:
    """The job group of a slot."""
    return f"bettong-resident-{slot}"


def slots_of(context: SparkContext) -> int:
    """The sum of Spark's `maxTasks` over all live executors; N on `local[N]`."""
    executors = _scala(context).statusStore().executorList(True)  # noqa: FBT003 - Java takes no keywords
    return sum(executors.apply(number).maxTasks() for number in range(executors.size()))


def usable(slots: int, *, kept_free: int) -> int:
    """How many of `slots` the schedule may use if `kept_free` are for other jobs; one at least."""
    return max(1, slots - kept_free)


def has_task(context: SparkContext, slot: int) -> bool:
    """Whether a task of the slot runs. Spark may not list a task for some ms after its launch."""
    return any(runs for _, runs in _attempts(context, slot))


def is_vacated(context: SparkContext, slot: int, attempt: int) -> bool:
    """Whether this task of the slot, by its `taskAttemptId`, has ended, and none runs in its slot. Takes some ms.

    A task whose executor has closed its connection counts as ended: Spark itself waits for the reason, for seconds if a
    machine is lost. False for a task that Spark does not know.
    """
    attempts = dict(_attempts(context, slot))
    return attempt in attempts and not any(attempts.values())


def _attempts(context: SparkContext, slot: int) -> Iterator[tuple[int, bool]]:
    """Tasks of the slot's newest jobs, and whether they run. A job has one stage, which is never retried."""
    tracker, scala = context.statusTracker(), _scala(context)
    for job in sorted(tracker.getJobIdsForGroup(group_of(slot)), reverse=True)[:_JOBS_MAX]:
        known = tracker.getJobInfo(job)
        for stage in known.stageIds if known is not None else ():
            tasks = scala.statusStore().taskList(stage, 0, _ATTEMPTS_MAX)
            for task in map(tasks.apply, range(tasks.size())):
                runs = task.status() == "RUNNING" and scala.taskScheduler().isExecutorAlive(task.executorId())
                yield task.taskId(), runs


def _scala(context: SparkContext) -> Any:
    return context._jsc.sc()  # noqa: SLF001 - Python has no other way to ask
