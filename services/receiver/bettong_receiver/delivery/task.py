"""The delivery engine: one task reads sinks' topics and feeds one connector, on a thread of its own.

    open connector ─> positions ─> reader from there ─> read, deliver, dead letters of what was refused, read ...
         ^                                                  │
         └── wait, longer each time <── whatever went wrong ┘

A task keeps nothing over a failure: it goes on from the positions that the connector holds. So a delivery whose answer
was lost, a crash and a second receiver are one case.
"""

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Generic

from bettong.edges.kafka_log import LogReader, LogWriter, Record
from bettong.errors import FrameError, LogError, LogUnavailableError
from bettong.logs import Logger
from bettong_receiver.connectors.connector import (
    ConnectorUnavailableError,
    Message,
    Refused,
    SinkBatch,
    SinkConnector,
)
from bettong_receiver.delivery.batcher import Batcher, SinkInput
from bettong_receiver.errors import SinkError
from bettong_receiver.progress import Counts, Progress, SinkPartition

# One look at the log. A stop waits no longer than this, or for one delivery.
_POLL_MS = 50
# Of a round, beside the reader's own limit on bytes.
_RECORDS_MAX = 10_000
# A position without messages (ticks, duplicates) is worth a transaction only so often: it saves reading again.
_MOVED_S = 5.0
_RETRY_S = 0.5
_RETRY_S_MAX = 30.0
# After a failure it counts as mended when a delivery went well, or nothing had to be delivered for this long.
_MENDED_S = 2.0
_LETTERS_WAIT_S = 30.0

OpenReader = Callable[[Mapping[tuple[str, int], int], int], LogReader]


@dataclass(frozen=True, slots=True)
class Route(Generic[Message]):
    """Which sinks go where. `name` is for people.

    `required`: the receiver serves subscribers only once this is open, tries again without longer waits, and ends with
    a fault that somebody must mend. `fetch_bytes_max`: what is read ahead; see LogReader for what that takes.
    """

    name: str
    inputs: Sequence[SinkInput[Message]]
    make_connector: Callable[[], SinkConnector[Message]]
    fetch_bytes_max: int
    required: bool = False


class SinkTask(Generic[Message]):
    """Delivers the sinks of one route until told to stop. `run` belongs to one thread; the rest may be called from any.

    `opened` is set once the connector and the log have been opened.
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
        on_delivered: Callable[[Sequence[SinkBatch[Message]]], None],
        log: Logger,
    ) -> None:
        """`open_reader(starts, fetch_bytes_max)` opens the log, `open_writer` what dead letters are appended with.

        `on_wait` is told why the task waits, and None when it does no more; `on_delivered` what the connector has
        taken. Both on the task's thread.
        """
        self.route = route
        self.opened = threading.Event()
        self._application = application
        self._open_reader = open_reader
        self._open_writer = open_writer
        self._monotonic_s = monotonic_s
        self._on_wait = on_wait
        self._on_delivered = on_delivered
        self._log = log
        self._trouble = False
        self._retry_s = _RETRY_S
        self._lock = threading.Lock()
        self._progress: dict[SinkPartition, Progress] = {}
        self._offsets: dict[tuple[str, int], int] = {}
        self._reported: set[SinkPartition] = set()
        self._on_error = {each.sink: each.refusals and each.refusals.on_error for each in route.inputs}

    def offsets(self) -> dict[tuple[str, int], int]:
        """For each (topic, partition) the record that the connector lacks; empty until it has answered once."""
        return self._offsets

    def counts(self) -> dict[str, Counts]:
        """What became of the records of each sink; zeros until the connector has answered once."""
        found = {each.sink: Counts() for each in self.route.inputs}
        for (sink, _), progress in self._progress.items():
            found[sink].add(progress.counts)
        return found

    def progress(self, sink: str) -> dict[int, Progress]:
        """A copy of the progress in each partition of a sink, all at one moment."""
        with self._lock:
            return {
                partition: copy.deepcopy(progress)
                for (name, partition), progress in self._progress.items()
                if name == sink
            }

    def run(self, beginnings: Mapping[SinkPartition, int], stopping: threading.Event) -> None:
        """Delivers until `stopping`. `beginnings`: where the log of each partition begins.

        Waits while the connector or the log is away, and unless the route is required also for faults that somebody
        must mend (a table is missing, a password is refused), for the other sinks' sake; raises SinkError otherwise.
        Raises LogError when the log no longer holds what the connector lacks.
        """
        while not stopping.is_set():
            try:
                self._deliver(beginnings, stopping)
            except (SinkError, LogUnavailableError) as error:
                if not isinstance(error, ConnectorUnavailableError | LogUnavailableError):
                    if self.route.required:
                        raise
                    self._log.error("a sink needs help", route=self.route.name, fault=str(error))
                self._trouble = True
                self._on_wait(str(error))
                stopping.wait(self._retry_s)
                if not self.route.required:
                    self._retry_s = min(2 * self._retry_s, _RETRY_S_MAX)

    def _deliver(self, beginnings: Mapping[SinkPartition, int], stopping: threading.Event) -> None:
        """From opening the connector to the first failure."""
        route = self.route
        with closing(route.make_connector()) as connector, ExitStack() as writers:
            stored = connector.open(beginnings)
            batcher = Batcher(self._application, route.inputs, beginnings=beginnings, stored=stored)
            letters = _LetterAppender(self._open_writer, writers)
            self._progress = batcher.progress
            self._offsets = batcher.offsets()
            try:
                with self._open_reader(batcher.starts(), route.fetch_bytes_max) as reader:
                    self._go_round(connector, batcher, letters, reader, stopping)
            except LogError:
                connector.finish()  # the log fails between two deliveries
                raise
            self._hand_over(connector, batcher, batcher.moved())
            connector.finish()

    def _go_round(
        self,
        connector: SinkConnector[Message],
        batcher: Batcher[Message],
        letters: "_LetterAppender",
        reader: LogReader,
        stopping: threading.Event,
    ) -> None:
        self.opened.set()
        if not self._trouble:
            self._on_wait(None)
        next_moved_s = self._monotonic_s() + _MOVED_S
        mended_s = self._monotonic_s() + _MENDED_S
        while not stopping.is_set():
            records = reader.poll(_POLL_MS, _RECORDS_MAX)
            batcher.resume_letters(records)
            letters.append(batcher)
            with self._lock:
                batches, faults = batcher.fold(records)
            self._report(batcher, faults)
            now_s = self._monotonic_s()
            if now_s >= next_moved_s:
                next_moved_s = now_s + _MOVED_S
                with_messages = {batch.key for batch in batches}
                batches += [batch for batch in batcher.moved() if batch.key not in with_messages]
            self._hand_over(connector, batcher, batches)
            connector.flush()
            letters.append(batcher)
            if self._trouble and (batches or now_s >= mended_s):
                self._mended()

    def _hand_over(
        self,
        connector: SinkConnector[Message],
        batcher: Batcher[Message],
        batches: Sequence[SinkBatch[Message]],
    ) -> None:
        if batches:
            refused = connector.deliver(batches)
            with self._lock:
                batcher.delivered(batches, refused)
            self._on_delivered(batches)
            self._tell_refused(refused)
        self._offsets = batcher.offsets()

    def _tell_refused(self, refused: Refused) -> None:
        for (sink, partition), reasons in refused.items():
            self._log.warning(
                "messages refused",
                sink=sink,
                partition=partition,
                messages=len(reasons),
                first=next(iter(reasons.values())),
                on_error=self._on_error[sink],
            )

    def _mended(self) -> None:
        self._trouble = False
        self._retry_s = _RETRY_S
        self._on_wait(None)

    def _report(self, batcher: Batcher[Message], faults: Sequence[tuple[Record, FrameError]]) -> None:
        """Logs the first unreadable record of each partition; the rest is counted."""
        for record, error in faults:
            sink, partition = key = batcher.key_of(record)
            if key not in self._reported:
                self._reported.add(key)
                self._log.error(
                    "unreadable record skipped; more of this partition are only counted",
                    sink=sink,
                    partition=partition,
                    offset=record.offset,
                    fault=str(error),
                )


class _LetterAppender:
    """Appends dead letters to the log; connects when there is the first. What it opens, `closing_` closes."""

    def __init__(self, open_writer: Callable[[], LogWriter], closing_: ExitStack) -> None:
        self._open_writer = open_writer
        self._closing = closing_
        self._writer: LogWriter | None = None

    def append(self, batcher: Batcher[Message]) -> None:
        """Returns when all letters of a batcher are durable. Raises LogError, LogUnavailableError."""
        letters = batcher.letters()
        if not letters:
            return
        if self._writer is None:
            self._writer = self._closing.enter_context(self._open_writer())
        answers: list[int | LogError] = []
        for letter in letters:
            self._writer.append(letter.topic, letter.partition, letter.value, answers.append)
        self._writer.flush(_LETTERS_WAIT_S)
        for answer in answers:
            if isinstance(answer, LogError):
                raise answer
        batcher.appended()
