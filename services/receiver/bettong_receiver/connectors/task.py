"""A task: one sink on its way into one foreign system, on a thread of its own.

    open connector ─> positions ─> reader from there ─> read, deliver, dead letters of what was refused, read ...
         ^                                                  │
         └── wait, longer each time <── whatever went wrong ┘

Nothing is held over a failure but the connector's own positions, so a delivery whose answer was lost, a crash and a
second receiver are all the same to it.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Generic

from bettong.edges.kafka_log import LogReader, LogWriter, Record
from bettong.errors import FrameError, LogError, LogUnavailableError
from bettong.frames.frame import Frame
from bettong.logs import Logger
from bettong_receiver.connectors.batcher import Batcher
from bettong_receiver.connectors.connector import ConnectorUnavailableError, Message, SinkBatch, SinkConnector
from bettong_receiver.connectors.refusals import Refusals
from bettong_receiver.errors import SinkError

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


@dataclass(frozen=True, slots=True)
class Route(Generic[Message]):
    """A sink and where it goes: its topic, how frames are read, what becomes of refusals, how the connector is made."""

    sink: str
    topic: str
    read: Callable[[Frame], Sequence[Message]]
    refusals: Refusals
    make_connector: Callable[[], SinkConnector[Message]]


class SinkTask(Generic[Message]):
    """Delivers one sink until told to stop. `run` belongs to one thread; the rest may be called from any."""

    def __init__(
        self,
        route: Route[Message],
        application: str,
        *,
        open_reader: Callable[[Mapping[tuple[str, int], int]], LogReader],
        open_writer: Callable[[], LogWriter],
        monotonic_s: Callable[[], float],
        on_wait: Callable[[str | None], None],
        log: Logger,
    ) -> None:
        """`on_wait` is told why the task waits, and None when it does no more. `open_writer`: for dead letters."""
        self.route = route
        self._application = application
        self._open_reader = open_reader
        self._open_writer = open_writer
        self._monotonic_s = monotonic_s
        self._on_wait = on_wait
        self._log = log
        self._trouble = False
        self._retry_s = _RETRY_S
        self._offsets: dict[tuple[str, int], int] = {}
        self._skipped = 0
        self._reported: set[int] = set()

    def offsets(self) -> dict[tuple[str, int], int]:
        """For each (topic, partition) the record that the connector lacks; empty until it has answered once."""
        return self._offsets

    def skipped(self) -> int:
        """Messages that the connector refused and that are only counted; 0 until it has answered once."""
        return self._skipped

    def run(self, beginnings: Mapping[int, int], stopping: threading.Event) -> None:
        """Delivers until `stopping`. `beginnings`: where the log of each partition begins.

        What keeps the connector from being used (it is away, a table is missing, a password is refused) is waited
        out, for the other sinks' sake. Raises LogError when the log no longer holds what the connector lacks.
        """
        while not stopping.is_set():
            try:
                self._deliver(beginnings, stopping)
            except (SinkError, LogUnavailableError) as error:
                if isinstance(error, SinkError) and not isinstance(error, ConnectorUnavailableError):
                    self._log.error("a sink needs help", sink=self.route.sink, fault=str(error))
                self._trouble = True
                self._on_wait(str(error))
                stopping.wait(self._retry_s)
                self._retry_s = min(2 * self._retry_s, _RETRY_S_MAX)

    def _deliver(self, beginnings: Mapping[int, int], stopping: threading.Event) -> None:
        """From opening the connector to the first failure."""
        route = self.route
        with closing(route.make_connector()) as connector, ExitStack() as writers:
            stored = connector.open(sorted(beginnings))
            batcher = Batcher(
                self._application,
                route.sink,
                route.read,
                route.refusals,
                beginnings=beginnings,
                stored=stored,
            )
            post = _Post(self._open_writer, writers)
            self._note(batcher)
            starts = {(route.topic, partition): offset for partition, offset in batcher.starts().items()}
            with self._open_reader(starts) as reader:
                if not self._trouble:
                    self._on_wait(None)
                next_moved_s = self._monotonic_s() + _MOVED_S
                mended_s = self._monotonic_s() + _MENDED_S
                while not stopping.is_set():
                    records = reader.poll(_POLL_MS, _RECORDS_MAX)
                    batcher.settle(records)
                    post.send(batcher)
                    batches, faults = batcher.fold(records)
                    self._report(faults)
                    now_s = self._monotonic_s()
                    if now_s >= next_moved_s:
                        next_moved_s = now_s + _MOVED_S
                        named = {batch.partition for batch in batches}
                        batches += [batch for batch in batcher.moved() if batch.partition not in named]
                    self._hand_over(connector, batcher, batches)
                    post.send(batcher)
                    if self._trouble and (batches or now_s >= mended_s):
                        self._mended()
            self._hand_over(connector, batcher, batcher.moved())

    def _hand_over(
        self,
        connector: SinkConnector[Message],
        batcher: Batcher[Message],
        batches: Sequence[SinkBatch[Message]],
    ) -> None:
        if batches:
            refused = connector.deliver(batches)
            batcher.delivered(batches, refused)
            for partition, reasons in refused.items():
                self._tell_refused(partition, reasons)
        self._note(batcher)

    def _note(self, batcher: Batcher[Message]) -> None:
        self._offsets = {(self.route.topic, each): offset for each, offset in batcher.offsets().items()}
        self._skipped = sum(each.counts.skipped for each in batcher.progress.values())

    def _tell_refused(self, partition: int, reasons: Mapping[int, str]) -> None:
        self._log.warning(
            "messages refused",
            sink=self.route.sink,
            partition=partition,
            messages=len(reasons),
            first=next(iter(reasons.values())),
            on_error=self.route.refusals.on_error,
        )

    def _mended(self) -> None:
        self._trouble = False
        self._retry_s = _RETRY_S
        self._on_wait(None)

    def _report(self, faults: Sequence[tuple[Record, FrameError]]) -> None:
        """Says so once a partition; the rest is counted."""
        for record, error in faults:
            if record.partition not in self._reported:
                self._reported.add(record.partition)
                self._log.error(
                    "unreadable record skipped; more of this partition are only counted",
                    connector=self.route.sink,
                    partition=record.partition,
                    offset=record.offset,
                    fault=str(error),
                )


class _Post:
    """Appends dead letters to the log; connects when there is the first. What it opens, `closing_` closes."""

    def __init__(self, open_writer: Callable[[], LogWriter], closing_: ExitStack) -> None:
        self._open_writer = open_writer
        self._closing = closing_
        self._writer: LogWriter | None = None

    def send(self, batcher: Batcher[Message]) -> None:
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
