"""The metrics of a run, computed from the results that were read and the samples that were taken while it ran."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from hdrh.histogram import HdrHistogram

from bettong.chaos.growth import Sample
from bettong.chaos.nemeses import Injected
from bettong.lab.latency_parts import PartsSample, mean_parts
from bettong.lab.reading import ResultReading
from bettong.lab.series import FAULT, GC_PAUSE, LAG, LATENCY, SeriesPoint
from bettong.lab.spec import LoadStep, step_names
from bettong.lab.target.gc_pauses import GcPause
from bettong.lab.target.pauses import AssignmentChange, longest_pauses
from bettong.lab.target.sampling import Usage
from bettong.services import PROCESSOR

PERCENTILES = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
_MS_NS = 1e6


@dataclass(frozen=True, slots=True)
class Measured:
    """The value of a metric in one repeat. `histogram`: all latencies in ns; HDR's compressed encoding, in base64."""

    metric: str
    unit: str
    value: float
    histogram: str = ""


def latencies(steps: Sequence[LoadStep], readings: Mapping[str, ResultReading]) -> list[Measured]:
    """The latency percentiles of each step and sink."""
    found = []
    for number, step_name in enumerate(step_names(steps)):
        for sink, reading in readings.items():
            histogram: HdrHistogram = reading.latency.histograms[number]
            if not histogram.get_total_count():
                continue
            encoded = histogram.encode().decode()
            for each in PERCENTILES:
                name = f"{sink} {step_name}, " + ("max" if each == 100 else f"p{each:g}")
                value_ms = histogram.get_value_at_percentile(each) / _MS_NS
                found.append(Measured(name, "ms", value_ms, encoded if each == PERCENTILES[0] else ""))
    return found


def series_points(
    readings: Mapping[str, ResultReading],
    lag: Sequence[Sample],
    gc_pauses: Sequence[GcPause],
    injected: Sequence[Injected],
    begin_s: float,
) -> Iterator[SeriesPoint]:
    """The median latency of each second, the lag, GC pauses, and faults with how long they lasted."""
    for sink, reading in readings.items():
        for second, sampled_ms in sorted(reading.latency.sampled_ms.items()):
            yield SeriesPoint(second, f"{sink}: {LATENCY}", median(sampled_ms))
    for sample in lag:
        yield SeriesPoint(sample.at_s - begin_s, f"{PROCESSOR.name}: {LAG}", sample.value)
    for pause in gc_pauses:
        yield SeriesPoint(pause.at_s - begin_s, f"{pause.target}: {GC_PAUSE}", pause.lasting_ms)
    for each in injected:
        lasting_s = each.ended_s - each.begun_s if each.fault.for_s else 0.0
        yield SeriesPoint(each.begun_s - begin_s, f"{each.fault.label}: {FAULT}", lasting_s)


def part_means(samples: Sequence[PartsSample], since_s: float) -> list[Measured]:
    """The mean of each part of each sink's latency, of the results counted after `since_s`, Unix time.

    A part of 0 is left out, because a ratio to it cannot be compared.
    """
    return [
        Measured(f"{sink}: {part}, mean", "ms", mean_ms)
        for sink, part, mean_ms in mean_parts(samples, since_s)
        if mean_ms > 0
    ]


def partition_pauses(
    readings: Mapping[str, ResultReading], changes: Sequence[AssignmentChange], since_s: float
) -> list[Measured]:
    """The longest pause between results of any one partition that began at `since_s`, Unix time, or later.

    Of all pauses, and of those around changes of the assignment, by their cause. A partition without messages pauses
    too, so the metrics only mean something for a load that leads to results of each partition all the time.
    """
    found = []
    for sink, reading in readings.items():
        for why, lasting_ms in longest_pauses(reading.pauses.since(since_s), changes).items():
            name = f"{sink}: longest pause of a partition" + (f", {why}" if why else "")
            found.append(Measured(name, "ms", lasting_ms))
    return found


def cpu_shares(usage: Usage, since_s: float, until_s: float) -> list[Measured]:
    """The average CPU of all processes, and of each kind, from `since_s` to `until_s` of the run."""
    percent = {
        target: 100 * spent_s / (until_s - since_s)
        for target, spent_s in usage.cpu_s(since_s, until_s).items()
        if spent_s > 0
    }
    shares = {"all": sum(percent.values()), **percent} if percent else {}
    return [Measured(f"CPU of {target}", "% of a core", each) for target, each in shares.items()]


def usages(usage: Usage, gc_pauses: Sequence[GcPause], messages: int) -> list[Measured]:
    """CPU, memory, GC pauses and bytes sent. A value of 0 is left out, because a ratio to it cannot be compared."""
    paused_s: dict[str, float] = defaultdict(float)
    for each in gc_pauses:
        paused_s[each.target] += each.lasting_ms / 1e3
    memory = {"all": usage.memory_of_all_mb, **usage.memory_mb} if usage.memory_mb else {}
    pss = {"all": usage.pss_of_all_mb, **usage.pss_mb} if usage.pss_mb else {}
    sent_mb = usage.network_mb * 1e6 / messages if messages else 0.0
    return [
        *(_cpu_for_a_million(usage, messages) if messages else []),
        *(Measured(f"memory of {target}, at most", "MB", most) for target, most in memory.items()),
        *(Measured(f"PSS of {target}, at most", "MB", most) for target, most in pss.items()),
        *(Measured(f"GC pauses of {target}, all", "s", each) for target, each in paused_s.items() if each),
        *([Measured("network, a million messages", "MB", sent_mb)] if sent_mb else []),
    ]


def _cpu_for_a_million(usage: Usage, messages: int) -> list[Measured]:
    cpu_s = {target: spent_s * 1e6 / messages for target, spent_s in usage.cpu_s().items() if spent_s > 0}
    every = {"all": sum(cpu_s.values()), **cpu_s} if cpu_s else {}
    return [Measured(f"CPU of {target}, a million messages", "s", each) for target, each in every.items()]
