"""The current numbers of a deployment by stage, sink and source. Pure.

From the newest inspection, from trends over several (`trends`), and from services' reports of sinks and sources. A
number is None while unknown: at the first inspection, after a counter's restart, or where nothing is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bettong import metrics, queue_metrics
from bettong.inspection.computations import busy_share
from bettong.inspection.deployment import DeploymentAnswers, Inspection
from bettong.inspection.flow_measures import (
    FlowMeasures,
    flow_measures,
    held_share,
    services_held_share,
)
from bettong.inspection.latency_curves import p999_ms
from bettong.inspection.latency_parts import SinkParts
from bettong.inspection.overview import PartitionRow, Record, StageSummary, number_of, service_of
from bettong.inspection.trends import PartitionTrend, StageTrend, Trends, rate, stage_trend
from bettong.metric_series import Metric
from bettong.services import RECEIVER, SENDER


@dataclass(frozen=True, slots=True)
class TimedInspection:
    """An inspection at a time (Unix s), and the answers that it is made from."""

    time_s: float
    found: Inspection
    answers: DeploymentAnswers


@dataclass(frozen=True, slots=True)
class PartitionMeasures:
    """One partition. `share`: of its stage's messages now, 0 to 1. `lag_s`: how long its next record has waited.

    `p50_ms` and `p99_ms` are None while it is idle. `unsaved_records`: folded since its newest snapshot. `busy_share`:
    recently, of the core that folds it.
    """

    row: PartitionRow
    trend: PartitionTrend
    p50_ms: float | None
    p99_ms: float | None
    lag_s: float | None
    share: float | None
    unsaved_records: int | None
    cpus: int | None
    busy_share: float | None


@dataclass(frozen=True, slots=True)
class StageMeasures:
    """A stage, and its trends over several inspections. Latencies are those of the worst partition that is not idle.

    `watermark_ns`: the least one, of partition `watermark_partition`, and the origin that holds it; 0 while unknown.
    `held_share`: see `flow_measures.held_share`.
    """

    row: StageSummary
    trend: StageTrend
    results_per_s: float | None
    p50_ms: float | None
    p99_ms: float | None
    watermark_ns: int
    watermark_partition: int | None
    watermark_held_by: str
    held_share: float | None

    @property
    def lag_s(self) -> float | None:
        """How long the oldest waiting record has waited."""
        return self.trend.lag.seconds if self.trend.lag is not None else None


@dataclass(frozen=True, slots=True)
class SinkMeasures:
    """A sink, from the records of all receivers; latencies are client's send time to delivery, of the last minute.

    `held_share`: the share of the time in which its destination, else files and Redis, made the receiver wait.
    `delivering`: frames passed to these and not stored yet. `subscribers_stalled`: that do not read.
    """

    sink: str
    messages: int
    messages_per_s: float | None
    lag: int | None
    p50_ms: float | None
    p99_ms: float | None
    p999_ms: float | None
    max_ms: float | None
    held_share: float | None = None
    delivering: int | None = None
    subscribers_stalled: int | None = None


@dataclass(frozen=True, slots=True)
class SourceMeasures:
    """A source: records of its external topic not yet read, and how far event time is behind the clock.

    `held_share`: the share of the time in which a sender took none of its frames, because others waited to be decoded;
    `decoding`: frames that do.
    """

    source: str
    lag: int | None
    watermark_lag_s: float | None
    held_share: float | None = None
    decoding: int | None = None


@dataclass(frozen=True, slots=True)
class Measures:
    """All measures. `p50_ms` and its like: end to end, of the worst receiver; None when nothing came recently.

    `latency_parts`: by sink, of the last minute; none where they are not measured.
    `senders_held_share`: the share of the time in which a sender took no frames, because it had no room.
    """

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
    flows: tuple[FlowMeasures, ...]
    senders_held_share: float | None
    latency_parts: tuple[SinkParts, ...]


def measures(now: TimedInspection, before: TimedInspection | None, known: Trends) -> Measures:
    """`before`: some seconds earlier, for rates that `known` does not have; None at the first inspection."""
    earlier = before if before is not None and before.time_s < now.time_s else None
    overview, partitions = now.found.overview, _partitions(now, known)
    receivers, senders = _records(now, RECEIVER.name), _records(now, SENDER.name)
    passed_s = now.time_s - earlier.time_s if earlier is not None else 0.0
    lags_s = [each.lag_s for each in partitions]
    lag_known = overview.lag is not None and None not in lags_s
    return Measures(
        time_s=now.time_s,
        in_per_s=known.messages_per_s,
        out_per_s=known.results_per_s,
        lag=overview.lag,
        lag_s=_worst(lags_s) or 0.0 if lag_known else None,
        p50_ms=overview.p50_ms,
        p99_ms=overview.p99_ms,
        max_ms=_worst(number_of(each, metrics.LATENCY_MAX.name) for each in receivers.values()),
        sources=_sources(senders, earlier, passed_s),
        stages=_stages(now, earlier, partitions),
        sinks=_sinks(receivers, earlier, now),
        partitions=partitions,
        flows=flow_measures(
            now.found.accounts, earlier.found.accounts if earlier is not None else (), passed_s
        ),
        senders_held_share=services_held_share(
            senders, _records(earlier, SENDER.name) if earlier is not None else {}, passed_s
        ),
        latency_parts=overview.latency_parts,
    )


def _partitions(now: TimedInspection, known: Trends) -> tuple[PartitionMeasures, ...]:
    totals: dict[str, float] = {}
    for row in now.found.partitions:
        totals[row.stage] = totals.get(row.stage, 0.0) + (known.of(row.id).messages_per_s or 0.0)
    return tuple(_partition(now, row, known.of(row.id), totals[row.stage]) for row in now.found.partitions)


def _partition(
    now: TimedInspection, row: PartitionRow, trend: PartitionTrend, total: float
) -> PartitionMeasures:
    own, record = trend.messages_per_s, now.answers.partitions.get(row.id, {})
    # Latencies in its record are of its last fold.
    rests = own == 0.0
    return PartitionMeasures(
        row=row,
        trend=trend,
        p50_ms=None if rests else row.p50_ms,
        p99_ms=None if rests else row.p99_ms,
        lag_s=trend.lag.seconds if trend.lag is not None else None,
        share=own / total if own is not None and total else None,
        unsaved_records=max(0, row.offset - row.snapshot_offset) if row.snapshot_offset is not None else None,
        cpus=_count(record, metrics.CPUS),
        busy_share=busy_share(record),
    )


def _stages(
    now: TimedInspection, before: TimedInspection | None, partitions: Sequence[PartitionMeasures]
) -> tuple[StageMeasures, ...]:
    by_stage: dict[str, list[PartitionMeasures]] = {}
    for each in partitions:
        by_stage.setdefault(each.row.stage, []).append(each)
    old = {} if before is None else {row.stage: row.results for row in before.found.stages}
    before_rows, passed_s = (
        ((), 0.0) if before is None else (before.found.partitions, now.time_s - before.time_s)
    )
    return tuple(
        _stage(
            row,
            by_stage[row.stage],
            _rate(before, old.get(row.stage), now, row.results),
            held_share((each.row for each in by_stage[row.stage]), before_rows, passed_s),
        )
        for row in now.found.stages
    )


def _stage(
    row: StageSummary,
    own: Sequence[PartitionMeasures],
    results_per_s: float | None,
    held: float | None,
) -> StageMeasures:
    # Partitions without one have seen no message yet, and hold nothing back.
    timed = [each.row for each in own if each.row.watermark_ns]
    behind = min(timed, key=lambda each: each.watermark_ns, default=None)
    return StageMeasures(
        row=row,
        trend=stage_trend(each.trend for each in own),
        results_per_s=results_per_s,
        p50_ms=_worst(each.p50_ms for each in own),
        p99_ms=_worst(each.p99_ms for each in own),
        watermark_ns=behind.watermark_ns if behind is not None else 0,
        watermark_partition=behind.partition if behind is not None else None,
        watermark_held_by=behind.watermark_held_by if behind is not None else "",
        held_share=held,
    )


def _sinks(
    receivers: Mapping[str, Record], before: TimedInspection | None, now: TimedInspection
) -> tuple[SinkMeasures, ...]:
    prefix = f"{metrics.MESSAGES.name}/"
    named = {name for each in receivers.values() for name in each if name.startswith(prefix)}
    return tuple(_sink(name, receivers, before, now) for name in sorted(named))


def _sink(
    name: str, receivers: Mapping[str, Record], before: TimedInspection | None, now: TimedInspection
) -> SinkMeasures:
    suffix = name.removeprefix(metrics.MESSAGES.name)
    old = _records(before, RECEIVER.name) if before is not None else {}
    passed_s = now.time_s - before.time_s if before is not None else 0.0
    has_destination = any(f"{queue_metrics.DELIVERING.name}{suffix}" in each for each in receivers.values())
    whose = suffix if has_destination else ""
    rates = [
        _rate(before, number_of(old[instance], name), now, number_of(record, name))
        for instance, record in receivers.items()
        if instance in old
    ]
    known = [rate for rate in rates if rate is not None]

    def worst(metric: Metric) -> float | None:
        return _worst(number_of(each, metric.name + suffix) for each in receivers.values())

    return SinkMeasures(
        sink=suffix.removeprefix("/"),
        messages=sum(_count(each, metrics.MESSAGES, suffix) or 0 for each in receivers.values()),
        messages_per_s=sum(known) if known else None,
        lag=_total(_count(each, metrics.LAG, suffix) for each in receivers.values()),
        p50_ms=worst(metrics.LATENCY_P50),
        p99_ms=worst(metrics.LATENCY_P99),
        p999_ms=p999_ms(receivers.values(), suffix.removeprefix("/")),
        max_ms=worst(metrics.LATENCY_MAX),
        held_share=services_held_share(receivers, old, passed_s, whose.removeprefix("/")),
        delivering=_total(_count(each, queue_metrics.DELIVERING, whose) for each in receivers.values()),
        subscribers_stalled=_total(
            _count(each, queue_metrics.STALLED_SUBSCRIBERS, suffix) for each in receivers.values()
        ),
    )


def _sources(
    senders: Mapping[str, Record], before: TimedInspection | None, passed_s: float
) -> tuple[SourceMeasures, ...]:
    records, old = list(senders.values()), _records(before, SENDER.name) if before is not None else {}
    prefixes = tuple(f"{each.name}/" for each in (metrics.LAG, metrics.WATERMARK_LAG, queue_metrics.DECODING))
    names = {name.partition("/")[2] for each in records for name in each if name.startswith(prefixes)}
    return tuple(
        SourceMeasures(
            source=name,
            lag=_total(_count(each, metrics.LAG, f"/{name}") for each in records),
            watermark_lag_s=_worst(number_of(each, prefixes[1] + name) for each in records),
            held_share=services_held_share(senders, old, passed_s, name),
            decoding=_total(_count(each, queue_metrics.DECODING, f"/{name}") for each in records),
        )
        for name in sorted(names)
    )


def _records(moment: TimedInspection, service: str) -> dict[str, Record]:
    """The live records of a service's instances."""
    return {name: each for name, each in moment.answers.live.items() if service_of(each) == service}


def _rate(
    before: TimedInspection | None, old: float | None, now: TimedInspection, new: float | None
) -> float | None:
    """A count's growth per second; None where one is missing, or the counter has restarted."""
    if before is None or old is None or new is None:
        return None
    return rate([(before.time_s, int(old)), (now.time_s, int(new))])


def _count(record: Record, metric: Metric, suffix: str = "") -> int | None:
    found = number_of(record, metric.name + suffix)
    return None if found is None else int(found)


def _total(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _worst(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
