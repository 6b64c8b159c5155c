"""The tables of `bettong top` and their columns: services, stages, partitions, dead letters, changes. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic

from bettong.cli.printable import printable
from bettong.cli.status_texts import duration
from bettong.cli.top.column_kinds import digits, duration_text, named, number, prose, span
from bettong.cli.top.columns import Column, Row, SortOrder
from bettong.cli.top.lines import PartitionLine, ServiceLine, StageLine, is_well
from bettong.cli.top.texts import lasting, length, milliseconds, seconds
from bettong.inspection.changes import Change
from bettong.inspection.overview import PartitionRow, StageSummary, stands_still
from bettong.inspection.reason_counts import ReasonRow


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """`identity`: of a row, whatever its values. `detail`: all of a row, in lines. `empty`: shown in place of rows."""

    columns: Sequence[Column[Row]]
    identity: Callable[[Row], str]
    detail: Callable[[Row], list[str]]
    order: SortOrder
    empty: str


def clock(unix_s: float) -> str:
    """A time of the day, in UTC."""
    return datetime.fromtimestamp(unix_s, UTC).strftime("%H:%M:%S")


def _moment(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%d %b %H:%M:%S")


def _service_detail(line: ServiceLine) -> list[str]:
    row = line.row
    since = f" since {_moment(row.since_s)} UTC" if row.since_s is not None else ""
    log = f"its log: {row.process.log}" if row.process is not None and row.process.log else ""
    details = [row.detail] if row.detail else []
    return [f"{row.name}: {row.state}{since}", *details, *line.waits, *([log] if log else [])]


SERVICES: Table[ServiceLine] = Table(
    (
        named("service", lambda line: line.row.name),
        named("state", lambda line: line.row.state, is_bad=lambda line: not is_well(line.row)),
        number("for", lambda line: line.lasts_s, "", first=2, text=duration_text),
        number(
            "restarts",
            lambda line: line.row.process.restarts if line.row.process is not None else None,
            "",
            first=3,
            is_optional=True,
            is_bad=lambda line: line.row.process is not None and line.row.process.restarts > 0,
        ),
        number(
            "process",
            lambda line: line.row.process.pid if line.row.process is not None else None,
            "",
            first=4,
            text=digits,
            is_optional=True,
        ),
        prose("why", lambda line: line.row.detail, first=1),
    ),
    lambda line: line.row.name,
    _service_detail,
    SortOrder(),
    "no service is known yet",
)


def _folded(row: StageSummary | PartitionRow) -> str:
    return f"{row.messages:,} messages folded, {row.results:,} results"


def _not_done(row: StageSummary | PartitionRow) -> str:
    return (
        f"messages late {row.late:,}, partly late {row.partly_late:,}, skipped {row.skipped:,};"
        f" dead letters {row.dead_letters:,}; frames skipped {row.skipped_frames:,}"
    )


def _stage_detail(line: StageLine) -> list[str]:
    row = line.row
    return [
        f"{row.stage}: {row.partitions:,} partitions, {row.keys:,} keys",
        _folded(row),
        _not_done(row),
    ]


STAGES: Table[StageLine] = Table(
    (
        named("stage", lambda line: line.row.stage),
        number("folded", lambda line: line.trend.messages_per_s, "messages/s", first=1),
        number("lag", lambda line: line.row.lag, "records", first=1),
        span("lag", lambda line: line.trend.lag, "s", first=1, text=seconds),
        number("p50", lambda line: line.row.p50_ms, "ms", first=2, text=milliseconds),
        number("p99", lambda line: line.row.p99_ms, "ms", first=1, text=milliseconds),
        number(
            "late", lambda line: line.row.late, "messages", first=2, is_bad=lambda line: line.row.late > 0
        ),
        number(
            "dead letters",
            lambda line: line.row.dead_letters,
            "messages",
            first=1,
            is_bad=lambda line: line.row.dead_letters > 0,
        ),
        number("keys", lambda line: line.row.keys, "states", first=4),
        number("results", lambda line: line.row.results, "messages", first=5),
        number("folded", lambda line: line.row.messages, "messages", first=5),
        number("partitions", lambda line: line.row.partitions, "", first=6),
    ),
    lambda line: line.row.stage,
    _stage_detail,
    SortOrder(),
    "no stage has reported yet",
)


def _stalled(row: PartitionRow) -> str:
    if not stands_still(row):
        return ""
    nobody = row.stalled_s == math.inf
    return "no worker folds it" if nobody else f"stands still for {duration(row.stalled_s or 0.0)}"


def _partition_detail(line: PartitionLine) -> list[str]:
    row, trend = line.row, line.trend
    holder = f", held by slot {row.slot}" if row.slot is not None else ""
    state = next(
        filter(None, (row.fault and f"held up: {row.fault}", row.gap and f"waits: {row.gap}", _stalled(row))),
        "",
    )
    lines = [f"{row.id}{holder}{f'; {state}' if state else ''}"]
    if row.watermark_held_by:
        behind = "unknown" if line.behind_s is None else f"{duration(line.behind_s)} behind the clock"
        stands = f", unmoved for {lasting(trend.watermark)}" if trend.watermark is not None else ""
        lines.append(
            f"watermark {behind}{stands}; held back by {row.watermark_held_by} for {lasting(trend.held)}"
        )
    lines += [f"{row.keys:,} keys; {_folded(row)}", _not_done(row)]
    if row.read_ahead is not None and row.unacknowledged is not None:
        lines.append(
            f"frames read ahead: {row.read_ahead:,}; output that Kafka has not acknowledged: {row.unacknowledged:,}"
        )
    return [*lines, _saved(line)]


def _saved(line: PartitionLine) -> str:
    saved = line.row.snapshot_offset
    if saved is None:
        return "no snapshot yet"
    if saved >= line.row.offset:
        return f"snapshot at offset {saved:,}: all that was folded"
    age = lasting(line.snapshot_age)
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
        number("owner", lambda line: line.row.slot, "slot", first=3, is_optional=True),
        number("offset", lambda line: line.row.offset, "next", first=4),
        number("lag", lambda line: line.row.lag, "records", first=1),
        span(
            "lag",
            lambda line: line.trend.lag,
            "s",
            first=1,
            text=seconds,
            is_bad=lambda line: stands_still(line.row),
        ),
        number("folded", lambda line: line.trend.messages_per_s, "messages/s", first=3),
        number("p99", lambda line: line.row.p99_ms, "ms", first=4, text=milliseconds),
        number(
            "event time", lambda line: line.behind_s, "behind", first=2, text=duration_text, is_optional=True
        ),
        named(
            "held back by", lambda line: line.row.watermark_held_by, unit="origin", first=2, is_optional=True
        ),
        span("held", lambda line: line.trend.held, "for", first=2, is_optional=True),
        Column(
            "snapshot", lambda line: line.snapshot, lambda line: length(line.snapshot_age), "age", first=4
        ),
        number("keys", lambda line: line.row.keys, "states", first=4),
        number("p50", lambda line: line.row.p50_ms, "ms", first=5, text=milliseconds),
        number(
            "late", lambda line: line.row.late, "messages", first=5, is_bad=lambda line: line.row.late > 0
        ),
        number(
            "dead letters",
            lambda line: line.row.dead_letters,
            "messages",
            first=5,
            is_bad=lambda line: line.row.dead_letters > 0,
        ),
        number("results", lambda line: line.row.results, "messages", first=6),
        number("folded", lambda line: line.row.messages, "messages", first=6),
    ),
    lambda line: str(line.row.id),
    _partition_detail,
    SortOrder(),
    "no partition has reported yet",
)


def _reason_detail(row: ReasonRow) -> list[str]:
    name = f"{row.last_id}, " if row.last_id else ""
    of = f" --computation {row.key.computation}" if row.key.computation else ""
    command = f"show APP.py {row.last_id}" if row.last_id else f"list APP.py --each{of}"
    return [
        f"{row.key.computation}: {row.key.reason}",
        f"the last one: {name}of {row.last_origin}, taken in {_moment(row.last_ns / 1e9)} UTC",
        f"bettong dead-letters {command}",
    ]


REASONS: Table[ReasonRow] = Table(
    (
        named("computation", lambda row: row.key.computation),
        number("count", lambda row: row.count, "messages", first=0),
        Column(
            "last", lambda row: clock(row.last_ns / 1e9), lambda row: row.last_ns, "UTC", first=0, right=False
        ),
        prose("reason", lambda row: row.key.reason),
    ),
    lambda row: f"{row.key.computation}\n{row.key.reason}",
    _reason_detail,
    SortOrder(1, descending=True),
    "no dead letters",
)


def _change_detail(change: Change) -> list[str]:
    return [f"{_moment(change.at_s)} UTC, {change.what}", change.text]


CHANGES: Table[Change] = Table(
    (
        Column(
            "time", lambda change: clock(change.at_s), lambda change: change.at_s, "UTC", first=0, right=False
        ),
        named("of", lambda change: change.what),
        prose("event", lambda change: change.text),
    ),
    lambda change: f"{change.at_s} {change.what} {change.text}",
    _change_detail,
    SortOrder(0, descending=True),
    "nothing has changed",
)
