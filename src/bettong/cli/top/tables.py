"""The tables of `bettong top`: services, stages, partitions, dead letters, changes. What each column says. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic

from bettong.cli.status import duration
from bettong.cli.top.columns import Column, Order, Row
from bettong.cli.top.lines import PartitionLine, ServiceLine, StageLine
from bettong.cli.top.texts import UNKNOWN, count, lasting, length, milliseconds, printable, seconds
from bettong.inspection.changes import Change
from bettong.inspection.overview import PartitionRow, stands_still
from bettong.inspection.reason_counts import ReasonRow
from bettong.inspection.services import RUNNING, ServiceRow
from bettong.metrics import STANDBY


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """`identity`: of a row, whatever it says now. `detail`: all there is of it, in lines. `empty`: instead of rows."""

    columns: Sequence[Column[Row]]
    identity: Callable[[Row], str]
    detail: Callable[[Row], list[str]]
    order: Order
    empty: str


def clock(unix_s: float) -> str:
    """A time of the day, in UTC."""
    return datetime.fromtimestamp(unix_s, UTC).strftime("%H:%M:%S")


def _moment(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%d %b %H:%M:%S")


def is_well(row: ServiceRow) -> bool:
    """Whether a service does what it is for."""
    return row.state in {RUNNING, STANDBY}


def _service_detail(line: ServiceLine) -> list[str]:
    row = line.row
    since = f" since {_moment(row.since_s)} UTC" if row.since_s is not None else ""
    log = f"its log: {row.process.log}" if row.process is not None and row.process.log else ""
    return [f"{row.name}: {row.state}{since}", *([row.detail] if row.detail else []), *([log] if log else [])]


SERVICES: Table[ServiceLine] = Table(
    (
        Column(
            "service", lambda line: printable(line.row.name), lambda line: line.row.name, first=0, right=False
        ),
        Column(
            "state",
            lambda line: printable(line.row.state),
            lambda line: line.row.state,
            first=0,
            right=False,
            is_bad=lambda line: not is_well(line.row),
        ),
        Column(
            "for",
            lambda line: UNKNOWN if line.lasts_s is None else duration(line.lasts_s),
            lambda line: line.lasts_s,
            first=2,
        ),
        Column(
            "restarts",
            lambda line: UNKNOWN if line.row.process is None else count(line.row.process.restarts),
            lambda line: None if line.row.process is None else line.row.process.restarts,
            first=3,
            is_bad=lambda line: line.row.process is not None and line.row.process.restarts > 0,
        ),
        Column(
            "process",
            lambda line: UNKNOWN if line.row.process is None else str(line.row.process.pid),
            lambda line: None if line.row.process is None else line.row.process.pid,
            first=4,
        ),
        Column(
            "why", lambda line: printable(line.row.detail), lambda line: line.row.detail, first=1, right=False
        ),
    ),
    lambda line: line.row.name,
    _service_detail,
    Order(),
    "no service is known yet",
)


def _stage_detail(line: StageLine) -> list[str]:
    row = line.row
    counts = (
        f"{row.stage}: {row.messages:,} messages folded, {row.results:,} results, {row.dead_letters:,} dead letters,"
        f" {row.skipped:,} messages skipped"
    )
    late = (
        f"{row.late:,} messages late, {row.partly_late:,} partly late; {row.skipped_frames:,} frames skipped: seen"
        " before, or behind one that was lost"
    )
    return [
        counts,
        late,
        "lag: of the partition that waits longest; p50, p99: of the slowest, until output is durable",
    ]


STAGES: Table[StageLine] = Table(
    (
        Column(
            "stage", lambda line: printable(line.row.stage), lambda line: line.row.stage, first=0, right=False
        ),
        Column(
            "folded",
            lambda line: count(line.messages_per_s),
            lambda line: line.messages_per_s,
            "messages/s",
            first=1,
        ),
        Column("lag", lambda line: count(line.row.lag), lambda line: line.row.lag, "records", first=1),
        Column("lag", lambda line: seconds(line.lag), lambda line: length(line.lag), "s", first=1),
        Column(
            "p50", lambda line: milliseconds(line.row.p50_ms), lambda line: line.row.p50_ms, "ms", first=2
        ),
        Column(
            "p99", lambda line: milliseconds(line.row.p99_ms), lambda line: line.row.p99_ms, "ms", first=1
        ),
        Column(
            "late",
            lambda line: count(line.row.late),
            lambda line: line.row.late,
            "messages",
            first=2,
            is_bad=lambda line: line.row.late > 0,
        ),
        Column(
            "dead",
            lambda line: count(line.row.dead_letters),
            lambda line: line.row.dead_letters,
            "letters",
            first=1,
            is_bad=lambda line: line.row.dead_letters > 0,
        ),
        Column("keys", lambda line: count(line.row.keys), lambda line: line.row.keys, "keys", first=4),
        Column(
            "results",
            lambda line: count(line.row.results),
            lambda line: line.row.results,
            "messages",
            first=5,
        ),
        Column(
            "messages",
            lambda line: count(line.row.messages),
            lambda line: line.row.messages,
            "messages",
            first=5,
        ),
        Column(
            "partitions", lambda line: count(line.row.partitions), lambda line: line.row.partitions, first=6
        ),
    ),
    lambda line: line.row.stage,
    _stage_detail,
    Order(),
    "no stage has said anything yet",
)


def _stalled(row: PartitionRow) -> str:
    if not stands_still(row):
        return ""
    nobody = row.stalled_s == math.inf
    return "nobody folds it" if nobody else f"stands still for {duration(row.stalled_s or 0.0)}"


def _partition_detail(line: PartitionLine) -> list[str]:
    row, trend = line.row, line.trend
    holder = f"held by slot {row.slot}" if row.slot is not None else "held by no slot"
    state = next(
        filter(None, (row.fault and f"held up: {row.fault}", row.gap and f"waits: {row.gap}", _stalled(row))),
        "",
    )
    lines = [f"{row.id}, {holder}{f'; {state}' if state else ''}"]
    if row.watermark_held_by:
        behind = "unknown" if line.behind_s is None else f"{duration(line.behind_s)} behind the clock"
        stands = f", unmoved for {lasting(trend.watermark)}" if trend.watermark is not None else ""
        lines.append(
            f"watermark {behind}{stands}; held back by {row.watermark_held_by} for {lasting(trend.held)}"
        )
    lines.append(
        f"{row.keys:,} keys, {row.messages:,} messages, {row.results:,} results, {row.late:,} late,"
        f" {row.partly_late:,} partly late, {row.dead_letters:,} dead letters, {row.skipped:,} skipped,"
        f" {row.skipped_frames:,} frames skipped"
    )
    return [*lines, _saved(line)]


def _saved(line: PartitionLine) -> str:
    saved = line.row.snapshot_offset
    if saved is None:
        return "no snapshot yet"
    if saved >= line.row.offset:
        return f"snapshot at offset {saved:,}: all that was folded"
    age = lasting(line.trend.snapshot)
    return f"snapshot at offset {saved:,}, {age} old: {line.row.offset - saved:,} records were folded since"


PARTITIONS: Table[PartitionLine] = Table(
    (
        Column(
            "partition",
            lambda line: printable(str(line.row.id)),
            lambda line: f"{line.row.stage}\n{line.row.partition:09}",
            first=0,
            right=False,
            is_bad=lambda line: stands_still(line.row) or bool(line.row.fault or line.row.gap),
        ),
        Column(
            "owner",
            lambda line: UNKNOWN if line.row.slot is None else f"slot {line.row.slot}",
            lambda line: line.row.slot,
            first=2,
            right=False,
        ),
        Column("offset", lambda line: count(line.row.offset), lambda line: line.row.offset, "next", first=2),
        Column("lag", lambda line: count(line.row.lag), lambda line: line.row.lag, "records", first=1),
        Column(
            "lag",
            lambda line: seconds(line.trend.lag),
            lambda line: length(line.trend.lag),
            "s",
            first=1,
            is_bad=lambda line: stands_still(line.row),
        ),
        Column(
            "folded",
            lambda line: count(line.trend.messages_per_s),
            lambda line: line.trend.messages_per_s,
            "messages/s",
            first=1,
        ),
        Column(
            "p99", lambda line: milliseconds(line.row.p99_ms), lambda line: line.row.p99_ms, "ms", first=3
        ),
        Column("keys", lambda line: count(line.row.keys), lambda line: line.row.keys, "keys", first=4),
        Column(
            "snapshot",
            lambda line: line.snapshot,
            lambda line: length(line.trend.snapshot),
            "age",
            first=3,
        ),
        Column(
            "event time",
            lambda line: UNKNOWN if line.behind_s is None else duration(line.behind_s),
            lambda line: line.behind_s,
            "behind",
            first=5,
        ),
        Column(
            "held back by",
            lambda line: printable(line.row.watermark_held_by) or UNKNOWN,
            lambda line: line.row.watermark_held_by or None,
            "origin",
            first=6,
            right=False,
        ),
        Column(
            "since",
            lambda line: lasting(line.trend.held),
            lambda line: length(line.trend.held),
            "ago",
            first=6,
        ),
        Column(
            "p50", lambda line: milliseconds(line.row.p50_ms), lambda line: line.row.p50_ms, "ms", first=7
        ),
        Column("late", lambda line: count(line.row.late), lambda line: line.row.late, "messages", first=7),
        Column(
            "dead",
            lambda line: count(line.row.dead_letters),
            lambda line: line.row.dead_letters,
            "letters",
            first=7,
            is_bad=lambda line: line.row.dead_letters > 0,
        ),
    ),
    lambda line: str(line.row.id),
    _partition_detail,
    Order(),
    "no partition has said anything yet",
)


def _reason_detail(row: ReasonRow) -> list[str]:
    last = f"the last one: {row.last_id}, of {row.last_origin}, taken in {_moment(row.last_ns / 1e9)} UTC"
    return [
        f"{row.key.computation}: {row.key.reason}",
        last,
        f"bettong dead-letters show APP.py {row.last_id}",
    ]


REASONS: Table[ReasonRow] = Table(
    (
        Column(
            "computation",
            lambda row: printable(row.key.computation),
            lambda row: row.key.computation,
            first=0,
            right=False,
        ),
        Column("count", lambda row: count(row.count), lambda row: row.count, "messages", first=0),
        Column("last", lambda row: clock(row.last_ns / 1e9), lambda row: row.last_ns, "UTC", first=0),
        Column(
            "reason", lambda row: printable(row.key.reason), lambda row: row.key.reason, first=0, right=False
        ),
        Column(
            "last origin",
            lambda row: printable(row.last_origin),
            lambda row: row.last_origin,
            first=2,
            right=False,
        ),
    ),
    lambda row: f"{row.key.computation}\n{row.key.reason}",
    _reason_detail,
    Order(1, descending=True),
    "no dead letters",
)


def _change_detail(change: Change) -> list[str]:
    return [f"{_moment(change.at_s)} UTC, {change.what}", change.text]


CHANGES: Table[Change] = Table(
    (
        Column("time", lambda change: clock(change.at_s), lambda change: change.at_s, "UTC", first=0),
        Column("of", lambda change: printable(change.what), lambda change: change.what, first=0, right=False),
        Column(
            "event", lambda change: printable(change.text), lambda change: change.text, first=0, right=False
        ),
    ),
    lambda change: f"{change.at_s} {change.what} {change.text}",
    _change_detail,
    Order(0, descending=True),
    "nothing has changed",
)
