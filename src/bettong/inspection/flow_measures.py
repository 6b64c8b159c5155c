"""Flow: messages a second at each point of a stage, what became of them, and back-pressure. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bettong import metrics
from bettong.inspection.accounts import AccountLine, shown
from bettong.inspection.overview import PartitionRow, Record, number_of
from bettong.inspection.trends import rate


@dataclass(frozen=True, slots=True)
class FlowMeasures:
    """An input, a computation or an output of a stage: see `accounts`. Rates are of the last seconds, None while
    unknown; counts are those of its account.
    """

    stage: str
    kind: str
    name: str
    taken_per_s: float | None
    given_per_s: float | None
    late: int
    partly_late: int
    dead_letters: int
    skipped: int


def flow_measures(
    accounts: Iterable[AccountLine], earlier: Iterable[AccountLine], passed_s: float
) -> tuple[FlowMeasures, ...]:
    """One for each account. `earlier`: the accounts of `passed_s` before; empty if there are none."""
    old = {(line.stage, line.kind, line.name): line for line in earlier}
    return tuple(
        _flow(line, old.get((line.stage, line.kind, line.name)), passed_s) for line in shown([*accounts])
    )


def _flow(line: AccountLine, old: AccountLine | None, passed_s: float) -> FlowMeasures:
    def per_s(count: int, before: int | None) -> float | None:
        return None if before is None else rate([(0.0, before), (passed_s, count)])

    return FlowMeasures(
        line.stage,
        line.kind,
        line.name,
        per_s(line.taken, old.taken if old is not None else None),
        per_s(line.given, old.given if old is not None else None),
        line.late,
        line.partly_late,
        line.dead_letters,
        line.skipped,
    )


def held_share(
    rows: Iterable[PartitionRow], earlier: Iterable[PartitionRow], passed_s: float
) -> float | None:
    """The share of the time, 0 to 1, in which a slot waited for the log to take the output of these partitions.

    Of the slot that waited most; None if none reports it.
    """
    old = {row.id: row.held_s for row in earlier}
    by_slot: dict[object, float] = {}
    for row in rows:
        share = _share(old.get(row.id), row.held_s, passed_s)
        if share is not None:
            slot = row.id if row.slot is None else row.slot
            by_slot[slot] = by_slot.get(slot, 0.0) + share
    return min(1.0, max(by_slot.values())) if by_slot else None


def services_held_share(
    records: Mapping[str, Record], earlier: Mapping[str, Record], passed_s: float, name: str = ""
) -> float | None:
    """The share of the time, 0 to 1, in which services held up their producers: see `metrics.HELD`. `name`: of a source
    or sink, "" for all of a service.

    Of the instance that did so for longest; None if none reports it.
    """
    metric = f"{metrics.HELD.name}/{name}" if name else metrics.HELD.name
    shares = [
        share
        for instance, record in records.items()
        if (
            share := _share(number_of(earlier.get(instance, {}), metric), number_of(record, metric), passed_s)
        )
        is not None
    ]
    return max(shares, default=None)


def _share(old_s: float | None, new_s: float | None, passed_s: float) -> float | None:
    """None where one is missing, or the counter has restarted."""
    if old_s is None or new_s is None or new_s < old_s or passed_s <= 0:
        return None
    return min(1.0, (new_s - old_s) / passed_s)
