"""A run's measurements, of what was read and sampled while it ran."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from hdrh.histogram import HdrHistogram

from bettong.chaos.growth import Sample
from bettong.chaos.nemeses import Injected
from bettong.lab.reading import ResultReading
from bettong.lab.series import FAULT, GC_PAUSE, LAG, LATENCY, SeriesPoint
from bettong.lab.spec import LoadStep
from bettong.lab.target.gc_pauses import GcPause
from bettong.lab.target.pauses import AssignmentChange, longest_pauses
from bettong.lab.target.sampling import Usage
from bettong.services import PROCESSOR

PERCENTILES = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
_MS_NS = 1e6


@dataclass(frozen=True, slots=True)
class Measured:
    """A value of a metric in one repeat. `histogram`: of all latencies, in ns; HDR's compressed encoding, in base64."""

    metric: str
    unit: str
    value: float
    histogram: str = ""


def latencies(steps: Sequence[LoadStep], readings: Mapping[str, ResultReading]) -> list[Measured]:
    """Of each step and sink, at each percentile."""
    found = []
    for number, of_step in enumerate(_named(steps)):
        for sink, reading in readings.items():
            histogram: HdrHistogram = reading.lateness.histograms[number]
            if not histogram.get_total_count():
                continue
            encoded = histogram.encode().decode()
            for each in PERCENTILES:
                name = f"{sink} {of_step}, " + ("max" if each == 100 else f"p{each:g}")
                value_ms = histogram.get_value_at_percentile(each) / _MS_NS
                found.append(Measured(name, "ms", value_ms, encoded if each == PERCENTILES[0] else ""))
    return found


def _named(steps: Sequence[LoadStep]) -> list[str]:
    """What metrics call each step: by its rate, and by its number, too, where another has that rate."""
    rates = [f"at {step.messages_per_s:,.0f}/s" for step in steps]
    return [
        f"in step {number} {rate}" if rates.count(rate) > 1 else rate for number, rate in enumerate(rates, 1)
    ]


def course(
    readings: Mapping[str, ResultReading],
    lag: Sequence[Sample],
    gc_pauses: Sequence[GcPause],
    injected: Sequence[Injected],
    begin_s: float,
) -> Iterator[SeriesPoint]:
    """The median latency of each second, the lag, pauses of collectors, faults and how long they lasted."""
    for sink, reading in readings.items():
        for second, lates_ms in sorted(reading.lateness.lates_ms.items()):
            yield SeriesPoint(second, f"{sink}: {LATENCY}", median(lates_ms))
    for sample in lag:
        yield SeriesPoint(sample.at_s - begin_s, f"{PROCESSOR.name}: {LAG}", sample.value)
    for pause in gc_pauses:
        yield SeriesPoint(pause.at_s - begin_s, f"{pause.target}: {GC_PAUSE}", pause.lasting_ms)
    for each in injected:
        lasting_s = each.ended_s - each.begun_s if each.fault.for_s else 0.0
        yield SeriesPoint(each.begun_s - begin_s, f"{each.fault.label}: {FAULT}", lasting_s)


def partition_pauses(
    readings: Mapping[str, ResultReading], changes: Sequence[AssignmentChange], since_s: float
) -> list[Measured]:
    """The longest pause in the results of any partition that began from `since_s`, Unix time, on.

    Of all, and of those around changes of the assignment, by why they were made. A partition without messages pauses
    by itself: they say something of a load that has results of each partition all the time.
    """
    found = []
    for sink, reading in readings.items():
        for why, lasting_ms in longest_pauses(reading.pauses.since(since_s), changes).items():
            name = f"{sink}: longest pause of a partition" + (f", {why}" if why else "")
            found.append(Measured(name, "ms", lasting_ms))
    return found


def cpu_shares(usage: Usage, since_s: float, until_s: float) -> list[Measured]:
    """CPU of all processes, and of each kind, on average over a time of the run."""
    percent = {
        target: 100 * spent_s / (until_s - since_s)
        for target, spent_s in usage.cpu_s(since_s, until_s).items()
        if spent_s > 0
    }
    shares = {"all": sum(percent.values()), **percent} if percent else {}
    return [Measured(f"CPU of {target}", "% of a core", each) for target, each in shares.items()]


def usages(usage: Usage, gc_pauses: Sequence[GcPause], messages: int) -> list[Measured]:
    """CPU, memory, pauses of collectors and bytes sent; what is 0 is no metric, for nothing can be compared with it."""
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
        *(Measured(f"GC pauses of {target}, all", "s", each) for target, each in paused_s.items()),
        *([Measured("network, a million messages", "MB", sent_mb)] if sent_mb else []),
    ]


def _cpu_for_a_million(usage: Usage, messages: int) -> list[Measured]:
    cpu_s = {target: spent_s * 1e6 / messages for target, spent_s in usage.cpu_s().items() if spent_s > 0}
    every = {"all": sum(cpu_s.values()), **cpu_s} if cpu_s else {}
    return [Measured(f"CPU of {target}, a million messages", "s", each) for target, each in every.items()]
