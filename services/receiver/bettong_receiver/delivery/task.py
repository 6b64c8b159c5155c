"""The delivery loop: a task reads the topics of sinks and delivers to their connectors, on its own thread.

    open connectors ─> positions ─> open reader there ─> read, deliver, append dead letters of refusals, read ...
         ^                                                   │
         └── back off exponentially <────── any failure ─────┘

A task keeps no state across a failure: it resumes from the positions that the connectors store. So a delivery whose
answer was lost, a crash and a second receiver are handled alike.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Generic

from bettong.backoff import Backoff
from bettong.edges.kafka_log import LogReader, LogWriter
from bettong.errors import LogError, LogUnavailableError
from bettong.held_time import HeldTime
from bettong.identifiers import TopicPartition
from bettong.logs import Logger
from bettong.worker.output.framing import OutputRecord
from bettong_receiver.delivery.connector import ConnectorUnavailableError, Message
from bettong_receiver.delivery.delivery import Delivery, OnDelivered
from bettong_receiver.delivery.observations import DeliveryLog
from bettong_receiver.delivery.route import Route
from bettong_receiver.errors import SinkError
from bettong_receiver.progress import DeliveryCounts, DeliveryProgress, SinkPartition

# One poll of the log. A stop waits for at most this, or one delivery.
_POLL_MS = 100
# Records of one round, in addition to the reader's limit on bytes.
_RECORDS_MAX = 10_000
_RETRY_S = 0.5
# A required route holds up the receiver's start; a destination may take an operator hours to repair.
_RETRY_S_MAX_REQUIRED = 1.0
_RETRY_S_MAX = 30.0
# After a failure a task has recovered once a delivery succeeded, or nothing had to be delivered for this long.
_QUIET_S = 2.0
_DEAD_LETTERS_WAIT_S = 30.0

OpenReader = Callable[[Mapping[TopicPartition, int], int], LogReader]


class SinkTask(Generic[Message]):
    """Delivers the sinks of one route until it is stopped. `run` belongs to one thread; the rest may be used from any.

    `opened` is set once the connectors and the log have been opened. `held`: time spent waiting for connectors to open
    or to store results, and from a failure until the next success.
    """

    def __init__(
        self,
        route: Route[Message],
        application: str,
        *,
        open_reader: OpenReader,
        open_writer: Callable[[], LogWriter],
        monotonic_s: Callable[[], float],
        on_wait: Callable[[str | None], None],
        on_delivered: OnDelivered[Message],
        log: Logger,
    ) -> None:
        """`open_reader(starts, fetch_bytes_max)` opens the log, `open_writer` a writer for dead letters.

        `on_wait` gets the reason why the task waits, and None when it proceeds; for `on_delivered` see Delivery. Both
        are called on the task's thread.
        """
        self.route = route
        self.opened = threading.Event()
        self.held = HeldTime(monotonic_s)
        self._application = application
        self._open_reader = open_reader
        self._open_writer = open_writer
        self._monotonic_s = monotonic_s
        self._on_wait = on_wait
        self._on_delivered = on_delivered
        self._log = log
        self._delivery_log = DeliveryLog(log, route.inputs)
        self._backoff = Backoff(_RETRY_S, _RETRY_S_MAX_REQUIRED if route.required else _RETRY_S_MAX)
        self._has_failed = False
        self._delivery: Delivery[Message] | None = None

    def offsets(self) -> dict[TopicPartition, int]:
        """For each (topic, partition) the next offset of the first connector; empty until it was opened once."""
        return {} if self._delivery is None else self._delivery.offsets()

    @property
    def delivering(self) -> int:
        """Frames in a connector's current `deliver` call."""
        return 0 if self._delivery is None else self._delivery.delivering

    def counts(self) -> dict[str, DeliveryCounts]:
        """Counts of each sink's records; empty until the first connector was opened once."""
        return {} if self._delivery is None else self._delivery.counts()

    def progress(self, sink: str) -> dict[int, DeliveryProgress]:
        """A consistent copy of the progress in each partition of a sink; empty until opened, as `counts`."""
        return {} if self._delivery is None else self._delivery.progress(sink)

    def run(self, beginnings: Mapping[SinkPartition, int], stopping: threading.Event) -> None:
        """Delivers until `stopping`. `beginnings`: the first offset of each partition's log.

        Retries while a connector or the log is unavailable. An error that needs an operator (a table is missing, a
        password is refused) raises SinkError if the route is required; otherwise it is retried, so that other sinks go
        on. Raises LogError when the log no longer holds records that a connector lacks.
        """
        while not stopping.is_set():
            try:
                self._open_and_deliver(beginnings, stopping)
            except (SinkError, LogUnavailableError) as error:
                if isinstance(error, LogUnavailableError):
                    self.held.end()  # the log is at fault, not a connector
                elif not isinstance(error, ConnectorUnavailableError):
                    if self.route.required:
                        raise
                    self._log.error(
                        "sink is blocked by an error that needs an operator",
                        route=self.route.name,
                        fault=str(error),
                    )
                self._has_failed = True
                self._on_wait(str(error))
                self._backoff.wait(stopping)

    def _open_and_deliver(self, beginnings: Mapping[SinkPartition, int], stopping: threading.Event) -> None:
        """Opens the connectors, then delivers until the first failure."""
        route = self.route
        with ExitStack() as opened:
            appender = opened.enter_context(closing(_DeadLetterAppender(self._open_writer)))
            self.held.begin()
            delivery = Delivery(
                route,
                self._application,
                beginnings,
                append=appender.append,
                held=self.held,
                on_delivered=self._on_delivered,
                monotonic_s=self._monotonic_s,
                log=self._delivery_log,
            )
            opened.enter_context(closing(delivery))
            self._delivery = delivery
            try:
                with self._open_reader(delivery.starts(), route.fetch_bytes_max) as reader:
                    self._deliver(delivery, reader, stopping)
            except LogError:
                delivery.finish()  # all rounds so far were delivered completely
                raise
            delivery.finish()

    def _deliver(self, delivery: Delivery[Message], reader: LogReader, stopping: threading.Event) -> None:
        self.opened.set()
        if self.route.required or not self._has_failed:
            self._report_success()
        quiet_at_s = self._monotonic_s() + _QUIET_S
        while not stopping.is_set():
            has_delivered = delivery.deliver(reader.poll(_POLL_MS, _RECORDS_MAX))
            if self._has_failed and (has_delivered or self._monotonic_s() >= quiet_at_s):
                self._report_success()

    def _report_success(self) -> None:
        self._has_failed = False
        self.held.end()
        self._backoff.reset()
        self._on_wait(None)


class _DeadLetterAppender:
    """Appends dead letters to the log; connects for the first one."""

    def __init__(self, open_writer: Callable[[], LogWriter]) -> None:
        self._open_writer = open_writer
        self._writer: LogWriter | None = None

    def append(self, dead_letters: Sequence[OutputRecord]) -> None:
        """Returns when all are durable. Raises LogError or LogUnavailableError."""
        if self._writer is None:
            self._writer = self._open_writer()
        answers: list[int | LogError] = []
        for each in dead_letters:
            self._writer.append(TopicPartition(each.topic, each.partition), each.value, answers.append)
        self._writer.flush(_DEAD_LETTERS_WAIT_S)
        for answer in answers:
            if isinstance(answer, LogError):
                raise answer

    def close(self) -> None:
        """Closes the connection, if there is one."""
        if self._writer is not None:
            self._writer.close()
