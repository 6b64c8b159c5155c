"""Time series of a run: points of metrics that are named `<process or sink>: <what>`. Pure."""

from __future__ import annotations

from dataclasses import dataclass

# The second part of the name of a series, after the colon.
CORES, MEMORY, PSS, LATENCY, LAG = "cores", "memory MB", "PSS MB", "latency ms", "lag records"
TAKEN, NETWORK, GC_PAUSE, FAULT = "messages/s", "network MB/s", "GC pause ms", "fault"
PART = "part ms"
MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """A value of a metric at a time, in seconds since the run began."""

    at_s: float
    metric: str
    value: float
