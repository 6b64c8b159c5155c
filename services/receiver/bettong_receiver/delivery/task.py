"""The delivery engine: one task reads sinks' topics and feeds their connectors, on a thread of its own.

    open connectors ─> positions ─> reader from there ─> read, deliver, dead letters of what was refused, read ...
         ^                                                   │
         └── wait, longer each time <── whatever went wrong ─┘

A task keeps nothing over a failure: it goes on from the positions that the connectors hold. So a delivery whose answer
was lost, a crash and a second receiver are one case.
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

# One poll of the log. A stop waits no longer than this, or for one delivery.
_POLL_MS = 50
# Of a round, beside the reader's own limit on bytes.
_RECORDS_MAX = 10_000
_RETRY_S = 0.5
# Somebody waits for the receiver to start, or repairs a destination, which may take hours.
_RETRY_S_MAX_REQUIRED = 1.0
_RETRY_S_MAX = 30.0
# After a failure a task works again when a delivery went well, or nothing had to be delivered for this long.
_QUIET_S = 2.0
_DEAD_LETTERS_WAIT_S = 30.0

OpenReader = Callable[[Mapping[TopicPartition, int], int], LogReader]


class SinkTask(Generic[Message]):
    """Delivers the sinks of one route until it is stopped. `run` belongs to one thread; the rest is for any.

    `opened` is set once the connectors and the log have been opened. `held`: for how long it waited for connectors: for
    one to open or to take results, and from a failure on until one has.
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
        """`open_reader(starts, fetch_bytes_max)` opens the log, `open_writer` what dead letters are appended with.

        `on_wait` gets why the task waits, and None when it does no more; `on_delivered` what the first connector has
        taken, as Delivery says. Both on the task's thread.
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
        """For each (topic, partition) the record that the first connector lacks; empty until it was opened once."""
        return {} if self._delivery is None else self._delivery.offsets()

    @property
    def delivering(self) -> int:
        """Frames that a connector was given and has not taken."""
        return 0 if self._delivery is None else self._delivery.delivering

    def counts(self) -> dict[str, DeliveryCounts]:
        """What became of the records of each sink; empty until the first connector was opened once."""
        return {} if self._delivery is None else self._delivery.counts()

    def progress(self, sink: str) -> dict[int, DeliveryProgress]:
        """A copy of the progress in each partition of a sink, all at one moment; empty as `counts` is."""
        return {} if self._delivery is None else self._delivery.progress(sink)

    def run(self, beginnings: Mapping[SinkPartition, int], stopping: threading.Event) -> None:
        """Delivers until `stopping`. `beginnings`: where the log of each partition begins.

        Waits while a connector or the log is away, and unless the route is required also for faults that an
        operator must mend (a table is missing, a password is refused), for the other sinks' sake; raises SinkError
        otherwise. Raises LogError when the log no longer holds what a connector lacks.
        """
        while not stopping.is_set():
            try:
                self._open_and_deliver(beginnings, stopping)
            except (SinkError, LogUnavailableError) as error:
                if isinstance(error, LogUnavailableError):
                    self.held.end()  # not by a connector
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
        """From opening the connectors to the first failure."""
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
                delivery.finish()  # what came before was delivered in whole rounds
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
    """Appends dead letters to the log; connects when there is the first."""

    def __init__(self, open_writer: Callable[[], LogWriter]) -> None:
        self._open_writer = open_writer
        self._writer: LogWriter | None = None

    def append(self, dead_letters: Sequence[OutputRecord]) -> None:
        """Returns when all are durable. Raises LogError, LogUnavailableError."""
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
