"""What the live metrics of all services amount to: pure, from the records that `edges.redis_store` reads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bettong import metrics
from bettong.identifiers import PartitionId
from bettong.metrics import Metric
from bettong.services import PROCESSOR, RECEIVER, SENDER

Record = Mapping[str, str]
# What a partition must have stood still for to be an alarm: a micro-batch moves offsets only at its end.
STALLED_S_MIN = 5.0
# A service that has not written its record for this part of the record's life says nothing any more: it writes at
# least ten times in it, and of the shortest, 10 s, this is three seconds.
_SILENT_PER_TTL = 0.3


@dataclass(frozen=True, slots=True)
class Overview:
    """Messages taken in, results delivered, and what is between. Latencies are None where nothing came of late.

    `lag` is None where a part of it is not known: no number is better than a wrong one.
    `shared`: partitions that are folded on CPUs of others, where a worker was promised its own. `gaps`: partitions
    where a frame is skipped for long, with its origin and number. `references`: tables of `join_reference` that could
    not be loaded again, and why. `left_out`: messages that killed workers, of late the
    last one of each partition.
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


@dataclass(frozen=True, slots=True)
class StageSummary:
    """All partitions of a stage together. `skipped_frames`: duplicates and gaps."""

    stage: str
    partitions: int
    offset: int
    snapshot_offset: int
    messages: int
    results: int
    dead_letters: int
    skipped: int
    skipped_frames: int


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition. What its schedule does not measure is None, and what nobody knows now.

    `stalled_s`: for how long it has not moved although records wait; infinite when nobody folds at all.
    `watermark_ns`: 0 where nothing goes by event time.
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


def stands_still(row: PartitionRow) -> bool:
    """Whether records wait for a partition that does not move."""
    return row.stalled_s is not None and row.stalled_s >= STALLED_S_MIN


def overview(
    live: Mapping[str, Record],
    partitions: Mapping[PartitionId, Record],
    rows: Sequence[PartitionRow] | None = None,
) -> Overview:
    """Messages are counted since the start of each sender; results and dead letters since the first record.

    `rows`: of the partitions, whose lag counts; without them it is what the processor says.
    """
    senders = [record for record in live.values() if service_of(record) == SENDER.name]
    receivers = [record for record in live.values() if service_of(record) == RECEIVER.name]
    # A receiver reads the dead letters of all from their topic, each once. Partitions know those of their stage, and
    # among them what a sender refused on the way to it: the sender's metric would count that again.
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
    )


def stages(partitions: Mapping[PartitionId, Record]) -> list[StageSummary]:
    """One summary a stage, by name."""
    names = sorted({stage for stage, _ in partitions})
    return [
        StageSummary(
            stage=name,
            partitions=len(records),
            offset=_total(records, metrics.OFFSET),
            snapshot_offset=_total(records, metrics.SNAPSHOT_OFFSET),
            messages=_total(records, metrics.MESSAGES),
            results=_total(records, metrics.RESULTS),
            dead_letters=_total(records, metrics.DEAD_LETTERS),
            skipped=_total(records, metrics.SKIPPED),
            skipped_frames=_total(records, metrics.DUPLICATES) + _total(records, metrics.GAPS),
        )
        for name in names
        if (records := [record for (stage, _), record in partitions.items() if stage == name])
    ]


def partition_rows(
    live: Mapping[str, Record],
    partitions: Mapping[PartitionId, Record],
    *,
    begins: Mapping[PartitionId, int] | None = None,
    ends: Mapping[PartitionId, int] | None = None,
    lag_known: bool = True,
) -> list[PartitionRow]:
    """One row a partition, by stage and number.

    Lag is from `ends`, where logs end now, to what was reported as folded; of a partition without a report (Redis
    may have lost it) it is the word of a driver that folds, else from where its log begins. Without `ends` it is the
    driver's word. Not `lag_known`: nobody's.
    """
    drivers = [record for record in live.values() if service_of(record) == PROCESSOR.name]
    reported = {name: value for record in drivers for name, value in record.items()}
    folds = any(metrics.LAG.name in record and not is_silent(record) for record in drivers)
    rows = []
    for stage, partition in sorted({*partitions, *(ends or ())}):
        key = PartitionId(stage, partition)
        record = partitions.get(key, {})
        saved = _number(record, metrics.SNAPSHOT_OFFSET)
        offset = max(_total([record], metrics.OFFSET), (begins or {}).get(key, 0))
        lag: float | None = None
        if ends is None or (folds and metrics.OFFSET.name not in record):
            lag = _number(reported, metrics.LAG, f"/{stage}/{partition}")
        if lag is None:
            lag = max(0, ends.get(key, offset) - offset) if ends is not None else _number(record, metrics.LAG)
        if not lag_known:
            lag = None
        stalled_s = _number(reported, metrics.STALLED, f"/{stage}/{partition}") if folds else math.inf
        rows.append(
            PartitionRow(
                stage=stage,
                partition=partition,
                offset=offset,
                snapshot_offset=int(saved) if saved is not None else None,
                messages=_total([record], metrics.MESSAGES),
                lag=int(lag) if lag is not None else None,
                messages_per_s=_number(record, metrics.RATE),
                p50_ms=_number(record, metrics.LATENCY_P50),
                p99_ms=_number(record, metrics.LATENCY_P99),
                stalled_s=stalled_s if lag else None,
                watermark_ns=int(_number(record, metrics.WATERMARK) or 0),
                watermark_held_by=record.get(metrics.WATERMARK_HELD_BY.name, ""),
            )
        )
    return rows


def service_of(record: Record) -> str:
    """Which service wrote a record."""
    return record.get(metrics.SERVICE.name, "")


def is_silent(record: Record) -> bool:
    """Whether who wrote a record has not written it again for so long that it is dead, cut off or stands still."""
    age_s, ttl_s = record.get(metrics.AGE_S), record.get(metrics.TTL_S)
    return age_s is not None and ttl_s is not None and float(age_s) > _SILENT_PER_TTL * float(ttl_s)


def _total(records: Iterable[Record], metric: Metric) -> int:
    return sum(int(float(record.get(metric.name) or 0)) for record in records)


def _lag(
    live: Mapping[str, Record], receivers: list[Record], rows: Sequence[PartitionRow] | None
) -> int | None:
    """Records not yet folded and not yet delivered; None while a part of it is not known."""
    drivers = [record for record in live.values() if service_of(record) == PROCESSOR.name]
    if not rows:  # nobody has looked, or nothing is known of any partition: then a sum would be a wrong 0
        folds = [lag for record in drivers if (lag := _number(record, metrics.LAG)) is not None]
        to_fold: float | None = sum(folds) if folds else None
    else:
        known = [row.lag for row in rows if row.lag is not None]
        to_fold = sum(known) if len(known) == len(rows) else None
    to_deliver = [_number(record, metrics.LAG) for record in receivers]
    if to_fold is None or not to_deliver or None in to_deliver:
        return None
    return int(to_fold + sum(lag or 0 for lag in to_deliver))


def _number(record: Record, metric: Metric, suffix: str = "") -> float | None:
    text = record.get(metric.name + suffix)
    return float(text) if text else None


def _worst(records: list[Record], metric: Metric) -> float | None:
    found = [float(record[metric.name]) for record in records if record.get(metric.name)]
    return max(found, default=None)
