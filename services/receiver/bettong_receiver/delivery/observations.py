"""Reports on deliveries: latency, the newest dead letter, and log lines."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bettong import metrics
from bettong.delivery import Gap
from bettong.logs import Logger
from bettong.topics import DEAD_LETTERS
from bettong_receiver.delivery.connector import Refused, SinkBatch
from bettong_receiver.delivery.route import SinkInput, SinkRecord
from bettong_receiver.formats import describe_dead_letter
from bettong_receiver.latency import Latency
from bettong_receiver.latency_parts import PartedLatency
from bettong_receiver.progress import SinkPartition


class DeliveryObserver:
    """Observes the batches of one task. `metrics` may be called from any thread."""

    def __init__(self, sinks: Iterable[str], *, clock_ns: Callable[[], int], with_parts: bool = True) -> None:
        """`with_parts`: whether to measure the parts of latency, too."""
        self._clock_ns = clock_ns
        self._latency = Latency(sinks)
        self._parts = PartedLatency(sinks) if with_parts else None
        self._dead_letter_last = ""

    def observe(self, batches: Sequence[SinkBatch[bytes]], read_before_s: float) -> None:
        """Records batches that have just been delivered, `read_before_s` after they were read."""
        now_ns = self._clock_ns()
        read_ns = now_ns - round(read_before_s * 1e9)
        for batch in batches:
            sink = batch.key.sink
            if self._parts is not None:
                self._parts.record(sink, batch.frames, read_ns=read_ns, delivered_ns=now_ns)
            for each in batch.frames:
                self._latency.record(
                    sink, sent_ns=each.frame.sent_ns, delivered_ns=now_ns, messages=len(each.messages)
                )
                if sink == DEAD_LETTERS and each.messages:
                    self._dead_letter_last = describe_dead_letter(each.messages[-1])

    def metrics(self) -> dict[str, float | str]:
        """Latency and its parts, recent and since the start, and the newest dead letter in one line."""
        return {
            **self._latency.metrics(),
            **self._latency.percentiles(),
            **self._latency.counts(),
            **(self._parts.metrics() if self._parts is not None else {}),
            metrics.DEAD_LETTER_LAST.name: self._dead_letter_last,
        }


class DeliveryLog:
    """Logs what a task cannot deliver. Used from the task's thread."""

    def __init__(self, log: Logger, inputs: Iterable[SinkInput[Any]]) -> None:
        self._log = log
        self._on_error = {each.sink: each.refusals and each.refusals.on_error for each in inputs}
        self._reported: set[SinkPartition] = set()
        self._with_gap: set[SinkPartition] = set()

    def faults(self, records: Iterable[SinkRecord[Any]]) -> None:
        """Logs the first unreadable record of each partition; the others are only counted."""
        for record in records:
            if record.fault is not None and record.key not in self._reported:
                self._reported.add(record.key)
                self._log.error(
                    "unreadable record skipped; more of this partition are only counted",
                    sink=record.key.sink,
                    partition=record.key.partition,
                    offset=record.offset,
                    fault=str(record.fault),
                )

    def gaps(self, gaps: Mapping[SinkPartition, Gap | None]) -> None:
        """Logs a partition whose results are skipped, for a frame before them is missing: once, until it is there.

        A stage sends it again after a crash. If it never does, the log has lost it: results are missing from then on.
        """
        for key, gap in gaps.items():
            if gap is None:
                self._with_gap.discard(key)
            elif key not in self._with_gap:
                self._with_gap.add(key)
                self._log.error(
                    "results are skipped until a missing frame comes; if the topic has lost it, start under another"
                    " application name",
                    sink=key.sink,
                    partition=key.partition,
                    origin=gap.origin,
                    sequence=gap.sequence,
                    missing=gap.previous,
                )

    def refused(self, refused: Refused) -> None:
        """Logs the messages that a connector refused in one delivery: one line per partition."""
        for (sink, partition), reasons in refused.items():
            self._log.warning(
                "messages refused",
                sink=sink,
                partition=partition,
                messages=len(reasons),
                first=next(iter(reasons.values())),
                on_error=self._on_error[sink],
            )
