"""The metrics that are observed over a run, and whether they grow more than the spec allows."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bettong.chaos.growth import JAVA_WARM_UP, WARM_UP, Sample, growth
from bettong.chaos.recovery import Arrival
from bettong.chaos.report import GrowthReport
from bettong.chaos.spec import OtherProcess, Spec

# Growth is relative to the median, but at least to these.
LATENCY_S_LEAST = 0.1
MEMORY_MB_LEAST = 64.0
LAG_RECORDS_LEAST = 100.0
JAVA = frozenset[str]({OtherProcess.JVM, OtherProcess.EXECUTOR, OtherProcess.KAFKA})


@dataclass(frozen=True, slots=True)
class Followed:
    """Observations of a run: newest results as they came, memory of the largest process of a kind, lag. Unix times."""

    arrivals: Sequence[Arrival]
    memory: Mapping[str, Sequence[Sample]]
    lag: Sequence[Sample]


def grown(spec: Spec, followed: Followed, start_s: float) -> list[GrowthReport]:
    """The growth of each metric with enough samples."""
    bounds = spec.invariants.growth_max
    latency = [Sample(each.at_s, each.at_s - each.due_s) for each in followed.arrivals]
    metrics = [
        ("latency", "s", latency, LATENCY_S_LEAST, bounds.latency, WARM_UP),
        ("lag", "records", followed.lag, LAG_RECORDS_LEAST, bounds.lag, WARM_UP),
        *(
            (
                f"memory of {target}",
                "MB",
                samples,
                MEMORY_MB_LEAST,
                bounds.memory,
                JAVA_WARM_UP if target in JAVA else WARM_UP,
            )
            for target, samples in sorted(followed.memory.items())
        ),
    ]
    found = []
    for metric, unit, samples, least, bound, warm_up in metrics:
        since = [Sample(each.at_s - start_s, each.value) for each in samples]
        left_out = warm_up if bounds.after is None else bounds.after
        value_of = min if unit == "MB" else statistics.median
        trend = growth(since, spec.duration_s, least=least, warm_up=left_out, value_of=value_of)
        if trend is not None:
            found.append(
                GrowthReport(
                    metric=metric,
                    unit=unit,
                    median=round(trend.median, 4),
                    share=round(trend.share, 4),
                    low=round(trend.low, 4),
                    high=round(trend.high, 4),
                    bound=bound,
                    points=[round(each, 4) for each in trend.points],
                )
            )
    return found
