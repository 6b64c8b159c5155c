"""Partitions in the form of `bettong status --json`: see `status_form`. Pure."""

from __future__ import annotations

import math

from bettong.inspection.described_form import Described, unit_field
from bettong.inspection.overview import PartitionRow, SnapshotRow, stands_still

OF_LATE = "recently; null where there were no results recently, or the schedule does not measure it"


class HotKeyStatus(Described):
    """A key that has many of a partition's messages."""

    key: str = unit_field("text", "As `bettong state get` takes it; its first 200 characters.")
    share: float = unit_field("0 to 1", "Of the partition's recent messages, by a sample: its share at most.")
    share_least: float = unit_field("0 to 1", "The same: at least.")


class SnapshotStatus(Described):
    """The newest snapshot of a partition, and what it cost."""

    saved_unix_s: float = unit_field("Unix s", "When it was saved, by the clock of the partition's worker.")
    bytes_written: int = unit_field(
        "bytes", "Bytes that saving it wrote: states that had changed, and some others."
    )
    took_ms: float = unit_field("ms", "How long saving it took: encoding, and storing.")
    paused_ms: float = unit_field(
        "ms", "Of that, for how long the partition's fold was paused; 0 under micro-batch."
    )


class PartitionStatus(Described):
    """One partition of a stage."""

    stage: str = unit_field("name", "The stage.")
    partition: int = unit_field("number", "Of the partition, from 0 on.")
    slot: int | None = unit_field(
        "number", "Which slot of the resident schedule holds it; null where none does, and under micro-batch."
    )
    offset: int = unit_field("offset", "The next record that it folds.")
    snapshot_offset: int | None = unit_field("offset", "Of its newest snapshot; null before the first.")
    snapshot: SnapshotStatus | None = unit_field(
        "object", "Its newest snapshot; null before the first, or where its cost was not reported."
    )
    snapshot_fault: str = unit_field(
        "text", "Why the store has not taken the newest one; empty where it has."
    )
    state_bytes: int | None = unit_field(
        "bytes", "Its saved states, which a recovery reads; null while unknown."
    )
    lag_records: int | None = unit_field(
        "records",
        "In its log, not yet folded, without what came since its worker last reported; null while unknown.",
    )
    stalled_s: float | None = unit_field(
        "s",
        "For how long it has folded nothing although records wait; null when it moves, or no worker folds it.",
    )
    is_folded: bool = unit_field("true or false", "Whether a processor folds it, or nothing waits for one.")
    stands_still: bool = unit_field(
        "true or false", "Whether records wait for it and it has not moved for 5 s, or no worker folds it."
    )
    messages: int = unit_field("messages", "Folded.")
    results: int = unit_field("messages", "Emitted.")
    dead_letters: int = unit_field("messages", "Emitted as dead letters.")
    skipped: int = unit_field("messages", 'Skipped, by on_error="skip".')
    skipped_frames: int = unit_field("frames", "Skipped as duplicates, or after a gap.")
    late: int = unit_field("messages", "Too late for all of their windows, or for their join.")
    partly_late: int = unit_field("messages", "Too late for some of their windows.")
    keys: int = unit_field("keys", "With a state.")
    messages_per_s: float | None = unit_field("messages/s", f"Folded, {OF_LATE}.")
    latency_p50_ms: float | None = unit_field(
        "ms", f"The sender's stamp to durable output, the median {OF_LATE}."
    )
    latency_p99_ms: float | None = unit_field("ms", "The same: 99 of 100 are faster.")
    watermark_ns: int | None = unit_field(
        "Unix ns", "Its watermark; null while unknown, and without event time."
    )
    watermark_held_by: str = unit_field(
        "name", "The origin that holds the watermark back; empty without event time."
    )
    fault: str = unit_field("text", "What holds it up; empty for nothing.")
    gap: str = unit_field("text", "The lost frame that it waits for; empty for none.")
    held_s: float | None = unit_field(
        "s",
        "For how long its slot has waited for Kafka to take its output, since the slot has it; null under"
        " micro-batch, and while unknown.",
    )
    read_ahead_records: int | None = unit_field(
        "records",
        "Of its lag: those that its slot has fetched and not begun to fold, when it last read; null under micro-batch,"
        " and while unknown.",
    )
    unacknowledged_frames: int | None = unit_field(
        "frames", "Of its output: sent to Kafka and not acknowledged; null as `read_ahead_records`."
    )
    hot_keys: list[HotKeyStatus] = unit_field(
        "list",
        "The three keys that have most of its recent messages, the heaviest first. None where no worker folds, before"
        " some 8,000 messages, and where a function makes the key for computations without states.",
    )


def partition_status(row: PartitionRow) -> PartitionStatus:
    """A row in this form."""
    nobody = row.stalled_s == math.inf
    return PartitionStatus(
        stage=row.stage,
        partition=row.partition,
        slot=row.slot,
        offset=row.offset,
        snapshot_offset=row.snapshot_offset,
        snapshot=_snapshot(row.snapshot) if row.snapshot is not None else None,
        snapshot_fault=row.snapshot_fault,
        state_bytes=row.state_bytes,
        lag_records=row.lag,
        stalled_s=None if nobody else row.stalled_s,
        is_folded=not nobody,
        stands_still=stands_still(row),
        messages=row.messages,
        results=row.results,
        dead_letters=row.dead_letters,
        skipped=row.skipped,
        skipped_frames=row.skipped_frames,
        late=row.late,
        partly_late=row.partly_late,
        keys=row.keys,
        messages_per_s=row.messages_per_s,
        latency_p50_ms=row.p50_ms,
        latency_p99_ms=row.p99_ms,
        watermark_ns=row.watermark_ns or None,
        watermark_held_by=row.watermark_held_by,
        fault=row.fault,
        gap=row.gap,
        held_s=row.held_s,
        read_ahead_records=row.read_ahead,
        unacknowledged_frames=row.unacknowledged,
        hot_keys=[
            HotKeyStatus(key=each.key, share=each.share, share_least=each.least) for each in row.hot_keys
        ],
    )


def _snapshot(found: SnapshotRow) -> SnapshotStatus:
    return SnapshotStatus(
        saved_unix_s=found.saved_s,
        bytes_written=found.size,
        took_ms=found.took_ms,
        paused_ms=found.paused_ms,
    )
