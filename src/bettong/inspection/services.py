"""The state of each service: pure, from its live record and, for a suite on this machine, its process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bettong import metrics
from bettong.inspection.overview import Record, is_silent, number_of, service_of, unheard_s
from bettong.services import CONSOLE, SERVICES

RUNNING = "running"
DOWN = "down"
SILENT = "silent"
GIVEN_UP = "given up"  # down, and not started again
_STARTING = "starting"
UNKNOWN = "unknown"
_REDIS_AWAY = "Redis, which has its state, is away"
_WITHOUT_METRICS = ("kafka", "redis", CONSOLE)  # known only to run or not


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """The facts about a process on this machine.

    `fault`: how it ended the last time, with its last log line. `final_status`: the exit code, where it is not
    started again.
    """

    pid: int
    started_s: float
    restarts: int
    runs: bool
    log: str
    fault: str = ""
    final_status: int | None = None


@dataclass(frozen=True, slots=True)
class ServiceRow:
    """One service. `since_s` (Unix seconds) is None while unknown.

    `unheard_s`: the age of its record, where that is longer than usual, and too short for `SILENT`.
    """

    name: str
    state: str
    since_s: float | None = None
    detail: str = ""
    process: ProcessFacts | None = None
    unheard_s: float | None = None


def local_rows(
    live: Mapping[str, Record], processes: Mapping[str, ProcessFacts], silent: Mapping[str, str] | None = None
) -> list[ServiceRow]:
    """A row for each process of a suite; its record counts only while it runs.

    `silent`: which of kafka and redis do not answer, and why.
    """
    away = silent or {}
    return [_local_row(name, live.get(name), facts, away) for name, facts in sorted(processes.items())]


def remote_rows(live: Mapping[str, Record], silent: Mapping[str, str] | None = None) -> list[ServiceRow]:
    """A row for each instance that writes metrics, and one for each service without any.

    `silent`: as for `local_rows`; all services are unknown where Redis does not answer.
    """
    if "redis" in (silent or {}):
        return [ServiceRow(name, UNKNOWN, detail=_REDIS_AWAY) for name in SERVICES]
    rows = [_reported_row(name, record) for name, record in sorted(live.items())]
    present = {service_of(record) for record in live.values()}
    missing = [
        ServiceRow(name, DOWN, detail="no record in Redis: none runs, or none reaches Redis")
        for name in SERVICES
        if name not in present
    ]
    return rows + missing


def _local_row(
    name: str, record: Record | None, facts: ProcessFacts, silent: Mapping[str, str]
) -> ServiceRow:
    if facts.final_status is not None:
        remedy = "fix it, then bettong down and up"
        return ServiceRow(name, GIVEN_UP, detail=f"{_ending(facts)}; {remedy}", process=facts)
    if not facts.runs:
        return ServiceRow(name, DOWN, detail=_ending(facts), process=facts)
    if name in silent:
        return ServiceRow(name, SILENT, facts.started_s, silent[name], facts)
    if name in _WITHOUT_METRICS:
        return ServiceRow(name, RUNNING, facts.started_s, process=facts)
    if record is None and "redis" in silent:
        return ServiceRow(name, UNKNOWN, detail=f"it runs; {_REDIS_AWAY}", process=facts)
    own_id = str(facts.pid)
    if record is None or record.get(metrics.PID, own_id) != own_id:  # of the process before this one
        again = f"again, after it {_ending(facts)}" if facts.fault else ""
        return ServiceRow(name, _STARTING, facts.started_s, again, facts)
    return replace(_reported_row(name, record), process=facts)


def _ending(facts: ProcessFacts) -> str:
    if not facts.fault:
        return f"see {facts.log}"
    end = "stopped for good" if facts.final_status is not None else "died"
    return f"{end}: {facts.fault}; see {facts.log}"


def _reported_row(name: str, record: Record) -> ServiceRow:
    since_s = number_of(record, metrics.SINCE.name)
    state, detail = record.get(metrics.STATE.name) or UNKNOWN, record.get(metrics.DETAIL.name, "")
    if is_silent(record):
        last = f"{state}, {detail}" if detail else state
        seconds = number_of(record, metrics.AGE_S)
        detail = (
            f"has reported nothing for {seconds:.0f} s: dead, disconnected or stuck; its last report: {last}"
        )
        return ServiceRow(name, SILENT, since_s, detail)
    return ServiceRow(name, state, since_s, detail, unheard_s=unheard_s(record))
