"""The rows of the tables of `bettong top`: the newest inspection, and trends over several. Pure."""

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
    """A service, the time at which it is shown (Unix s), and lines about its queues."""

    row: ServiceRow
    unix_s: float
    waits: tuple[str, ...] = ()

    @property
    def lasts_s(self) -> float | None:
        """For how long it has been in its state."""
        return None if self.row.since_s is None else max(0.0, self.unix_s - self.row.since_s)


@dataclass(frozen=True, slots=True)
class StageLine:
    """A stage, and its trends over several inspections."""

    row: StageSummary
    trend: StageTrend


@dataclass(frozen=True, slots=True)
class PartitionLine:
    """A partition, and its trends over several inspections. `unix_s`: the time at which it is shown."""

    row: PartitionRow
    trend: PartitionTrend
    unix_s: float

    @property
    def behind_s(self) -> float | None:
        """How far event time is behind the clock."""
        return self.unix_s - self.row.watermark_ns / 1e9 if self.row.watermark_ns else None

    @property
    def snapshot_age(self) -> Since | None:
        """Of its newest snapshot: from the saved time, else at least for as long as it was observed."""
        saved = self.row.snapshot
        return Since(max(0.0, self.unix_s - saved.saved_s)) if saved is not None else self.trend.snapshot

    @property
    def snapshot(self) -> str:
        """How old its snapshot is, or that it has everything that was folded."""
        if self.row.snapshot_offset is None:
            return "none yet"
        return "all saved" if self.row.snapshot_offset >= self.row.offset else lasting(self.snapshot_age)


@dataclass(frozen=True, slots=True)
class OrderedAccount:
    """An account, and its `number` in the order in which messages pass."""

    line: AccountLine
    number: int


def is_well(row: ServiceRow) -> bool:
    """Whether a service runs or stands by."""
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
    """A row for each reason."""
    return [] if found is None else list(found.rows.values())


@dataclass(frozen=True, slots=True)
class Picture:
    """All that is shown. `found`: None before the first answer. `reasons`: None where Kafka's address is unknown.

    `fault`: why the deployment cannot be read now. `reasons_fault`: why dead letters cannot.
    """

    found: Watched | None = None
    reasons: ReasonCounts | None = None
    fault: str = ""
    reasons_fault: str = ""
