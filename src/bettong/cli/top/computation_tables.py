"""The tables of `bettong top` about computations: how busy they are, and what became of messages. Pure."""

from __future__ import annotations

from bettong.cli.account_tables import marked_name
from bettong.cli.printable import printable
from bettong.cli.top.column_kinds import named, number
from bettong.cli.top.columns import Column, SortOrder
from bettong.cli.top.lines import OrderedAccount
from bettong.cli.top.tables import Table
from bettong.inspection.accounts import AccountLine
from bettong.inspection.computations import ComputationLine

_OWN_WORK = "(frames read)"
_PERCENT = 100
_US = 1000


def _share(share: float | None) -> str:
    return "" if share is None else f"{_PERCENT * share:.1f}"


def _milliseconds(took_us: float | None) -> str:
    return f"{took_us / _US:,.3f}" if took_us else "-"


def _busy_detail(line: ComputationLine) -> list[str]:
    if not line.name:
        return [f"{line.stage}: frames read, and checked by the delivery rule, before any computation"]
    lines = [f"{line.name}, of stage {line.stage}: {line.taken or 0:,} messages in, {line.given or 0:,} out"]
    frame = f"p99.9 {_milliseconds(line.p999_us)}, p99.99 {_milliseconds(line.p9999_us)} ms"
    return [*lines, f"recent time of one frame there, in the slowest partition: {frame}"]


BUSY: Table[ComputationLine] = Table(
    (
        named("computation", lambda line: line.name or _OWN_WORK),
        named("of", lambda line: line.stage, unit="stage", first=1),
        number("busy", lambda line: line.busy_share, "% of a core", first=0, text=_share),
        number("p50", lambda line: line.p50_us, "ms a frame", first=1, text=_milliseconds),
        number("p99", lambda line: line.p99_us, "ms a frame", first=1, text=_milliseconds),
        number("longest", lambda line: line.max_us, "ms a frame", first=2, text=_milliseconds),
        number("in", lambda line: line.taken, "messages", first=3),
        number("out", lambda line: line.given, "messages", first=3),
    ),
    lambda line: f"{line.stage}\n{line.name}",
    _busy_detail,
    SortOrder(2, descending=True),
    "no computation reports how busy it is: no messages, or BETTONG_MEASURES=off",
)

_KINDS = {"input": "into the stage", "output": "out of the stage"}


def _is_wrong(row: OrderedAccount) -> bool:
    return bool(row.line.differences)


def _account_detail(row: OrderedAccount) -> list[str]:
    line = row.line
    where = f"{line.name}, {_KINDS.get(line.kind, line.kind)}, {line.stage}"
    return [where, *(line.differences or [f"adds up: {_sum_of(line)}"])]


def _sum_of(line: AccountLine) -> str:
    parts = {
        "used": line.used,
        "filtered": line.filtered,
        "late": line.late,
        "dead letters": line.dead_letters,
        "skipped": line.skipped,
    }
    shown = " + ".join(f"{count:,} {name}" for name, count in parts.items() if count or name == "used")
    return f"in {line.taken:,} = {shown}"


ACCOUNTS: Table[OrderedAccount] = Table(
    (
        Column(
            "computation",
            lambda row: printable(marked_name(row.line)),
            lambda row: row.number,
            first=0,
            right=False,
            is_bad=_is_wrong,
        ),
        named("of", lambda row: row.line.stage, unit="stage", first=3),
        number("in", lambda row: row.line.taken, "messages", first=0),
        number("used", lambda row: row.line.used, "messages", first=0),
        number("filtered", lambda row: row.line.filtered, "messages", first=1),
        number("late", lambda row: row.line.late, "messages", first=1),
        number("dead letters", lambda row: row.line.dead_letters, "messages", first=1),
        number("skipped", lambda row: row.line.skipped, "messages", first=2),
        number("out", lambda row: row.line.given, "messages", first=1),
        number("pending", lambda row: row.line.pending, "messages", first=2),
    ),
    lambda row: f"{row.line.stage}\n{row.line.kind}\n{row.line.name}",
    _account_detail,
    SortOrder(),
    "no computation has reported yet",
)
