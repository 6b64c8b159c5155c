"""Numbers with their units, names that fit, and styles: the texts of `bettong top`. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from bettong.cli.status_texts import duration
from bettong.inspection.trends import Since

UNKNOWN = "-"
# Styles, in the colours of Textual's themes. Words always say the same.
MUTED = "$foreground 55%"
WELL = "bold $text-success"
BAD = "bold $text-warning"
WORSE = "bold $text-error"
_BARS = "▁▂▃▄▅▆▇█"


def count(number: float | None) -> str:
    """A whole number with thousands separators."""
    return UNKNOWN if number is None else f"{number:,.0f}"


def milliseconds(time_ms: float | None) -> str:
    """Milliseconds, as `bettong status` prints them."""
    return UNKNOWN if time_ms is None else f"{time_ms:,.1f}"


def seconds(since: Since | None) -> str:
    """A number of seconds; `>` before one that may be more."""
    if since is None:
        return UNKNOWN
    digits = 1 if since.seconds < 100 else 0
    return f"{'>' if since.at_least else ''}{since.seconds:,.{digits}f}"


def length(since: Since | None) -> float | None:
    """The duration in seconds, to sort by."""
    return since.seconds if since is not None else None


def lasting(since: Since | None) -> str:
    """A duration with its unit; `>` before one that may be more."""
    if since is None:
        return UNKNOWN
    return f"{'>' if since.at_least else ''}{duration(since.seconds)}"


def shortened(text: str, width: int) -> str:
    """At most `width` cells: a longer text loses its middle, because partitions differ at the end."""
    if cell_len(text) <= width:
        return text
    if width < 5:
        return set_cell_size(text, max(0, width))
    tail = (width - 1) // 2
    end = text[-tail:]
    while cell_len(end) > tail:
        end = end[1:]
    return set_cell_size(text, width - 1 - cell_len(end)).rstrip() + "…" + end


def begun(text: str, width: int) -> str:
    """At most `width` cells: the beginning of a longer text."""
    return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)).rstrip() + "…"


def padded(text: str, width: int, *, right: bool, is_prose: bool = False) -> str:
    """Exactly `width` cells. Prose keeps its beginning, a name its end too."""
    text = begun(text, width) if is_prose else shortened(text, width)
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def curve(rates: Sequence[float], width: int) -> str:
    """The newest rates as bars; the greatest of them has the highest bar."""
    newest = rates[-width:]
    most = max(newest, default=0.0)
    if most <= 0:
        return ""
    return "".join(_BARS[min(len(_BARS) - 1, int(each / most * len(_BARS)))] for each in newest)
