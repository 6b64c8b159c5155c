"""The tasks of an application: one for each sink with a destination."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from bettong.edges.kafka_log import LogReader, LogWriter
from bettong.logs import Logger
from bettong_receiver.connectors.task import Route, SinkTask
from bettong_receiver.progress import SinkPartition
from bettong_receiver.status import Status


class SinkTasks:
    """All tasks of a receiver."""

    def __init__(
        self,
        routes: Sequence[Route[Any]],
        application: str,
        *,
        open_reader: Callable[[Mapping[tuple[str, int], int]], LogReader],
        open_writer: Callable[[], LogWriter],
        status: Status,
        log: Logger,
    ) -> None:
        def told(sink: str, why: str | None) -> None:
            if why is None:
                status.has(f"sink {sink}")
            else:
                status.waits_for(f"sink {sink}", why)

        self._status = status
        self._tasks: list[SinkTask[Any]] = [
            SinkTask(
                route,
                application,
                open_reader=open_reader,
                open_writer=open_writer,
                monotonic_s=time.monotonic,
                on_wait=partial(told, route.sink),
                log=log,
            )
            for route in routes
        ]

    def works(
        self, beginnings: Mapping[SinkPartition, int], stopping: threading.Event
    ) -> list[Callable[[], None]]:
        """What is to be run side by side, each in a thread of its own: see `SinkTask.run`.

        Until a sink's destination has been opened, the receiver waits for it.
        """
        for task in self._tasks:
            self._status.opens(f"sink {task.route.sink}", f"sink {task.route.sink} is being opened")
        return [
            partial(
                task.run,
                {
                    partition: offset
                    for (sink, partition), offset in beginnings.items()
                    if sink == task.route.sink
                },
                stopping,
            )
            for task in self._tasks
        ]

    def offsets(self) -> dict[str, dict[tuple[str, int], int]]:
        """Of each sink, for each (topic, partition) the record that its connector lacks."""
        return {task.route.sink: task.offsets() for task in self._tasks}

    def skipped(self) -> int:
        """Messages that connectors refused and that are only counted."""
        return sum(task.skipped() for task in self._tasks)
