"""The state of each service: pure, from its live record and, on this machine, its process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bettong import metrics
from bettong.cli.overview import SERVICES, Record, service_of

RUNNING = "running"
DOWN = "down"
_STARTING = "starting"
_WITHOUT_FIGURES = ("kafka", "redis")  # they run, or they do not


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """What is known of a process on this machine."""

    pid: int
    started_s: float
    restarts: int
    runs: bool
    log: str


@dataclass(frozen=True, slots=True)
class ServiceRow:
    """One service. `since_s` (Unix seconds) is None when nobody knows."""

    name: str
    state: str
    since_s: float | None = None
    detail: str = ""
    process: ProcessFacts | None = None


def local_rows(live: Mapping[str, Record], processes: Mapping[str, ProcessFacts]) -> list[ServiceRow]:
    """A row for each process of a suite; what it says of itself counts only while it runs."""
    return [_local_row(name, live.get(name), facts) for name, facts in sorted(processes.items())]


def remote_rows(live: Mapping[str, Record]) -> list[ServiceRow]:
    """A row for each instance that writes figures, and one for each service of which none does."""
    rows = [_told_row(name, record) for name, record in sorted(live.items())]
    present = {service_of(record) for record in live.values()}
    missing = [ServiceRow(name, DOWN, detail="writes no figures") for name in SERVICES if name not in present]
    return rows + missing


def _local_row(name: str, record: Record | None, facts: ProcessFacts) -> ServiceRow:
    if not facts.runs:
        return ServiceRow(name, DOWN, detail=f"see {facts.log}", process=facts)
    told = _told_row(name, record) if record is not None else None
    if told is None or (told.since_s or 0.0) < facts.started_s - 1.0:  # of the process before this one
        state = RUNNING if name in _WITHOUT_FIGURES else _STARTING
        return ServiceRow(name, state, facts.started_s, process=facts)
    return ServiceRow(name, told.state, told.since_s, told.detail, facts)


def _told_row(name: str, record: Record) -> ServiceRow:
    since = record.get(metrics.SINCE.name)
    return ServiceRow(
        name,
        record.get(metrics.STATE.name) or "unknown",
        float(since) if since else None,
        record.get(metrics.DETAIL.name, ""),
    )
