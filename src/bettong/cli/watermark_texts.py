"""Texts of `bettong status --watermarks`: which windows are open, and what holds each of them open."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bettong.cli.fitting_tables import print_fitting
from bettong.cli.printable import escaped, printable_lines
from bettong.event_progress import DueKind
from bettong.inspection.open_windows import WaitsFor

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from bettong.inspection.open_windows import Hold, InputWatermark, OpenWindow
    from bettong.inspection.overview import PartitionRow

_COLUMNS = 80
_NS = 1_000_000_000


def show_watermarks(found: list[PartitionRow], console: Console, now_ns: int) -> None:
    """Prints the watermarks of the stages' inputs, and the oldest open windows."""
    from bettong.inspection.open_windows import WINDOWS_MAX, input_watermarks, open_windows

    inputs = input_watermarks(found, now_ns)
    if not inputs:
        console.print("no partition reports event time")
        return
    print_fitting(console, watermarks_table(inputs, now_ns))
    windows = open_windows(found, now_ns, WINDOWS_MAX + 1)
    for text in window_texts(windows[:WINDOWS_MAX], now_ns):
        console.print(printable_lines(text), markup=False, soft_wrap=True)
    if not windows:
        console.print("no window is open")
    if len(windows) > WINDOWS_MAX:
        console.print(f"and later ones: these are the {WINDOWS_MAX} oldest")


def watermarks_table(found: Sequence[InputWatermark], now_ns: int) -> Table:
    """A row for each input of a stage: its event time, and the origin that holds it back, since when. Times are UTC."""
    from rich.table import Table

    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 1))
    for column in ("input > read by", "event time", "behind", "held by", "since", "silent"):
        table.add_column(column, justify="right" if column in ("behind", "silent") else "left")
    for each in found:
        known = each.watermark_ns > 0
        since = ("≤ " if each.at_least else "") + clock_text(each.since_ns, now_ns) if each.since_ns else ""
        table.add_row(
            escaped(f"{each.source} > {each.id}"),
            clock_text(each.watermark_ns, now_ns)
            if known
            else "none live"
            if not _counts(each)
            else "unknown",
            _seconds((now_ns - each.watermark_ns) / _NS) if known else "",
            escaped(_stream(each)),
            since,
            _seconds(each.silent_s) if each.silent_s is not None else "",
        )
    return table


def window_texts(found: Sequence[OpenWindow], now_ns: int) -> list[str]:
    """Each window in words, lines of 80 characters at most where names allow it."""
    return [
        "\n".join((*_filled(_what(each, now_ns), ""), *_filled(_why(each, now_ns), "  "))) for each in found
    ]


def clock_text(time_ns: int, now_ns: int) -> str:
    """A time in UTC: of today without its date, whole seconds without milliseconds."""
    seconds, rest_ns = divmod(time_ns, _NS)
    try:
        at = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{time_ns} ns"
    is_today = at.date() == datetime.fromtimestamp(now_ns // _NS, UTC).date()
    text = f"{at:%H:%M:%S}" if is_today else f"{at:%Y-%m-%d %H:%M:%S}"
    return f"{text}.{rest_ns // 1_000_000:03}" if rest_ns >= 1_000_000 else text


def _what(window: OpenWindow, now_ns: int) -> str:
    name, due = f"`{window.computation}`", clock_text(window.due_ns, now_ns)
    at = f"in {window.partitions} partitions" if window.partitions > 1 else "in one partition"
    if window.start_ns is not None and window.end_ns is not None:
        start, end = clock_text(window.start_ns, now_ns), clock_text(window.end_ns, now_ns)
        later = "" if window.end_ns == window.due_ns else f", at a watermark of {due}"
        return f"window {start}\u2013{end} of {name} is open {at}{later}:"
    if window.kind is DueKind.SESSION:
        return f"a window of {name} is open {at}, until {due} at the earliest:"
    if window.kind is DueKind.JOIN:
        return f"join {name} waits {at} for {due}:"
    return f"a timer of {name} waits {at} for {due}:"


def _why(window: OpenWindow, now_ns: int) -> str:
    hold = window.hold
    short = (
        f"{hold.id} is at {clock_text(hold.watermark_ns, now_ns)}, {_seconds(window.short_s)} short"
        if window.short_s is not None
        else f"{hold.id} does not know its event time"
    )
    return f"{short}: {_held(hold, window, now_ns)}"


def _held(hold: Hold, window: OpenWindow, now_ns: int) -> str:
    own = hold.input
    waiting = (
        f"{hold.waiting_records:,} records of its log are not folded yet" if hold.waiting_records else ""
    )
    if hold.waits_for is WaitsFor.RECORDS:
        return f"{waiting}; its slowest input: {_origin(own)}" if own is not None else waiting
    return "; ".join(filter(None, (_holder(hold, window, now_ns), waiting)))


def _holder(hold: Hold, window: OpenWindow, now_ns: int) -> str:
    own = hold.input
    if own is None:
        if hold.waits_for is WaitsFor.CLOCK and window.short_s is not None:
            return f"no origin is live, so it follows the clock and closes in {_seconds(window.short_s)}"
        return "no message has arrived yet"
    if hold.waits_for is WaitsFor.PARTITION:
        more = f", nor have {own.awaited - 1} more partitions" if own.awaited > 1 else ""
        return (
            f"{_origin(own)} has reported no event time yet{more}; it is waited for until it does, or is idle"
        )
    if hold.waits_for is WaitsFor.EVENT_TIME:
        return f"{_origin(own)} has sent no event time yet{_idle(own, now_ns)}"
    since_ns = own.since_ns or 0
    moved = f"has not moved since {clock_text(since_ns, now_ns)}{' or before' if own.at_least else ''}"
    return (
        f"{_origin(own)} holds it (event time {clock_text(own.watermark_ns, now_ns)}, {moved}, silent for"
        f" {_seconds(own.silent_s or 0.0)}{_idle(own, now_ns)})"
    )


def _idle(own: InputWatermark, now_ns: int) -> str:
    if own.idle_at_ns is None or own.idle_s is None:
        return "; it is waited for however long it is silent"
    return f"; idle after {_seconds(own.idle_s)}, at {clock_text(own.idle_at_ns // _NS * _NS, now_ns)}"


def _origin(own: InputWatermark) -> str:
    if own.is_of_stage:
        return f"partition {own.stream} of stage `{own.source}`"
    return f"origin `{own.stream}` of source `{own.source}`"


def _stream(own: InputWatermark) -> str:
    if not own.stream:
        return ""
    return f"{own.source}/{own.stream}" if own.is_of_stage else own.stream


def _counts(own: InputWatermark) -> bool:
    return bool(own.live or own.awaited)


def _seconds(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 10 or seconds == int(seconds) else f"{seconds:.1f} s"
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _filled(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        _COLUMNS,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
