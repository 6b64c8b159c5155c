"""The texts of `bettong status` below its tables: counts, and what an operator may want to act on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bettong.cli.latency_tables import largest_parts
from bettong.cli.printable import escaped
from bettong.listing import first_named, first_texts
from bettong.metrics import LATENCY_WINDOW_S

if TYPE_CHECKING:
    from bettong.inspection.overview import Overview, PartitionRow

# How many of each kind are named.
_NAMED_MAX = 4


def summary(found: Overview) -> list[str]:
    """Lag, latency and dead letters, in a line each."""
    lag = f"lag {found.lag:,}" if found.lag is not None else "lag unknown"
    lines = [f"{lag}, {found.messages:,} messages taken in, {found.results:,} results delivered"]
    if found.p50_ms is not None and found.p99_ms is not None:
        lines.append(
            f"latency p50 {found.p50_ms:,.1f} ms, p99 {found.p99_ms:,.1f} ms, of the last {LATENCY_WINDOW_S} s"
        )
    lines += largest_parts(found.latency_parts)
    if found.dead_letters:
        lines.append(
            f"[red]{found.dead_letters:,} dead letters[/red], the last: {escaped(found.dead_letter_last or 'unknown')}"
        )
    else:
        lines.append("no dead letters")
    return [*lines, *complaints(found)]


def complaints(found: Overview) -> list[str]:
    """Problems that an operator may want to act on, in a line each."""
    skipped = f'[yellow]{found.skipped:,} messages skipped[/yellow], as on_error="skip" says'
    lines = [skipped] if found.skipped else []
    if found.gaps:
        shown = escaped(first_texts(found.gaps, _NAMED_MAX))
        lines.append(
            f"[red]{len(found.gaps)} partitions wait for a lost frame[/red]: {shown}; restart its client"
        )
    lines += [f"[yellow]skew[/yellow]: {escaped(text)}" for text in found.skews[:_NAMED_MAX]]
    if found.left_out:
        shown = escaped(first_texts(found.left_out, _NAMED_MAX))
        lines.append(
            f"[yellow]{len(found.left_out)} partitions recently skipped what killed workers[/yellow]: {shown}"
        )
    if found.references:
        lines.append(f"[red]reference tables are out of date[/red]: {escaped('; '.join(found.references))}")
    if found.shared:
        named = escaped(first_named(found.shared, _NAMED_MAX))
        lines.append(
            f"[yellow]{len(found.shared)} partitions are folded on shared CPUs[/yellow]: {named};"
            " their workers should have CPUs of their own"
        )
    return lines


def stuck(rows: list[PartitionRow]) -> list[str]:
    """The partitions that stand still, the first ones in a line each, and those whose states are not saved."""
    from bettong.inspection.overall_state import remedy_of_still
    from bettong.inspection.overview import stands_still

    still = [row for row in rows if stands_still(row)]
    lines = [
        f"[red]{escaped(f'{row.stage}/{row.partition}')} stands still at offset {row.offset:,}"
        + (", no worker folds it" if row.stalled_s == math.inf else f" for {duration(row.stalled_s or 0.0)}")
        + f": {row.lag:,} records wait[/red]; {remedy_of_still(row)}"
        for row in still[:_NAMED_MAX]
    ]
    if len(still) > _NAMED_MAX:
        lines.append(f"[red]{len(still) - _NAMED_MAX} more partitions stand still[/red] (--partitions)")
    if faults := [row.snapshot_fault for row in rows if row.snapshot_fault]:
        count = "1 partition is" if len(faults) == 1 else f"{len(faults)} partitions are"
        lines.append(f"[yellow]{count} not saved[/yellow]: {escaped(faults[0])}")
    return lines


def line(now: Overview, before: Overview, seconds: float) -> str:
    """Counts on one line of about 80 characters; the rate is that of the `seconds` since `before`."""
    rate = max(0, now.messages - before.messages) / seconds if seconds > 0 else 0.0
    parts = [
        f"{now.messages:,} in",
        f"{rate:,.0f}/s",
        f"{now.results:,} out",
        f"{now.dead_letters:,} dead letters",
        f"lag {now.lag:,}" if now.lag is not None else "lag unknown",
    ]
    if now.p50_ms is not None and now.p99_ms is not None:
        parts.append(f"p50 {now.p50_ms:,.0f} ms  p99 {now.p99_ms:,.0f} ms")
    return "  ".join(parts)


def duration(seconds: float) -> str:
    """`12 s`, `3 min`, `5 h` or `2 d`: the largest unit that fits."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
