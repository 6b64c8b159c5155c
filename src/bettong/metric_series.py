"""Every live metric by the name that Prometheus knows it by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from bettong.metrics import (
    ACCOUNTS,
    BATCH,
    BATCH_MS,
    BUFFERED,
    CERTIFICATE_END,
    CPUS,
    CREATED,
    DEAD_LETTERS,
    DELETED,
    DROPPED_SPANS,
    DUE,
    DUPLICATES,
    EXCLUSIVE,
    EXPIRED,
    FRAMES,
    GAP_S,
    GAPS,
    HELD,
    HOT_KEY_SHARE,
    KEYS,
    LAG,
    LATE,
    LATENCY,
    LATENCY_PART,
    MESSAGES,
    OFFSET,
    PARTLY_LATE,
    RATE,
    REFERENCE_AGE,
    REFUSED,
    RESULTS,
    SESSIONS,
    SINCE,
    SKIPPED,
    SNAPSHOT_BYTES,
    SNAPSHOT_MS,
    SNAPSHOT_OFFSET,
    SNAPSHOT_PAUSE_MS,
    SNAPSHOT_SAVED,
    STALLED,
    STATE_BYTES,
    TICKS,
    TIMES,
    UNREADABLE,
    WATERMARK,
    WATERMARK_LAG,
    Metric,
)


class Scope(StrEnum):
    """Whose record holds a metric."""

    SERVICE = "every service"
    SENDER = "sender"
    PROCESSOR = "processor"
    PARTITION = "processor, for each partition"
    COMPUTATION = "processor, for each computation and output of a partition"
    RECEIVER = "receiver"


@dataclass(frozen=True, slots=True)
class Series:
    """A metric as Prometheus knows it, by its conventions (prometheus.io/docs/practices/naming): in base units.

    `labels`: what stands behind the metric's name, `messages/SINK`, and is left out when nothing does. A `_total` is
    a counter; one of HISTOGRAMS is one, of which the series are `<name>_bucket`, `<name>_sum` and `<name>_count`; all
    others are gauges. `per`: units of the metric in one of the series. `part`: of a metric that is JSON, what of it,
    and `says`: its meaning.
    """

    name: str
    metric: Metric
    scope: Scope
    labels: tuple[str, ...] = ()
    per: float = 1.0
    part: str = ""
    says: str = ""

    @property
    def meaning(self) -> str:
        """What it says, in words."""
        return self.says or self.metric.meaning


_SINK = ("sink",)

SERIES = (
    Series("bettong_state_entered_timestamp_seconds", SINCE, Scope.SERVICE),
    Series("bettong_certificate_end_timestamp_seconds", CERTIFICATE_END, Scope.SERVICE),
    Series("bettong_trace_dropped_spans_total", DROPPED_SPANS, Scope.SERVICE),
    Series("bettong_sender_messages_total", MESSAGES, Scope.SENDER),
    Series("bettong_sender_frames_total", FRAMES, Scope.SENDER),
    Series("bettong_sender_sessions", SESSIONS, Scope.SENDER),
    Series("bettong_sender_refused_sessions_total", REFUSED, Scope.SENDER),
    Series("bettong_sender_buffered_bytes", BUFFERED, Scope.SENDER),
    Series("bettong_sender_held_seconds_total", HELD, Scope.SENDER),
    Series("bettong_sender_dead_letters_total", DEAD_LETTERS, Scope.SENDER),
    Series("bettong_sender_skipped_messages_total", SKIPPED, Scope.SENDER),
    Series("bettong_sender_topic_lag_records", LAG, Scope.SENDER, ("source",)),
    Series("bettong_sender_ticks_total", TICKS, Scope.SENDER),
    Series("bettong_sender_watermark_lag_seconds", WATERMARK_LAG, Scope.SENDER, ("source",)),
    Series("bettong_processor_lag_records", LAG, Scope.PROCESSOR),
    Series("bettong_processor_batch", BATCH, Scope.PROCESSOR),
    Series("bettong_processor_batch_duration_seconds", BATCH_MS, Scope.PROCESSOR, per=1000),
    Series("bettong_processor_reference_age_seconds", REFERENCE_AGE, Scope.PROCESSOR, ("join",)),
    Series("bettong_partition_lag_records", LAG, Scope.PROCESSOR, ("stage", "partition")),
    Series("bettong_partition_stalled_seconds", STALLED, Scope.PROCESSOR, ("stage", "partition")),
    Series("bettong_partition_messages_total", MESSAGES, Scope.PARTITION),
    Series("bettong_partition_frames_total", FRAMES, Scope.PARTITION),
    Series("bettong_partition_results_total", RESULTS, Scope.PARTITION),
    Series("bettong_partition_dead_letters_total", DEAD_LETTERS, Scope.PARTITION),
    Series("bettong_partition_skipped_messages_total", SKIPPED, Scope.PARTITION),
    Series("bettong_partition_duplicate_frames_total", DUPLICATES, Scope.PARTITION),
    Series("bettong_partition_gap_frames_total", GAPS, Scope.PARTITION),
    Series("bettong_partition_gap_seconds", GAP_S, Scope.PARTITION),
    Series("bettong_partition_keys", KEYS, Scope.PARTITION),
    Series("bettong_partition_created_keys_total", CREATED, Scope.PARTITION),
    Series("bettong_partition_deleted_keys_total", DELETED, Scope.PARTITION),
    Series("bettong_partition_expired_keys_total", EXPIRED, Scope.PARTITION),
    Series("bettong_partition_late_messages_total", LATE, Scope.PARTITION),
    Series("bettong_partition_partly_late_messages_total", PARTLY_LATE, Scope.PARTITION),
    Series("bettong_partition_hot_key_ratio", HOT_KEY_SHARE, Scope.PARTITION),
    Series("bettong_partition_due_timestamp_seconds", DUE, Scope.PARTITION, per=1e9),
    Series("bettong_partition_watermark_timestamp_seconds", WATERMARK, Scope.PARTITION, per=1e9),
    Series("bettong_partition_offset", OFFSET, Scope.PARTITION),
    Series("bettong_partition_snapshot_offset", SNAPSHOT_OFFSET, Scope.PARTITION),
    Series("bettong_partition_snapshot_timestamp_seconds", SNAPSHOT_SAVED, Scope.PARTITION),
    Series("bettong_partition_snapshot_bytes", SNAPSHOT_BYTES, Scope.PARTITION),
    Series("bettong_partition_snapshot_duration_seconds", SNAPSHOT_MS, Scope.PARTITION, per=1000),
    Series("bettong_partition_snapshot_pause_seconds", SNAPSHOT_PAUSE_MS, Scope.PARTITION, per=1000),
    Series("bettong_partition_state_bytes", STATE_BYTES, Scope.PARTITION),
    Series("bettong_partition_messages_per_second", RATE, Scope.PARTITION),
    Series("bettong_partition_held_seconds_total", HELD, Scope.PARTITION),
    Series("bettong_partition_cpus", CPUS, Scope.PARTITION),
    Series("bettong_partition_cpus_exclusive", EXCLUSIVE, Scope.PARTITION),
    Series("bettong_partition_latency_seconds", LATENCY, Scope.PARTITION),
    Series(
        "bettong_computation_messages_total",
        ACCOUNTS,
        Scope.COMPUTATION,
        part="taken",
        says="messages that came to a computation or output",
    ),
    Series(
        "bettong_computation_results_total",
        ACCOUNTS,
        Scope.COMPUTATION,
        part="given",
        says="messages that a computation or output gave",
    ),
    Series(
        "bettong_computation_busy_seconds_total",
        TIMES,
        Scope.COMPUTATION,
        part="busy_s",
        says="how long a computation or output was at work; without a name: what workers do with frames themselves",
    ),
    Series("bettong_receiver_messages_total", MESSAGES, Scope.RECEIVER, _SINK),
    Series("bettong_receiver_frames_total", FRAMES, Scope.RECEIVER),
    Series("bettong_receiver_dead_letters_total", DEAD_LETTERS, Scope.RECEIVER),
    Series("bettong_receiver_skipped_messages_total", SKIPPED, Scope.RECEIVER),
    Series("bettong_receiver_duplicate_frames_total", DUPLICATES, Scope.RECEIVER),
    Series("bettong_receiver_gap_frames_total", GAPS, Scope.RECEIVER),
    Series("bettong_receiver_unreadable_records_total", UNREADABLE, Scope.RECEIVER),
    Series("bettong_receiver_subscribers", SESSIONS, Scope.RECEIVER),
    Series("bettong_receiver_lag_records", LAG, Scope.RECEIVER),
    Series("bettong_receiver_destination_lag_records", LAG, Scope.RECEIVER, _SINK),
    Series("bettong_receiver_latency_seconds", LATENCY, Scope.RECEIVER),
    Series("bettong_receiver_sink_latency_seconds", LATENCY, Scope.RECEIVER, _SINK),
    Series("bettong_receiver_latency_part_seconds", LATENCY_PART, Scope.RECEIVER, ("sink", "part")),
)

# What an endpoint adds of its own: name, labels, what it says.
BESIDE: Mapping[str, tuple[str, str]] = {
    "bettong_service_info": (
        "application, instance, service, version",
        "always 1: whose metrics these are",
    ),
    "bettong_state": ("service, state", "1 for the state that the service is in, 0 for the others"),
    "bettong_heartbeat_age_seconds": (
        "service",
        "since Redis took the service's live record; no sample before the first. Grows while Redis is away",
    ),
    "bettong_partition_metrics_readable": (
        "",
        "1 when Redis gave the processor the metrics of partitions for this scrape; 0: they are left out",
    ),
    "bettong_account_differences": (
        "stage",
        (
            "how much does not add up in the accounts of a stage, as `bettong status --accounts` names it; what is"
            " missing between stages once nothing has moved for 5 s. Of a moment: what stays is a loss, or a mistake"
        ),
    ),
}
