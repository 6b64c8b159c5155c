"""The driver of the resident schedule: a Spark job for each slot, the assignment of partitions, and progress.

    thread "slot n"    submits the job "bettong resident slot n", again after each transient fault
    thread "assignor"  checks which slots live, and assigns the partitions to them
    thread "progress"  asks Kafka where the logs end (`bettong_processor.progress`)

Spark restarts a task that is lost with its executor, once another executor has room. A slot without a task sends no
heartbeats, and holds no partitions.
"""

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from functools import partial

from py4j.protocol import Py4JError
from pyspark import InheritableThread, SparkContext
from pyspark.errors import PySparkException

from bettong.application.plan import Plan
from bettong.backoff import Backoff
from bettong.config.processor import ProcessorSettings
from bettong.edges.redis_store import RedisStore
from bettong.edges.redis_store.membership import RedisMembership, Task
from bettong.identifiers import PartitionId
from bettong.logs import Logger
from bettong.topics import stage_topic
from bettong_processor.faults import fault_of
from bettong_processor.progress import Progress
from bettong_processor.resident.assignor import Assignor
from bettong_processor.resident.slots import LOOK_UP_MS, TaskExecutors, group_of, has_task, slots_of, usable
from bettong_processor.resident.task import TTL_MS, SlotTask
from bettong_processor.scala import scala_context

# Between two checks of the members, and of how many slots Spark has.
_CHECK_S = 0.05
_REST_CHECK_S = 0.15  # of the members, while no record arrives
_COUNT_S = 0.5
# A task that ended is submitted again after this long; the first time at once, when it had run for a while.
_BACKOFF_S_MIN = 1.0
_BACKOFF_S_MAX = 5.0
_DRAIN_S_MAX = 10.0
_HEALTHY_S = 10.0


def start_run(
    context: SparkContext, settings: ProcessorSettings, planned: Plan, store: RedisStore, log: Logger
) -> "Resident":
    """Starts a run, which supersedes earlier tasks. Raises StoreError, and Py4JError when Java has ended."""
    run = uuid.uuid4().hex
    membership = RedisMembership(store, ttl_ms=TTL_MS)
    task = SlotTask(settings, run, membership.begin_run(run))
    partitions = [
        PartitionId(stage.name, partition)
        for stage in planned.stages
        for partition in range(settings.partitions)
    ]
    topics = {stage_topic(planned.application, stage.name): stage.name for stage in planned.stages}
    progress = Progress.of(settings, store, topics, log)
    executors = TaskExecutors(context)

    def has_ended(silent: Task, silent_ms: int) -> bool:
        if progress.at_rest and silent_ms < LOOK_UP_MS:
            return False  # heartbeats are sent less often
        attempt = task.attempt(silent.incarnation)
        return executors.has_ended(silent.slot, attempt, silent_ms=silent_ms)

    assignor = Assignor(
        membership,
        run,
        partitions,
        grace_s=TTL_MS / 1000,
        has_ended=has_ended,
        clock=time.monotonic,
        log=log,
    )
    loads_by_spark = any(
        source.takes_spark for stage in planned.stages for source in stage.references.values()
    )
    return Resident(context, task, assignor, progress, log, kept_free=int(loads_by_spark))


class Resident:
    """A `supervision.Run`."""

    def __init__(
        self,
        context: SparkContext,
        task: SlotTask,
        assignor: Assignor,
        progress: Progress,
        log: Logger,
        *,
        kept_free: int = 0,
    ) -> None:
        """`kept_free`: how many of Spark's slots are left to other jobs, as the schedule's own tasks never end."""
        self._kept_free = kept_free
        self._context = context
        self._task = task
        self._assignor = assignor
        self._progress = progress
        self._log = log
        self._ended = threading.Event()
        self._stopping = threading.Event()
        self._fault: Exception | None = None
        self._slots: list[threading.Thread] = []
        self._start_slots(self._count_slots())
        self._thread = InheritableThread(
            target=self._run_guarded, args=(self._assign_partitions,), name="assignor", daemon=True
        )
        self._thread.start()
        self._progress.start()

    @property
    def name(self) -> str:
        """See Run."""
        return f"resident {self._task.run}"

    def waits_for(self) -> str:
        """See Run."""
        return "; ".join(filter(None, (self._assignor.waits_for(), self._progress.waits_for())))

    def metrics(self) -> Mapping[str, str | float]:
        """See Run."""
        return self._progress.metrics()

    def ended(self, wait_s: float) -> bool:
        """See Run. It ends by itself only with an error."""
        if not self._ended.wait(wait_s):
            return False
        if self._fault is not None:
            raise self._fault
        return True

    def leave(self) -> None:
        """See Run. Drains the remaining tasks."""
        self.stop(_DRAIN_S_MAX)

    def stop(self, wait_s: float) -> None:
        """See Run."""
        deadline = time.monotonic() + wait_s
        self._stopping.set()
        self._progress.stop()
        self._thread.join(wait_s)
        published = self._assignor.stop_slots()
        try:
            if published:
                self._drain(deadline)
            self._context.cancelAllJobs()
        except (Py4JError, OSError) as error:
            self._log.debug("jobs not cancelled", fault=str(error))

    def _drain(self, deadline_s: float) -> None:
        """Waits for the tasks, which were asked to end.

        Cancels jobs without a task: they would wait for an executor, or get the one of a task that ends.
        """
        while time.monotonic() < deadline_s:
            alive = [slot for slot, thread in enumerate(self._slots) if thread.is_alive()]
            for slot in alive:
                if not has_task(self._context, slot):
                    self._context.cancelJobGroup(group_of(slot))
            if not alive:
                return
            self._slots[alive[0]].join(_COUNT_S)

    def _count_slots(self) -> int:
        return usable(slots_of(self._context), kept_free=self._kept_free)

    def _start_slots(self, count: int) -> None:
        """Starts a job for each slot that has none yet. Jobs of lost slots wait for an executor."""
        for slot in range(len(self._slots), count):
            work = partial(self._run_slot, slot)
            thread = InheritableThread(
                target=self._run_guarded, args=(work,), name=f"slot {slot}", daemon=True
            )
            self._slots.append(thread)
            thread.start()

    def _run_slot(self, slot: int) -> None:
        backoff = Backoff(_BACKOFF_S_MIN, _BACKOFF_S_MAX)
        while not self._stopping.is_set():
            begun_s = time.monotonic()
            try:
                name = f"bettong resident slot {slot}"
                self._context.setJobGroup(group_of(slot), name, interruptOnCancel=True)
                self._context.parallelize([slot], 1).mapPartitions(self._task).collect()
                self._log.debug("a task ended: superseded, or told to stop", slot=slot)
            except (PySparkException, Py4JError, OSError) as error:
                if self._stopping.is_set():
                    return
                fault = fault_of(str(error))
                if fault.final is not None or self._is_over():
                    self._end(error)
                    return
                self._log.error(
                    "a task failed, it starts again from its snapshots", slot=slot, fault=fault.text
                )
            if time.monotonic() - begun_s > _HEALTHY_S:
                backoff.reset()
                continue
            backoff.wait(self._stopping)

    def _assign_partitions(self) -> None:
        count_s = 0.0
        while not self._stopping.wait(_REST_CHECK_S if self._progress.at_rest else _CHECK_S):
            if time.monotonic() >= count_s:
                count_s = time.monotonic() + _COUNT_S
                self._start_slots(self._count_slots())
            self._assignor.update_assignment(len(self._slots))

    def _is_over(self) -> bool:
        """Whether Spark has stopped or Java has ended, so that no job can run any more."""
        try:
            return bool(scala_context(self._context).isStopped())
        except (Py4JError, OSError):
            return True

    def _run_guarded(self, work: Callable[[], None]) -> None:
        """Runs a thread's work. Any error ends the run, since without it a slot or the assignment would stop."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 - raised where the run is awaited
            self._end(error)

    def _end(self, error: Exception) -> None:
        self._fault = self._fault or error
        self._ended.set()
