"""How metrics go over a run: points of series, each called by whose it is, a colon, and what. Pure."""

from __future__ import annotations

from dataclasses import dataclass

# What follows the colon in the name of a series.
CORES, MEMORY, PSS, LATENCY, LAG = "cores", "memory MB", "PSS MB", "latency ms", "lag records"
TAKEN, NETWORK, GC_PAUSE, FAULT = "messages/s", "network MB/s", "GC pause ms", "fault"
MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """A value of a metric at a time, in seconds since the run began."""

    at_s: float
    metric: str
    value: float
