"""Totals and rows from the live metrics of all services: pure, from the records that `edges.redis_store` reads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bettong import metrics, queue_metrics
from bettong.event_progress import EventProgress
from bettong.hot_keys import HotKey
from bettong.identifiers import PartitionId
from bettong.inspection.hot_keys import hot_keys_of, skews
from bettong.inspection.latency_parts import SinkParts, sink_parts
from bettong.metric_series import Metric
from bettong.services import PROCESSOR, RECEIVER, SENDER

Record = Mapping[str, str]
# How long a partition must stand still for an alarm: a micro-batch moves offsets only at its end.
STALLED_S_MIN = 5.0
# A service is silent when it has not written its record for this share of the record's TTL: it writes at least ten
# times in it, and with the shortest TTL, 10 s, this is three seconds.
_SILENT_PER_TTL = 0.3
# From here on its record is late: with the shortest TTL after 1.3 s, in which two writes are missing. A busy machine
# may write that late, so it is a notice and no alarm.
_UNHEARD_PER_TTL = 0.13


@dataclass(frozen=True, slots=True)
class Overview:
    """Messages received, results delivered, and the lag between. Latencies are None where nothing came recently.

    `lag` is None where a part of it is unknown: no number is better than a wrong one.
    `shared`: partitions that are folded on shared CPUs, where workers should have their own. `gaps`: partitions that
    have waited long for a lost frame, with its origin and number. `references`: tables of `join_reference` that could
    not be loaded again, and why. `left_out`: the last skipped message of each partition that killed workers, recently.
    `latency_parts`: of each sink, recently.
    `skews`: keys that are too much for a partition, and what to do.
    """

    messages: int
    results: int
    dead_letters: int
    dead_letter_last: str
    skipped: int
    lag: int | None
    p50_ms: float | None
    p99_ms: float | None
    shared: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    latency_parts: tuple[SinkParts, ...] = ()
    skews: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StageSummary:
    """All partitions of a stage together. `skipped_frames`: duplicates and gaps.

    `lag` and `state_bytes` are None where a partition's is unknown, `messages_per_s` where none measures it.
    `p50_ms` and `p99_ms` are those of the slowest partition.
    """

    stage: str
    partitions: int
    offset: int
    snapshot_offset: int
    messages: int
    results: int
    dead_letters: int
    skipped: int
    skipped_frames: int
    late: int = 0
    partly_late: int = 0
    keys: int = 0
    state_bytes: int | None = None
    lag: int | None = None
    messages_per_s: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """The newest snapshot of a partition: when it was saved (Unix s), and what that cost: see `metrics.SNAPSHOT_MS`."""

    saved_s: float
    size: int
    took_ms: float
    paused_ms: float


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition. Values that are unknown, or that its schedule does not measure, are None.

    `stalled_s`: for how long it has not moved although records wait; infinite when no processor folds at all.
    `watermark_ns`: 0 without event time. `slot`: the task that holds it, under the resident schedule.
    `fault`: what holds it up; `gap`: the frame that it waits for. `hot_keys`: the heaviest first, recently.
    `event_progress`: None without event time, or if a worker of an older version folds it.
    `unfolded`: of the log as it ends now; `lag`: of these the ones that its worker had time to report, see
    `partition_rows`. `state_bytes`: see `metrics.STATE_BYTES`; `snapshot`: None before the first with a reported cost.
    `snapshot_fault`: why the store has not taken the newest one. `held_s`: see `metrics.HELD`; `read_ahead`,
    `unacknowledged`: see `queue_metrics`, None where no worker folds.
    """

    stage: str
    partition: int
    offset: int
    snapshot_offset: int | None
    messages: int
    lag: int | None
    messages_per_s: float | None
    p50_ms: float | None
    p99_ms: float | None
    stalled_s: float | None = None
    watermark_ns: int = 0
    watermark_held_by: str = ""
    results: int = 0
    dead_letters: int = 0
    skipped: int = 0
    skipped_frames: int = 0
    late: int = 0
    partly_late: int = 0
    keys: int = 0
    slot: int | None = None
    fault: str = ""
    gap: str = ""
    hot_keys: tuple[HotKey, ...] = ()
    event_progress: EventProgress | None = None
    state_bytes: int | None = None
    snapshot: SnapshotRow | None = None
    snapshot_fault: str = ""
    held_s: float | None = None
    read_ahead: int | None = None
    unacknowledged: int | None = None
    unfolded: int | None = None

    @property
    def id(self) -> PartitionId:
        """Which partition."""
        return PartitionId(self.stage, self.partition)


def stands_still(row: PartitionRow) -> bool:
    """Whether records wait for a partition that does not move."""
    return row.stalled_s is not None and row.stalled_s >= STALLED_S_MIN


def overview(
    live: Mapping[str, Record],
    partitions: Mapping[PartitionId, Record],
    rows: Sequence[PartitionRow] | None = None,
) -> Overview:
    """Messages are counted since the start of each sender; results and dead letters since the first record.

    `rows`: of the partitions, whose lag counts; without them lag is as the processor reports it.
    """
    senders = [record for record in live.values() if service_of(record) == SENDER.name]
    receivers = [record for record in live.values() if service_of(record) == RECEIVER.name]
    # A receiver reads all dead letters from their topic, each once. Partitions count those of their stage, including
    # messages that a sender refused on the way to it: the sender's metric would count these again.
    refused = receivers or partitions.values()
    last = [text for record in (*receivers, *senders) if (text := record.get(metrics.DEAD_LETTER_LAST.name))]
    return Overview(
        messages=_total(senders, metrics.MESSAGES),
        results=_total(receivers, metrics.MESSAGES),
        dead_letters=_total(refused, metrics.DEAD_LETTERS),
        dead_letter_last=last[0] if last else "",
        skipped=_total([*senders, *partitions.values(), *receivers], metrics.SKIPPED),
        lag=_lag(live, receivers, rows),
        p50_ms=_worst(receivers, metrics.LATENCY_P50),
        p99_ms=_worst(receivers, metrics.LATENCY_P99),
        shared=tuple(
            f"{stage}/{partition}"
            for (stage, partition), record in sorted(partitions.items())
            if record.get(metrics.EXCLUSIVE.name) == "0"
        ),
        gaps=tuple(
            f"{stage}/{partition}: {gap}, for {record.get(metrics.GAP_S.name)} s"
            for (stage, partition), record in sorted(partitions.items())
            if (gap := record.get(metrics.GAP.name))
        ),
        left_out=tuple(
            f"{stage}/{partition}: {text}"
            for (stage, partition), record in sorted(partitions.items())
            if (text := record.get(metrics.LEFT_OUT.name))
        ),
        references=tuple(text for record in live.values() if (text := record.get(metrics.REFERENCES.name))),
        latency_parts=sink_parts(receivers),
        skews=tuple(each.text for each in skews(rows or ())),
    )


def stages(rows: Iterable[PartitionRow]) -> list[StageSummary]:
    """One summary for each stage, by name."""
    by_stage: dict[str, list[PartitionRow]] = {}
    for row in rows:
        by_stage.setdefault(row.stage, []).append(row)
    return [_summary(name, by_stage[name]) for name in sorted(by_stage)]


def _summary(name: str, rows: list[PartitionRow]) -> StageSummary:
    lags = [row.lag for row in rows if row.lag is not None]
    sizes = [row.state_bytes for row in rows if row.state_bytes is not None]
    rates = [row.messages_per_s for row in rows if row.messages_per_s is not None]
    return StageSummary(
        stage=name,
        partitions=len(rows),
        offset=sum(row.offset for row in rows),
        snapshot_offset=sum(row.snapshot_offset or 0 for row in rows),
        messages=sum(row.messages for row in rows),
        results=sum(row.results for row in rows),
        dead_letters=sum(row.dead_letters for row in rows),
        skipped=sum(row.skipped for row in rows),
        skipped_frames=sum(row.skipped_frames for row in rows),
        late=sum(row.late for row in rows),
        partly_late=sum(row.partly_late for row in rows),
        keys=sum(row.keys for row in rows),
        state_bytes=sum(sizes) if len(sizes) == len(rows) else None,
        lag=sum(lags) if len(lags) == len(rows) else None,
        messages_per_s=sum(rates) if rates else None,
        p50_ms=max((row.p50_ms for row in rows if row.p50_ms is not None), default=None),
        p99_ms=max((row.p99_ms for row in rows if row.p99_ms is not None), default=None),
    )


def is_folded(live: Mapping[str, Record]) -> bool:
    """Whether a processor folds: it leads and is not silent."""
    leader = _leader(live)
    return bool(leader) and not is_silent(leader)


def _leader(live: Mapping[str, Record]) -> Record:
    """The record of the processor that leads, empty without one. That of a dead one outlives a takeover by seconds."""
    drivers = (each for each in live.values() if service_of(each) == PROCESSOR.name)
    leaders = (each for each in drivers if metrics.LAG.name in each)
    return min(leaders, key=lambda each: (is_silent(each), number_of(each, metrics.AGE_S) or 0.0), default={})


def partition_rows(
    live: Mapping[str, Record],
    partitions: Mapping[PartitionId, Record],
    *,
    begins: Mapping[PartitionId, int] | None = None,
    ends: Mapping[PartitionId, int] | None = None,
    ends_before: Mapping[PartitionId, int] | None = None,
    slots: Mapping[PartitionId, int] | None = None,
    lag_known: bool = True,
) -> list[PartitionRow]:
    """One row for each partition, by stage and number. `slots`: the slot that holds each, if one does.

    `unfolded` is from the reported offset to `ends`, where logs end now; of a partition without a report (Redis may
    have lost it) it is as reported by a driver that folds, else from the log's beginning. Without `ends` it is as the
    driver reports it; None unless `lag_known`. Lag is the same, but up to `ends_before`, where logs ended before these
    reports were due: else what came since would count, which is folded already where a worker keeps up. Rates and
    latencies are None where no worker folds: the last ones are out of date.
    """
    reported, folds = _leader(live), is_folded(live)
    rows = []
    for stage, partition in sorted({*partitions, *(ends or ())}):
        key = PartitionId(stage, partition)
        record = partitions.get(key, {})
        offset = max(_total([record], metrics.OFFSET), (begins or {}).get(key, 0))
        known: float | None = None
        if ends is None or (folds and metrics.OFFSET.name not in record):
            known = _number(reported, metrics.LAG, f"/{stage}/{partition}")
        if known is None:
            known = ends.get(key, offset) - offset if ends is not None else _number(record, metrics.LAG)
        lag = unfolded = max(0, int(known)) if known is not None and lag_known else None
        if unfolded is not None and folds and ends_before is not None:
            lag = min(unfolded, max(0, ends_before.get(key, offset) - offset))
        stalled_s = _number(reported, metrics.STALLED, f"/{stage}/{partition}") if folds else math.inf
        rows.append(
            replace(
                _folded(key, record, record if folds else {}),
                offset=offset,
                snapshot_offset=count_of(record, metrics.SNAPSHOT_OFFSET),
                lag=lag,
                unfolded=unfolded,
                stalled_s=stalled_s if lag else None,
                slot=(slots or {}).get(key),
            )
        )
    return rows


def _folded(id_: PartitionId, record: Record, of_late: Record) -> PartitionRow:
    """The row from a partition's record alone. `of_late`: that record while a worker folds, else empty."""
    return PartitionRow(
        stage=id_.stage,
        partition=id_.partition,
        offset=0,
        snapshot_offset=None,
        messages=_total([record], metrics.MESSAGES),
        lag=None,
        messages_per_s=_number(of_late, metrics.RATE),
        p50_ms=_number(of_late, metrics.LATENCY_P50),
        p99_ms=_number(of_late, metrics.LATENCY_P99),
        watermark_ns=int(_number(record, metrics.WATERMARK) or 0),
        watermark_held_by=record.get(metrics.WATERMARK_HELD_BY.name, ""),
        results=_total([record], metrics.RESULTS),
        dead_letters=_total([record], metrics.DEAD_LETTERS),
        skipped=_total([record], metrics.SKIPPED),
        skipped_frames=_total([record], metrics.DUPLICATES) + _total([record], metrics.GAPS),
        late=_total([record], metrics.LATE),
        partly_late=_total([record], metrics.PARTLY_LATE),
        keys=_total([record], metrics.KEYS),
        fault=record.get(metrics.FAULT.name, ""),
        gap=record.get(metrics.GAP.name, ""),
        hot_keys=hot_keys_of(of_late),
        event_progress=EventProgress.found(record.get(metrics.EVENT_PROGRESS.name, "")),
        state_bytes=count_of(record, metrics.STATE_BYTES),
        snapshot=_snapshot(record),
        snapshot_fault=record.get(metrics.SNAPSHOT_FAULT.name, ""),
        held_s=_number(record, metrics.HELD),
        read_ahead=count_of(of_late, queue_metrics.READ_AHEAD),
        unacknowledged=count_of(of_late, queue_metrics.UNACKNOWLEDGED),
    )


def _snapshot(record: Record) -> SnapshotRow | None:
    costs = (metrics.SNAPSHOT_SAVED, metrics.SNAPSHOT_BYTES, metrics.SNAPSHOT_MS, metrics.SNAPSHOT_PAUSE_MS)
    saved_s, size, took_ms, paused_ms = (_number(record, metric) for metric in costs)
    if saved_s is None or size is None or took_ms is None or paused_ms is None:
        return None
    return SnapshotRow(saved_s, int(size), took_ms, paused_ms)


def service_of(record: Record) -> str:
    """Which service wrote a record."""
    return record.get(metrics.SERVICE.name, "")


def is_silent(record: Record) -> bool:
    """Whether a service has not renewed its record for so long that it is dead, disconnected or stuck."""
    age_s, ttl_s = number_of(record, metrics.AGE_S), number_of(record, metrics.TTL_S)
    return age_s is not None and ttl_s is not None and age_s > _SILENT_PER_TTL * ttl_s


def unheard_s(record: Record) -> float | None:
    """The age of a service's record, where it is later than usual; None where it is not."""
    age_s, limit_s = _age_and_limit_s(record)
    return age_s if age_s is not None and age_s >= limit_s else None


def overdue_s(record: Record) -> float | None:
    """How long until a service that is late would count as unheard; None where it is not late, or counts already."""
    age_s, limit_s = _age_and_limit_s(record)
    return limit_s - age_s if age_s is not None and limit_s / 2 <= age_s < limit_s else None


def _age_and_limit_s(record: Record) -> tuple[float | None, float]:
    age_s, ttl_s = number_of(record, metrics.AGE_S), number_of(record, metrics.TTL_S)
    return (age_s, _UNHEARD_PER_TTL * ttl_s) if age_s is not None and ttl_s is not None else (None, 0.0)


def number_of(record: Record, name: str) -> float | None:
    """A number of a record; None where it is missing or invalid: others may write to that Redis, too."""
    try:
        number = float(record.get(name) or math.nan)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def count_of(record: Record, metric: Metric) -> int | None:
    """A count of a record; None as by `number_of`."""
    found = _number(record, metric)
    return int(found) if found is not None else None


def _total(records: Iterable[Record], metric: Metric) -> int:
    return sum(int(number_of(record, metric.name) or 0) for record in records)


def _lag(
    live: Mapping[str, Record], receivers: list[Record], rows: Sequence[PartitionRow] | None
) -> int | None:
    """Records not yet folded and not yet delivered; None while a part of it is unknown."""
    if not rows:  # no partition is known: then a sum would be a wrong 0
        to_fold = _number(_leader(live), metrics.LAG)
    else:
        known = [row.lag for row in rows if row.lag is not None]
        to_fold = sum(known) if len(known) == len(rows) else None
    to_deliver = [_number(record, metrics.LAG) for record in receivers]
    if to_fold is None or not to_deliver or None in to_deliver:
        return None
    return int(to_fold + sum(lag or 0 for lag in to_deliver))


def _number(record: Record, metric: Metric, suffix: str = "") -> float | None:
    return number_of(record, metric.name + suffix)


def _worst(records: list[Record], metric: Metric) -> float | None:
    return max(
        (number for record in records if (number := _number(record, metric)) is not None), default=None
    )
