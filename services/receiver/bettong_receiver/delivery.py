"""Records of the log in, the messages of each to every target that lacks them, by the delivery rule.

Every target (files, Redis) has a progress of its own in each partition and goes on from there: what one has already
is skipped for it alone. So the log is read once, from the lowest of them, and a target that was away catches up.
"""

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Protocol

from bettong.edges.kafka_log import Record
from bettong.errors import FrameError
from bettong.frames.frame import Frame
from bettong.logs import Logger
from bettong.topics import DEAD_LETTERS
from bettong_receiver.formats import SinkFormat, describe_dead_letter, frame_of
from bettong_receiver.latency import Latency
from bettong_receiver.progress import Counts, Progress, SinkPartition


class Target(Protocol):
    """Where results go. Used from one thread."""

    @property
    def progress(self) -> Mapping[SinkPartition, Progress]:
        """How far it is in each partition; moved by who feeds it."""

    def take(self, key: SinkPartition, messages: Sequence[bytes]) -> None:
        """Takes the messages of one frame, in order."""

    def flush(self, now_s: float) -> None:
        """Passes on what was taken. Called after each round of records and whenever time has passed."""

    def close(self, *, saving: bool) -> None:
        """Lets go of everything; `saving` passes on and saves all that was taken before."""


class Delivery:
    """Feeds the targets. The first is the one that figures and latency speak of.

    `round` and `close` belong to one thread; the other methods may be called from any.
    """

    def __init__(
        self,
        formats: Mapping[str, SinkFormat],
        targets: Sequence[Target],
        *,
        clock_ns: Callable[[], int],
        monotonic_s: Callable[[], float],
        log: Logger,
    ) -> None:
        self._formats = {sink_format.topic: sink_format for sink_format in formats.values()}
        self._targets = targets
        self._first = targets[0]
        self._clock_ns = clock_ns
        self._monotonic_s = monotonic_s
        self._log = log
        self._lock = threading.Lock()
        self._reported: set[SinkPartition] = set()
        self.latency = Latency(formats)
        self.dead_letter_last = ""

    def starts(self) -> dict[tuple[str, int], int]:
        """For each (topic, partition) the lowest offset that a target lacks."""
        return {
            (sink_format.topic, partition): min(
                target.progress[sink, partition].offset for target in self._targets
            )
            for sink_format in self._formats.values()
            for sink, partition in self._first.progress
            if sink == sink_format.sink
        }

    def round(self, records: Sequence[Record]) -> None:
        """Delivers records; call it without any from time to time, so that positions are saved.

        Raises SinkError when a target cannot go on.
        """
        delivered: list[tuple[str, int, int]] = []
        with self._lock:
            for record in records:
                self._deliver(record, delivered)
        for target in self._targets:
            target.flush(self._monotonic_s())
            if target is self._first and delivered:
                now_ns = self._clock_ns()
                for sink, sent_ns, messages in delivered:
                    self.latency.record(sink, sent_ns=sent_ns, delivered_ns=now_ns, messages=messages)

    def close(self, *, saving: bool) -> None:
        """Lets go of the targets. `saving` what was delivered is right unless `round` raised: it left half of it."""
        with ExitStack() as stack:
            for target in self._targets:
                stack.callback(target.close, saving=saving)

    def progress(self, sink: str) -> dict[int, Progress]:
        """Where the first target is in each partition of a sink, all at one moment."""
        with self._lock:
            return {
                partition: copy.deepcopy(progress)
                for (name, partition), progress in self._first.progress.items()
                if name == sink
            }

    def counts(self) -> dict[str, Counts]:
        """What the first target has counted, by sink."""
        found = {sink_format.sink: Counts() for sink_format in self._formats.values()}
        for (sink, _), progress in self._first.progress.items():
            found[sink].add(progress.counts)
        return found

    def offsets(self) -> dict[tuple[str, int], int]:
        """For each (topic, partition) the offset that the first target lacks."""
        topics = {sink_format.sink: topic for topic, sink_format in self._formats.items()}
        return {
            (topics[sink], partition): each.offset for (sink, partition), each in self._first.progress.items()
        }

    def _deliver(self, record: Record, delivered: list[tuple[str, int, int]]) -> None:
        sink_format = self._formats[record.topic]
        key = (sink_format.sink, record.partition)
        frame = self._frame(key, record)
        messages: Sequence[bytes] | None = None
        for target in self._targets:
            progress = target.progress[key]
            if not progress.takes(record.offset, frame) or frame is None:
                continue
            if (
                messages is None
                and (messages := self._messages(sink_format, key, record.offset, frame)) is None
            ):
                progress.spoiled()
                continue
            progress.delivered(len(messages))
            target.take(key, messages)
            if target is self._first:
                delivered.append((sink_format.sink, frame.sent_ns, len(messages)))
        if messages and sink_format.sink == DEAD_LETTERS:
            self.dead_letter_last = describe_dead_letter(messages[-1])

    def _frame(self, key: SinkPartition, record: Record) -> Frame | None:
        try:
            return frame_of(key[0], record.value)
        except FrameError as error:
            self._report(key, record.offset, error)
            return None

    def _messages(
        self, sink_format: SinkFormat, key: SinkPartition, offset: int, frame: Frame
    ) -> Sequence[bytes] | None:
        try:
            return sink_format.messages(frame)
        except FrameError as error:
            self._report(key, offset, error)
            return None

    def _report(self, key: SinkPartition, offset: int, error: FrameError) -> None:
        """Says so once a partition; the rest is counted."""
        if key not in self._reported:
            self._reported.add(key)
            self._log.error(
                "unreadable record skipped; more of this partition are only counted",
                sink=key[0],
                partition=key[1],
                offset=offset,
                fault=str(error),
            )
