"""The rows of the tables of `bettong top`: what one inspection says, and what several show. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bettong.cli.queue_texts import service_texts
from bettong.cli.top.texts import lasting
from bettong.inspection.accounts import AccountLine, shown
from bettong.inspection.computations import ComputationLine
from bettong.inspection.overview import PartitionRow, StageSummary
from bettong.inspection.reason_counts import ReasonCounts, ReasonRow
from bettong.inspection.services import RUNNING, ServiceRow
from bettong.inspection.trends import PartitionTrend, Since, StageTrend, stage_trend
from bettong.inspection.watched import Watched
from bettong.metrics import STANDBY


@dataclass(frozen=True, slots=True)
class ServiceLine:
    """A service, the time by which it is shown (Unix s), and what waits in it, in lines."""

    row: ServiceRow
    unix_s: float
    waits: tuple[str, ...] = ()

    @property
    def lasts_s(self) -> float | None:
        """For how long it has been in its state."""
        return None if self.row.since_s is None else max(0.0, self.unix_s - self.row.since_s)


@dataclass(frozen=True, slots=True)
class StageLine:
    """A stage, and what several inspections show of it."""

    row: StageSummary
    trend: StageTrend


@dataclass(frozen=True, slots=True)
class PartitionLine:
    """A partition, and what several inspections show of it. `unix_s`: the time by which it is shown."""

    row: PartitionRow
    trend: PartitionTrend
    unix_s: float

    @property
    def behind_s(self) -> float | None:
        """How far event time is behind the clock."""
        return self.unix_s - self.row.watermark_ns / 1e9 if self.row.watermark_ns else None

    @property
    def snapshot_age(self) -> Since | None:
        """Of its newest one: as who saved it says, else for as long as somebody has looked."""
        saved = self.row.snapshot
        return Since(max(0.0, self.unix_s - saved.saved_s)) if saved is not None else self.trend.snapshot

    @property
    def snapshot(self) -> str:
        """How old its snapshot is; one that has all that was folded is as new as can be."""
        if self.row.snapshot_offset is None:
            return "none yet"
        return "all saved" if self.row.snapshot_offset >= self.row.offset else lasting(self.snapshot_age)


@dataclass(frozen=True, slots=True)
class OrderedAccount:
    """An account, and `number`: which in the order in which they pass."""

    line: AccountLine
    number: int


def is_well(row: ServiceRow) -> bool:
    """Whether a service does what it is for."""
    return row.state in {RUNNING, STANDBY}


def service_lines(found: Watched, unix_s: float) -> list[ServiceLine]:
    """As of the newest inspection."""
    return [
        ServiceLine(row, unix_s, tuple(service_texts(found.found.queues, row.name)))
        for row in found.found.services
    ]


def stage_lines(found: Watched) -> list[StageLine]:
    """Of the newest inspection that has numbers."""
    if found.numbers is None:
        return []
    lines = []
    for stage in found.numbers.stages:
        own = (found.trends.of(row.id) for row in found.numbers.partitions if row.stage == stage.stage)
        lines.append(StageLine(stage, stage_trend(own)))
    return lines


def partition_lines(found: Watched, unix_s: float) -> list[PartitionLine]:
    """Of the newest inspection that has numbers."""
    if found.numbers is None:
        return []
    return [PartitionLine(row, found.trends.of(row.id), unix_s) for row in found.numbers.partitions]


def busy_lines(found: Watched) -> list[ComputationLine]:
    """Of the newest inspection that has numbers."""
    return list(found.numbers.computations) if found.numbers is not None else []


def ordered_accounts(found: Watched) -> list[OrderedAccount]:
    """Of the newest inspection that has numbers."""
    return [OrderedAccount(line, number) for number, line in enumerate(shown(found.accounts))]


def reason_lines(found: ReasonCounts | None) -> list[ReasonRow]:
    """One a reason."""
    return [] if found is None else list(found.rows.values())


@dataclass(frozen=True, slots=True)
class Picture:
    """All that is shown. `found`: None before there was an answer. `reasons`: None where nobody knows Kafka.

    `fault`: why nothing can be asked now. `reasons_fault`: why dead letters cannot be read.
    """

    found: Watched | None = None
    reasons: ReasonCounts | None = None
    fault: str = ""
    reasons_fault: str = ""
