"""Where the time goes: how long each computation is at work, as the records of partitions tell it."""

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
    """What a computation, an output, or the workers themselves do in all partitions of a stage.

    `name`: empty for the workers' own work on frames. `taken`, `given`: messages since the beginning; None for that
    work. `busy_share`: of a core, over all partitions, of late. The rest is what one frame takes there, of the slowest
    partition, us.
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

    Without those whose times nobody knows.
    """
    times: dict[tuple[str, str], list[ComputationTimes]] = {}
    for (stage, _), record in partitions.items():
        for name, each in _times_in(record).items():
            times.setdefault((stage, name), []).append(each)
    counts = {(line.stage, line.name): line for line in accounts if line.kind != "input"}
    stages = dict.fromkeys(line.stage for line in accounts)
    wanted = [(stage, name) for stage in stages for name in (OWN_WORK, *_names(stage, accounts))]
    return [_line(key, times[key], counts.get(key)) for key in wanted if key in times]


def _names(stage: str, accounts: Sequence[AccountLine]) -> list[str]:
    return [line.name for line in accounts if line.stage == stage and line.kind != "input"]


def _times_in(record: Record) -> Mapping[str, ComputationTimes]:
    """None where it has none, or what another version of Bettong wrote."""
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
