"""Where is it slow? The part of an application that holds up the others most, and why. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from bettong.inspection.measures import Measures, PartitionMeasures, StageMeasures
from bettong.inspection.overview import stands_still
from bettong.latency_parts import LatencyPart
from bettong.topics import DEAD_LETTERS

# A smaller lag is normal: frames in transit.
_LAG_S_MIN = 1.0
# A sink that makes its receiver wait for this share of the time is at its limit.
_HELD_MIN = 0.9
# A partition with this multiple of its even share of messages is reported, if it has at least this rate.
_SKEW_MIN = 3.0
_SKEWED_PER_S_MIN = 10.0


@dataclass(frozen=True, slots=True)
class SlowestPart:
    """`kind`: source, stage or sink; all sources share one `name`.

    `why`: with numbers; `remedy`: what would make it faster, or "" when nothing is wrong.
    """

    kind: str
    name: str
    why: str
    remedy: str


@dataclass(frozen=True, slots=True)
class HeavyPartition:
    """A partition that has `times` its even share of its stage's messages."""

    stage: str
    partition: int
    share: float
    times: float


def slowest_part(measured: Measures) -> SlowestPart | None:
    """First a part that stands still, then the one furthest behind, then a sink that makes its receiver wait, then
    the largest part of the latency, or else the greatest latency. None: nothing measured.
    """
    return (
        _still(measured)
        or _behind(measured)
        or _slow_sink(measured)
        or _longest(measured)
        or _latest(measured)
    )


def heavy_partitions(measured: Measures) -> list[HeavyPartition]:
    """The greatest first."""
    return sorted(_heavy(measured), key=lambda heavy: -heavy.times)


def _still(measured: Measures) -> SlowestPart | None:
    still = [each for each in measured.partitions if stands_still(each.row)]
    if not still:
        return None
    worst = max(still, key=lambda each: each.row.lag or 0)
    row = worst.row
    for_ = "no worker folds it" if row.stalled_s == math.inf else f"for {row.stalled_s or 0.0:,.0f} s"
    fault = f": {worst.row.fault}" if worst.row.fault else ""
    return SlowestPart(
        "stage",
        row.stage,
        f"partition {row.partition} stands still, {for_}; {row.lag or 0:,} records wait{fault}",
        "see the log of the processor",
    )


def _behind(measured: Measures) -> SlowestPart | None:
    behind = [each for each in measured.stages if (each.lag_s or 0.0) >= _LAG_S_MIN]
    if not behind:
        return None
    stage = max(behind, key=lambda each: each.lag_s or 0.0)
    heavy = next((each for each in heavy_partitions(measured) if each.stage == stage.row.stage), None)
    skewed = (
        f"; partition {heavy.partition} takes {heavy.share:.0%} of its messages" if heavy is not None else ""
    )
    return SlowestPart(
        "stage",
        stage.row.stage,
        f"{stage.row.lag or 0:,} records wait in its log, the oldest for {stage.lag_s or 0.0:,.1f} s{skewed}",
        "a few keys may be hot: a finer key spreads them"
        if heavy is not None
        else "add cores: they fold more partitions at a time",
    )


def _slow_sink(measured: Measures) -> SlowestPart | None:
    sink = max(measured.sinks, key=lambda each: each.held_share or 0.0, default=None)
    if sink is None or (sink.held_share or 0.0) < _HELD_MIN:
        return None
    behind = f"; {sink.lag:,} records wait for it" if sink.lag else ""
    return SlowestPart(
        "sink",
        sink.sink,
        f"its receiver waits for it {sink.held_share:.0%} of the time{behind}",
        "check its destination: it is at its limit, or away",
    )


def _longest(measured: Measures) -> SlowestPart | None:
    """By the parts of the latency. All parts before a worker, and in it, count for the slowest stage."""
    sinks = [each for each in measured.latency_parts if each.sink != DEAD_LETTERS]
    if not sinks:
        return None
    sink = max(sinks, key=lambda each: each.mean_ms)
    part, share = sink.largest.part, sink.largest.share
    why = (
        f"results of {sink.sink} take {sink.mean_ms:,.1f} ms on average from client to delivery, {share:.0%} of it"
        f" {part.words}"
    )
    if part in {LatencyPart.LOG_TO_RECEIVER, LatencyPart.RECEIVER_TO_SINK}:
        return SlowestPart("sink", sink.sink, why, "")
    if part is LatencyPart.CLIENT_TO_LOG:
        return SlowestPart("source", ", ".join(each.source for each in measured.sources), why, "")
    stage = max(measured.stages, key=lambda each: each.p99_ms or 0.0, default=None)
    return SlowestPart("stage", stage.row.stage, why, "") if stage is not None else None


def _latest(measured: Measures) -> SlowestPart | None:
    """The stage or sink that adds most: a sink's latency counts from the client, so that of stages is subtracted."""
    stages = [each for each in measured.stages if each.p99_ms is not None]
    if not stages:
        return None
    stage = max(stages, key=lambda each: each.p99_ms or 0.0)
    before = stage.p99_ms or 0.0
    sinks = [each for each in measured.sinks if each.p99_ms is not None]
    sink = max(sinks, key=lambda each: each.p99_ms or 0.0, default=None)
    if sink is not None and (sink.p99_ms or 0.0) - before > before:
        return SlowestPart(
            "sink",
            sink.sink,
            f"p99 from client to delivery is {sink.p99_ms:,.1f} ms, of which the slowest stage takes {before:,.1f} ms",
            "",
        )
    return SlowestPart(
        "stage", stage.row.stage, f"{_p99(stage)} from sender to durable output: the most of all stages", ""
    )


def _p99(stage: StageMeasures) -> str:
    return f"p99 of {stage.p99_ms or 0.0:,.1f} ms"


def _heavy(measured: Measures) -> Iterator[HeavyPartition]:
    partitions = {stage.row.stage: stage.row.partitions for stage in measured.stages}
    for each in measured.partitions:
        times = (each.share or 0.0) * partitions[each.row.stage]
        if times >= _SKEW_MIN and _is_busy(each):
            yield HeavyPartition(each.row.stage, each.row.partition, each.share or 0.0, times)


def _is_busy(each: PartitionMeasures) -> bool:
    return (each.trend.messages_per_s or 0.0) >= _SKEWED_PER_S_MIN
