"""What a deployment does now, in numbers: rates from two moments, the rest from the later one. Pure.

A rate is None where it cannot be known: nobody has looked before, who counts has begun anew, or nobody counts.
No number stands for a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bettong import metrics
from bettong.identifiers import PartitionId
from bettong.inspection.deployment import DeploymentAnswers, Inspection
from bettong.inspection.overview import PartitionRow, Record, service_of
from bettong.metrics import Metric
from bettong.services import RECEIVER, SENDER


@dataclass(frozen=True, slots=True)
class Moment:
    """What was found at a time (Unix s), and the answers that it was found by."""

    time_s: float
    found: Inspection
    answers: DeploymentAnswers


@dataclass(frozen=True, slots=True)
class PartitionMeasures:
    """One partition. `share`: of its stage's messages now, 0 to 1. `lag_s`: the time that its lag takes to fold.

    `unsaved_records`: folded since its newest snapshot. `fault`: what holds it up.
    """

    row: PartitionRow
    slot: int | None
    messages_per_s: float | None
    p50_ms: float | None
    p99_ms: float | None
    lag_s: float | None
    share: float | None
    keys: int | None
    unsaved_records: int | None
    late: int
    partly_late: int
    dead_letters: int
    skipped: int
    cpus: int | None
    fault: str


@dataclass(frozen=True, slots=True)
class StageMeasures:
    """All partitions of a stage together; latencies and `lag_s` are those of the worst one.

    `watermark_ns`: the least one, of partition `watermark_partition`, and the origin that holds it; 0 while unknown.
    """

    stage: str
    partitions: int
    messages_per_s: float | None
    results_per_s: float | None
    lag: int | None
    lag_s: float | None
    p50_ms: float | None
    p99_ms: float | None
    keys: int
    late: int
    partly_late: int
    dead_letters: int
    skipped: int
    watermark_ns: int
    watermark_partition: int | None
    watermark_held_by: str


@dataclass(frozen=True, slots=True)
class SinkMeasures:
    """What all receivers say of a sink; latencies are client's send time to delivery, of the last minute."""

    sink: str
    messages: int
    messages_per_s: float | None
    lag: int | None
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None


@dataclass(frozen=True, slots=True)
class SourceMeasures:
    """Of a source: records of its external topic not yet read, and how far event time is behind the clock."""

    source: str
    lag: int | None
    watermark_lag_s: float | None


@dataclass(frozen=True, slots=True)
class Measures:
    """All of it. `p50_ms` and its like: end to end, of the worst receiver; None when nothing came of late."""

    time_s: float
    in_per_s: float | None
    out_per_s: float | None
    lag: int | None
    lag_s: float | None
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    sources: tuple[SourceMeasures, ...]
    stages: tuple[StageMeasures, ...]
    sinks: tuple[SinkMeasures, ...]
    partitions: tuple[PartitionMeasures, ...]


def measures(now: Moment, before: Moment | None) -> Measures:
    """`before`: some seconds earlier, so that rates are of so many seconds; None where nobody has looked."""
    interval = _Interval(now, before if before is not None and before.time_s < now.time_s else None)
    overview, partitions = now.found.overview, _partitions(interval)
    receivers = interval.records(RECEIVER.name)
    lags_s = [each.lag_s for each in partitions]
    known = overview.lag is not None and None not in lags_s
    return Measures(
        time_s=now.time_s,
        in_per_s=interval.rate(SENDER.name, metrics.MESSAGES.name),
        out_per_s=interval.rate(RECEIVER.name, metrics.MESSAGES.name),
        lag=overview.lag,
        lag_s=_worst(lags_s) or 0.0 if known else None,
        p50_ms=overview.p50_ms,
        p99_ms=overview.p99_ms,
        max_ms=_worst(_number(each, metrics.LATENCY_MAX.name) for each in receivers),
        sources=_sources(interval.records(SENDER.name)),
        stages=_stages(interval, partitions),
        sinks=_sinks(interval),
        partitions=partitions,
    )


class _Interval:
    """Two moments; the earlier one may be missing."""

    def __init__(self, now: Moment, before: Moment | None) -> None:
        self.now = now
        self.before = before
        self.seconds = now.time_s - before.time_s if before is not None else 0.0
        rows = before.found.partitions if before is not None else []
        self.offsets = {_id(row): row.offset for row in rows}

    def records(self, service: str) -> list[Record]:
        """The live records of a service's instances."""
        return [each for each in self.now.answers.live.values() if service_of(each) == service]

    def rate(self, service: str, name: str) -> float | None:
        """By how much a count of all instances of a service grows in a second."""
        if self.before is None:
            return None
        old = self.before.answers.live
        grown = [
            _grown(old.get(instance, {}), record, name)
            for instance, record in self.now.answers.live.items()
            if service_of(record) == service
        ]
        return self._per_s(grown)

    def stage_rate(self, stage: str, metric: Metric) -> float | None:
        """The same of a count of all partitions of a stage."""
        if self.before is None:
            return None
        old = self.before.answers.partitions
        grown = [
            _grown(old.get(id_, {}), record, metric.name)
            for id_, record in self.now.answers.partitions.items()
            if id_.stage == stage
        ]
        return self._per_s(grown)

    def partition_rate(self, id_: PartitionId) -> float | None:
        """How many messages a partition folds in a second."""
        if self.before is None:
            return None
        old, new = self.before.answers.partitions, self.now.answers.partitions
        return self._per_s([_grown(old.get(id_, {}), new.get(id_, {}), metrics.MESSAGES.name)])

    def _per_s(self, grown: Sequence[float | None]) -> float | None:
        known = [each for each in grown if each is not None]
        return sum(known) / self.seconds if known else None


def _partitions(interval: _Interval) -> tuple[PartitionMeasures, ...]:
    rows = interval.now.found.partitions
    rates = {_id(row): interval.partition_rate(_id(row)) for row in rows}
    totals: dict[str, float] = {}
    for id_, rate in rates.items():
        totals[id_.stage] = totals.get(id_.stage, 0.0) + (rate or 0.0)
    return tuple(_partition(interval, row, rates[_id(row)], totals[row.stage]) for row in rows)


def _partition(interval: _Interval, row: PartitionRow, rate: float | None, total: float) -> PartitionMeasures:
    record = interval.now.answers.partitions.get(_id(row), {})
    rests = rate == 0.0
    return PartitionMeasures(
        row=row,
        slot=interval.now.answers.slots.get(_id(row)),
        messages_per_s=rate,
        # What its record says of latencies was true when it folded last.
        p50_ms=None if rests else row.p50_ms,
        p99_ms=None if rests else row.p99_ms,
        lag_s=_lag_s(interval, row),
        share=rate / total if rate is not None and total else None,
        keys=_count(record, metrics.KEYS),
        unsaved_records=max(0, row.offset - row.snapshot_offset) if row.snapshot_offset is not None else None,
        late=_count(record, metrics.LATE) or 0,
        partly_late=_count(record, metrics.PARTLY_LATE) or 0,
        dead_letters=_count(record, metrics.DEAD_LETTERS) or 0,
        skipped=_count(record, metrics.SKIPPED) or 0,
        cpus=_count(record, metrics.CPUS),
        fault=record.get(metrics.FAULT.name, ""),
    )


def _lag_s(interval: _Interval, row: PartitionRow) -> float | None:
    """How long its records take at the pace of late; None when that is not known, or it does not move."""
    if row.lag == 0:
        return 0.0
    grown = row.offset - interval.offsets.get(_id(row), row.offset)
    return row.lag * interval.seconds / grown if row.lag is not None and grown > 0 else None


def _stages(interval: _Interval, partitions: Sequence[PartitionMeasures]) -> tuple[StageMeasures, ...]:
    names = dict.fromkeys(each.row.stage for each in partitions)
    return tuple(
        _stage(interval, name, [each for each in partitions if each.row.stage == name]) for name in names
    )


def _stage(interval: _Interval, name: str, own: Sequence[PartitionMeasures]) -> StageMeasures:
    lags, lags_s = [each.row.lag for each in own], [each.lag_s for each in own]
    # Those without one have met no message yet, and hold nothing up.
    timed = [each.row for each in own if each.row.watermark_ns]
    behind = min(timed, key=lambda row: row.watermark_ns, default=None)
    return StageMeasures(
        stage=name,
        partitions=len(own),
        messages_per_s=interval.stage_rate(name, metrics.MESSAGES),
        results_per_s=interval.stage_rate(name, metrics.RESULTS),
        lag=sum(lag or 0 for lag in lags) if None not in lags else None,
        lag_s=_worst(lags_s) if None not in lags_s else None,
        p50_ms=_worst(each.p50_ms for each in own),
        p99_ms=_worst(each.p99_ms for each in own),
        keys=sum(each.keys or 0 for each in own),
        late=sum(each.late for each in own),
        partly_late=sum(each.partly_late for each in own),
        dead_letters=sum(each.dead_letters for each in own),
        skipped=sum(each.skipped for each in own),
        watermark_ns=behind.watermark_ns if behind is not None else 0,
        watermark_partition=behind.partition if behind is not None else None,
        watermark_held_by=behind.watermark_held_by if behind is not None else "",
    )


def _sinks(interval: _Interval) -> tuple[SinkMeasures, ...]:
    receivers = interval.records(RECEIVER.name)
    prefix = f"{metrics.MESSAGES.name}/"
    names = sorted(
        {name.removeprefix(prefix) for each in receivers for name in each if name.startswith(prefix)}
    )
    return tuple(
        SinkMeasures(
            sink=name,
            messages=sum(_count(each, metrics.MESSAGES, f"/{name}") or 0 for each in receivers),
            messages_per_s=interval.rate(RECEIVER.name, prefix + name),
            lag=_total(_count(each, metrics.LAG, f"/{name}") for each in receivers),
            p50_ms=_worst(_number(each, f"{metrics.LATENCY_P50.name}/{name}") for each in receivers),
            p99_ms=_worst(_number(each, f"{metrics.LATENCY_P99.name}/{name}") for each in receivers),
            max_ms=_worst(_number(each, f"{metrics.LATENCY_MAX.name}/{name}") for each in receivers),
        )
        for name in names
    )


def _sources(senders: Sequence[Record]) -> tuple[SourceMeasures, ...]:
    prefixes = (f"{metrics.LAG.name}/", f"{metrics.WATERMARK_LAG.name}/")
    names = sorted({name.partition("/")[2] for each in senders for name in each if name.startswith(prefixes)})
    return tuple(
        SourceMeasures(
            source=name,
            lag=_total(_count(each, metrics.LAG, f"/{name}") for each in senders),
            watermark_lag_s=_worst(_number(each, prefixes[1] + name) for each in senders),
        )
        for name in names
    )


def _id(row: PartitionRow) -> PartitionId:
    return PartitionId(row.stage, row.partition)


def _grown(old: Record, new: Record, name: str) -> float | None:
    """None when one of them does not say it, or the count has begun anew between them."""
    counts = _number(old, name), _number(new, name)
    if counts[0] is None or counts[1] is None or counts[1] < counts[0]:
        return None
    return counts[1] - counts[0]


def _count(record: Record, metric: Metric, suffix: str = "") -> int | None:
    found = _number(record, metric.name + suffix)
    return None if found is None else int(found)


def _number(record: Record, name: str) -> float | None:
    text = record.get(name)
    return float(text) if text else None


def _total(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _worst(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
