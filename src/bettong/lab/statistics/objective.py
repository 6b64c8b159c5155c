"""Whether latencies met an objective. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from bettong.lab.numbers import shown
from bettong.lab.spec import Objective

_PERCENTILES = {"p50_ms": "p50", "p99_ms": "p99", "p999_ms": "p99.9"}


def missed(
    objective: Objective, latencies_ms: Mapping[str, Sequence[float]], steps: Sequence[str]
) -> list[str]:
    """A line for each metric, named `<sink> <step>, <percentile>`, whose median over the repeats is too high.

    And a line for each percentile of the objective that was not measured in a step, which misses it, too. `steps`: the
    names of those that have messages; if they are not known, any step is enough.
    """
    bounds = {_PERCENTILES[name]: bound for name, bound in objective.model_dump(exclude_none=True).items()}
    found = [
        f"{f'{step}, {percentile}' if step else percentile}: no latency was measured, the objective is {bound:,.10g} ms"
        for step in steps or [""]
        for percentile, bound in bounds.items()
        if not any(name.endswith(f"{step}, {percentile}") for name in latencies_ms)
    ]
    for name, values in latencies_ms.items():
        bound = bounds.get(name.rpartition(", ")[2])
        if bound is not None and median(values) > bound:
            found.append(f"{name} is {shown(median(values))} ms, the objective {bound:,.10g} ms")
    return found
