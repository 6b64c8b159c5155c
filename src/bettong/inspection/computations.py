"""Where the time goes: how busy each computation is, from the records of partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bettong import metrics
from bettong.identifiers import PartitionId
from bettong.inspection.accounts import AccountLine
from bettong.inspection.overview import Record
from bettong.worker.stopwatch import OWN_WORK, ComputationTimes, times_of


@dataclass(frozen=True, slots=True)
class ComputationLine:
    """The work of a computation, of an output, or of the workers themselves in all partitions of a stage.

    `name`: empty for the workers' own work on frames. `taken`, `given`: messages since the beginning; None for that
    work. `busy_share`: recent share of a core, over all partitions. The rest: the time of one frame there, in the
    slowest partition, us.
    """

    stage: str
    name: str
    taken: int | None
    given: int | None
    busy_share: float
    p50_us: float
    p99_us: float
    p999_us: float
    p9999_us: float
    max_us: float


def computation_lines(
    partitions: Mapping[PartitionId, Record], accounts: Sequence[AccountLine]
) -> list[ComputationLine]:
    """One line each, stages and computations as in `accounts`; a stage's own work before its computations.

    Without those whose times are unknown.
    """
    times: dict[tuple[str, str], list[ComputationTimes]] = {}
    for (stage, _), record in partitions.items():
        for name, each in _times_in(record).items():
            times.setdefault((stage, name), []).append(each)
    counts: dict[tuple[str, str], AccountLine | None] = {}
    for line in accounts:
        counts.setdefault((line.stage, OWN_WORK), None)
        if line.kind != "input":
            counts[line.stage, line.name] = line
    return [_line(key, times[key], line) for key, line in counts.items() if key in times]


def busy_share(record: Record) -> float | None:
    """How busy a partition has kept its worker recently: 1 if the worker did nothing else. None while unknown."""
    times = _times_in(record)
    return sum(each.busy_share for each in times.values()) if times else None


def _times_in(record: Record) -> Mapping[str, ComputationTimes]:
    """Empty where the record has none, or another version of Bettong wrote it."""
    try:
        return times_of(record.get(metrics.TIMES.name) or "{}")
    except ValueError:
        return {}


def _line(
    key: tuple[str, str], times: Sequence[ComputationTimes], counts: AccountLine | None
) -> ComputationLine:
    stage, name = key
    return ComputationLine(
        stage,
        name,
        counts.taken if counts is not None else None,
        counts.given if counts is not None else None,
        round(sum(each.busy_share for each in times), 4),
        max(each.p50_us for each in times),
        max(each.p99_us for each in times),
        max(each.p999_us for each in times),
        max(each.p9999_us for each in times),
        max(each.max_us for each in times),
    )
