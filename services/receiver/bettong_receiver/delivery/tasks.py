"""The tasks of a receiver, one per route."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from bettong import metrics, queue_metrics
from bettong.edges.kafka_log import LogWriter
from bettong.identifiers import TopicPartition
from bettong.logs import Logger
from bettong.traces import Report
from bettong_receiver.delivery.delivery import OnDelivered
from bettong_receiver.delivery.observations import DeliveryObserver
from bettong_receiver.delivery.route import Route
from bettong_receiver.delivery.task import OpenReader, SinkTask
from bettong_receiver.delivery.tracing import DeliveryTracing, each_of
from bettong_receiver.progress import DeliveryCounts, DeliveryProgress, SinkPartition
from bettong_receiver.status import ReceiverStatus

# One wait for a task to open: bounds how long a stop waits.
_POLL_S = 0.05


class SinkTasks:
    """All tasks of a receiver. Metrics and latency describe the first route, which has every sink."""

    def __init__(
        self,
        routes: Sequence[Route[Any]],
        application: str,
        *,
        open_reader: OpenReader,
        open_writer: Callable[[], LogWriter],
        status: ReceiverStatus,
        log: Logger,
        measures: bool = True,
        report: Report | None = None,
    ) -> None:
        """`measures`: whether to measure the parts of latency. `report`: None disables spans."""

        def report_wait(name: str, why: str | None) -> None:
            if why is None:
                status.clear_waiting(name)
            else:
                status.set_waiting(name, why)

        def listener(route: Route[Any]) -> OnDelivered[Any]:
            observes = [self._observer.observe] if route is routes[0] else []
            if report is not None:
                topics = {each.sink: each.topic for each in route.inputs}
                observes.append(DeliveryTracing(report, topics, route.name).delivered)
            return each_of(*observes)

        self._status = status
        self._observer = DeliveryObserver(
            [each.sink for each in routes[0].inputs], clock_ns=time.time_ns, with_parts=measures
        )
        self._tasks: list[SinkTask[Any]] = [
            SinkTask(
                route,
                application,
                open_reader=open_reader,
                open_writer=open_writer,
                monotonic_s=time.monotonic,
                on_wait=partial(report_wait, route.name),
                on_delivered=listener(route),
                log=log,
            )
            for route in routes
        ]
        self._first = self._tasks[0]

    def runners(
        self, beginnings: Mapping[SinkPartition, int], stopping: threading.Event
    ) -> list[Callable[[], None]]:
        """Functions to run concurrently, each on its own thread: see `SinkTask.run`.

        The status shows that the receiver waits for each route until it is open.
        """
        runners: list[Callable[[], None]] = []
        for task in self._tasks:
            route = task.route
            self._status.set_opening(route.name, f"{route.name}: being opened")
            sinks = {each.sink for each in route.inputs}
            own = {key: offset for key, offset in sorted(beginnings.items()) if key.sink in sinks}
            runners.append(partial(task.run, own, stopping))
        return runners

    def wait_open(self, stopping: threading.Event) -> bool:
        """Returns True once all required tasks are open, False if `stopping` is set before."""
        for task in self._tasks:
            while task.route.required and not task.opened.wait(_POLL_S):
                if stopping.is_set():
                    return False
        return True

    @property
    def is_open(self) -> bool:
        """Whether all required tasks have been opened: metrics are meaningful only from then on."""
        return all(task.opened.is_set() for task in self._tasks if task.route.required)

    def progress(self, sink: str) -> dict[int, DeliveryProgress]:
        """A consistent copy of the first route's progress in each partition of a sink."""
        return self._first.progress(sink)

    def counts(self) -> dict[str, DeliveryCounts]:
        """The first route's counts, by sink."""
        return self._first.counts()

    def metrics(self) -> dict[str, float | str]:
        """Latency and the newest dead letter of the first route."""
        return self._observer.metrics()

    def queues(self) -> dict[str, int | float]:
        """For the first route and each sink's destination: frames being delivered, and time spent waiting for it."""
        found: dict[str, int | float] = {}
        for task in self._tasks:
            names = [""] if task is self._first else [f"/{each.sink}" for each in task.route.inputs]
            for name in names:
                found[f"{metrics.HELD.name}{name}"] = round(task.held.total_s, 3)
                found[f"{queue_metrics.DELIVERING.name}{name}"] = task.delivering
        return found

    def offsets(self) -> dict[TopicPartition, int]:
        """For each (topic, partition) the next offset of the first route."""
        return self._first.offsets()

    def destination_offsets(self) -> dict[str, dict[TopicPartition, int]]:
        """The next offsets of each sink's destination, by sink; without destinations that have not been opened yet."""
        return {
            each.sink: offsets
            for task in self._tasks
            if not task.route.required and (offsets := task.offsets())
            for each in task.route.inputs
        }

    def skipped(self) -> int:
        """Messages that connectors refused and that are only counted."""
        return sum(counts.skipped for task in self._tasks for counts in task.counts().values())
