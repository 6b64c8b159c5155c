"""A run's measurements, of what was read and sampled while it ran."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from hdrh.histogram import HdrHistogram

from bettong.chaos.growth import Sample
from bettong.chaos.nemeses import Injected
from bettong.lab.gc_pauses import GcPause
from bettong.lab.reading import ResultReading
from bettong.lab.sampling import FAULT, GC_PAUSE, LAG, LATENCY, SeriesPoint, Usage
from bettong.lab.spec import LoadStep
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
    for number, step in enumerate(steps):
        for sink, reading in readings.items():
            histogram: HdrHistogram = reading.lateness.histograms[number]
            if not histogram.get_total_count():
                continue
            encoded = histogram.encode().decode()
            for each in PERCENTILES:
                name = f"{sink} at {step.messages_per_s:,.0f}/s, " + ("max" if each == 100 else f"p{each:g}")
                value_ms = histogram.get_value_at_percentile(each) / _MS_NS
                found.append(Measured(name, "ms", value_ms, encoded if each == PERCENTILES[0] else ""))
    return found


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


def usages(usage: Usage, gc_pauses: Sequence[GcPause], messages: int) -> list[Measured]:
    """CPU, memory, pauses of collectors and bytes sent; what is 0 is no metric, for nothing can be compared with it."""
    cpu = [
        Measured(f"CPU of {target}, a million messages", "s", spent_s * 1e6 / messages)
        for target, spent_s in usage.cpu_s.items()
        if spent_s > 0
    ]
    memory = [
        Measured(f"memory of {target}, at most", "MB", most) for target, most in usage.memory_mb.items()
    ]
    paused_s: dict[str, float] = defaultdict(float)
    for each in gc_pauses:
        paused_s[each.target] += each.lasting_ms / 1e3
    pauses = [Measured(f"GC pauses of {target}, all", "s", each) for target, each in paused_s.items()]
    sent = Measured("network, a million messages", "MB", usage.network_mb * 1e6 / messages)
    return [
        *([Measured("CPU of all, a million messages", "s", sum(each.value for each in cpu))] if cpu else []),
        *cpu,
        *memory,
        *pauses,
        *([sent] if sent.value > 0 else []),
    ]
