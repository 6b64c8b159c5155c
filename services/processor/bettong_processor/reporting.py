"""Live metrics of partitions, which tasks write as best effort: results never wait for metrics."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bettong import metrics
from bettong.delivery import Gap
from bettong.edges.redis_store import LiveMetrics
from bettong.edges.redis_store.live import MetricValues
from bettong.errors import StoreError
from bettong.hot_keys import NO_HOT_KEYS
from bettong.identifiers import PartitionId
from bettong.listing import first_texts
from bettong.logs import Logger
from bettong.worker.partition import PartitionWorker
from bettong_processor.saved_snapshots import SavedSnapshot

# Between two attempts while Redis is away: each costs a task up to a few seconds.
_PAUSE_S = 10.0
# Partitions that one line names.
_NAMED_MAX = 3


@dataclass(slots=True)
class PartitionMetrics:
    """Writes metrics; after a failed write, skips them for a while. `clock` is monotonic, in seconds.

    `gap_alarm_s`: how long a gap may stay before readers of the records report it. `beside`: metrics of the process,
    written with each partition's.
    """

    live_metrics: LiveMetrics
    clock: Callable[[], float]
    log: Logger
    gap_alarm_s: float
    beside: MetricValues = field(default_factory=dict)
    _held: dict[PartitionId, str] = field(default_factory=dict)
    _resume_s: float = float("-inf")

    def of(
        self, worker: PartitionWorker, saved: SavedSnapshot | None, save_fault: str
    ) -> dict[str, str | int | float]:
        """A partition's record: its fold, the newly saved snapshot, and why the next one could not be saved."""
        return {
            **metrics_of(worker),
            **(saved.metrics() if saved is not None else {}),
            metrics.SNAPSHOT_FAULT.name: save_fault,
            metrics.FAULT.name: self._held.get(worker.id, ""),
            metrics.GAP.name: gap_text(worker.gap),
            metrics.GAP_ALARM_S: self.gap_alarm_s,
        }

    def write(self, partition: PartitionId, metric_values: MetricValues, begun_ms: int | None = None) -> None:
        """Updates these metrics of a partition. Never raises; the next batch makes up for a write that is skipped.

        `begun_ms`: when the run began, if its tasks may run twice (LiveMetrics.write_folded).
        """
        if self.clock() < self._resume_s:
            return
        metric_values = {**metric_values, **self.beside}
        try:
            if begun_ms is None:
                self.live_metrics.write_partition(partition, metric_values)
            else:
                self.live_metrics.write_folded(partition, metric_values, begun_ms=begun_ms)
        except StoreError as error:
            self.log.warning("live metrics not written", fault=str(error), pause_s=_PAUSE_S)
            self._resume_s = self.clock() + _PAUSE_S

    def report_fault(self, partition: PartitionId, text: str) -> None:
        """Reports what holds a partition up; "" clears it."""
        self.write(partition, {metrics.FAULT.name: text})

    def hold_fault(self, partition: PartitionId, text: str) -> None:
        """Reports a fault with every record of a partition, which may go on, until the next call; "" clears it.

        Without a fault, "" writes nothing, as each snapshot calls this.
        """
        if text:
            self._held[partition] = text
        elif self._held.pop(partition, None) is None:
            return
        self.report_fault(partition, text)

    def report_left_out(self, partition: PartitionId, text: str) -> None:
        """Reports what is excluded from now on because it killed workers."""
        self.write(partition, {metrics.LEFT_OUT.name: text})


def held_up(partitions: Mapping[PartitionId, Mapping[str, str]]) -> str:
    """One line for people about the partitions whose records report a fault; "" for none."""
    found = [
        f"{partition} is held up: {text}"
        for partition, record in sorted(partitions.items())
        if (text := record.get(metrics.FAULT.name))
    ]
    return first_texts(found, _NAMED_MAX)


def gap_text(gap: Gap | None) -> str:
    """One line for people about a gap; "" for none."""
    if gap is None:
        return ""
    return f"{gap.origin}, frame {gap.sequence}: frame {gap.previous} did not come before it"


def metrics_of(worker: PartitionWorker) -> dict[str, str | int | float]:
    """The metrics of a partition's record, without gaps and snapshots."""
    watermark_ns, held_by = worker.watermark
    hot_keys = worker.key_sample.found() if worker.key_sample is not None else NO_HOT_KEYS
    return {
        metrics.OFFSET.name: worker.next_offset,
        metrics.FRAMES.name: worker.counters.frames,
        metrics.MESSAGES.name: worker.counters.messages,
        metrics.RESULTS.name: worker.counters.results,
        metrics.DEAD_LETTERS.name: worker.counters.dead_letters,
        metrics.SKIPPED.name: worker.counters.skipped,
        metrics.DUPLICATES.name: worker.counters.duplicates,
        metrics.GAPS.name: worker.counters.gaps,
        metrics.KEYS.name: worker.keys,
        metrics.STATE_BYTES.name: worker.chain_sizes.total,
        metrics.CREATED.name: worker.keys + worker.counters.deleted + worker.counters.expired,
        metrics.DELETED.name: worker.counters.deleted,
        metrics.EXPIRED.name: worker.counters.expired,
        metrics.LATE.name: worker.counters.late,
        metrics.PARTLY_LATE.name: worker.counters.partly_late,
        metrics.ACCOUNTS.name: worker.accounts.text(worker.next_offset),
        metrics.HOT_KEYS.name: hot_keys.to_text() if hot_keys.keys else "",
        metrics.HOT_KEY_SHARE.name: round(hot_keys.keys[0].share, 4) if hot_keys.keys else "",
        metrics.TIMES.name: "" if worker.progress.stopwatch is None else worker.progress.stopwatch.text(),
        metrics.DUE.name: "" if worker.due_ns is None else worker.due_ns,
        metrics.WATERMARK.name: watermark_ns,
        metrics.WATERMARK_HELD_BY.name: held_by or "",
        metrics.EVENT_PROGRESS.name: progress.to_text() if (progress := worker.event_progress) else "",
        metrics.FAULT.name: "",
    }
