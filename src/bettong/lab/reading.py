"""Reads the results of a run from its sinks, and records their latencies."""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from types import TracebackType

from hdrh.histogram import HdrHistogram

from bettong.client.subscriber import Subscriber
from bettong.edges.external_kafka import TopicReader
from bettong.errors import BettongError, LabError
from bettong.lab.load import SinkResults
from bettong.lab.spec import LoadStep
from bettong.lab.target.pauses import PartitionPauses
from bettong.lab.target.topics import RunTopics
from bettong.threads import BlockThread

_HIGHEST_NS = 600_000_000_000
_DIGITS = 3
# How many latencies of each second are kept: enough for their median.
_PER_SECOND_MAX = 100
_CLOSE_S_MAX = 5.0
# How far a clock may be set back meanwhile.
_CLOCK_S = 0.001
_DUE_DIGITS = 6
_POLL_MS = 200
_RECORDS_MAX = 1000


class LatencyRecorder:
    """The latencies of results. A result counts for the step in which its message was due, after the warm-up.

    Latency counts from when the message was due, so that its wait for a slow system is included, as against Gil Tene's
    coordinated omission. Messages that were due before `begin_s` is known, or in the warm-up, are not measured.

    `sampled_ms`: some latencies of each second, one for each frame of results.
    """

    def __init__(self, steps: Sequence[LoadStep], *, warm_up_s: float) -> None:
        self.begin_s = float("inf")
        self.sampled_ms: dict[int, list[float]] = {}
        self.histograms = [HdrHistogram(1, _HIGHEST_NS, _DIGITS) for _ in steps]
        self._warm_up_s = warm_up_s
        self._ends_s = list(accumulate(step.seconds for step in steps))

    def record(self, due_s: float, now_s: float, results: int = 1) -> None:
        """Records that results of messages that were due at `due_s` came at `now_s`; both Unix time.

        Raises LabError for a result that came before its message was due.
        """
        # Due times are in whole ns on their way, so the first message of a step may seem to be due just before it.
        since_s = round(due_s - self.begin_s, _DUE_DIGITS)
        if since_s < self._warm_up_s or not self.histograms:
            return
        if now_s < due_s - _CLOCK_S:
            raise LabError(
                f"a result came {due_s - now_s:.3f} s before its message was due, {since_s:.3f} s after the beginning:"
                " was the clock set back, or does message_of() of the load return another message's number?"
            )
        of_second = self.sampled_ms.setdefault(int(since_s), [])
        if len(of_second) < _PER_SECOND_MAX:
            of_second.append((now_s - due_s) * 1e3)
        step = next((index for index, end_s in enumerate(self._ends_s) if since_s < end_s), -1)
        self.histograms[step].record_value(min(_HIGHEST_NS, max(1, round((now_s - due_s) * 1e9))), results)


class ResultReading(BlockThread):
    """A context manager: inside, a thread reads the results of a sink. `done` is set after `size` bytes, or an error.

    It reads on until the context exits, to see duplicates. `pauses`: between results of each partition.
    """

    def __init__(self, sink: str, size: int, latency: LatencyRecorder) -> None:
        super().__init__(f"lab-{sink}", close_s_max=_CLOSE_S_MAX)
        self.content = bytearray()
        self.last_s = 0.0
        self.done = threading.Event()
        self.failure: BettongError | None = None
        self.latency = latency
        self.pauses = PartitionPauses()
        self.size = size
        self._lengths = array("L")
        if size == 0:
            self.done.set()

    @property
    def results(self) -> SinkResults:
        """All results that came."""
        ends = accumulate(self._lengths, initial=0)
        return SinkResults.of([bytes(self.content[start:end]) for start, end in pairwise(ends)])

    def _add(self, messages: Sequence[bytes], partitions: Iterable[int]) -> None:
        self.last_s = time.time()
        for each in partitions:
            self.pauses.record_result(each, self.last_s)
        self._lengths.extend(map(len, messages))
        self.content += b"".join(messages)
        if len(self.content) >= self.size:
            self.done.set()

    def _fail(self, error: BettongError) -> None:
        self.failure = error
        self.done.set()


class SinkReading(ResultReading):
    """Reads by a subscriber of the receiver."""

    def __init__(self, target: str, sink: str, size: int, latency: LatencyRecorder) -> None:
        super().__init__(sink, size, latency)
        self._subscriber = Subscriber(target, sink)

    def _run(self) -> None:
        try:
            for result in self._subscriber:
                self._add(result.messages, [result.position.partition])
                # A client joins small frames while receipts are slow, so a frame may stand for many late messages.
                self.latency.record(result.sent_ns / 1e9, self.last_s, len(result.messages))
        except BettongError as error:
            self._fail(error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._subscriber.close()
        super().__exit__(kind, error, trace)


class TopicReading(ResultReading):
    """Reads the topic that a sink writes to, committed records only."""

    def __init__(self, topics: RunTopics, sink: str, size: int, latency: LatencyRecorder) -> None:
        super().__init__(sink, size, latency)
        self._reader = TopicReader(topics.options, topics.of_sinks[sink])
        self._arrived: list[tuple[float, list[bytes]]] = []

    def measure_latencies(self, due_s: Callable[[bytes], float]) -> None:
        """Records the latency of each result. Called after the run, because reading leaves no time for it."""
        for now_s, messages in self._arrived:
            for message in messages:
                self.latency.record(due_s(message), now_s)

    def _run(self) -> None:
        with self._reader as reader:
            try:
                reader.assign(dict.fromkeys(reader.partitions(), 0))
                while not self._stopping.is_set():
                    found = reader.poll(_POLL_MS, _RECORDS_MAX)
                    messages = [value or b"" for records in found.values() for value in records.values]
                    if messages:
                        self._add(messages, found)
                        self._arrived.append((self.last_s, messages))
            except BettongError as error:
                self._fail(error)
