"""Line plots as SVG for light and dark pages: text and axes take the colour of the page's text.

A legend is HTML above the plot: it is as readable on a narrow page, and all plots are of one width.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

from bettong.errors import LabError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Lines = Mapping[str, tuple[Sequence[float], Sequence[float]]]

# Of medium lightness, so that each is visible on white and on black.
_COLORS = ("#3b82c4", "#d9822b", "#3a9d5d", "#8a6fc0", "#2aa7b5", "#c76ba8", "#a5a52f", "#8c6d5c", "#7f8794")
_MARK = "#c9504e"
# Replaced by the colour of the page's text; used for nothing else.
_TEXT = "#010203"
_SETTINGS: dict[Any, Any] = {
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), _TEXT),
    "grid.color": _TEXT,
    "svg.fonttype": "none",
    "svg.hashsalt": "bettong",
    "font.family": "sans-serif",
}


@dataclass(frozen=True, slots=True)
class PlotMark:
    """A fault on the time axis, and how long it lasted; 0: a moment."""

    name: str
    at_s: float
    lasting_s: float


def plot(
    lines: Lines,
    x_label: str,
    y_label: str,
    *,
    scale: Callable[[Axes], None],
    marks: Sequence[PlotMark] = (),
    points: bool = False,
) -> str:
    """A plot with its legend. `points`: draws single points instead of lines. Raises LabError without matplotlib."""
    colors = {name: _COLORS[number % len(_COLORS)] for number, name in enumerate(lines)}
    names = colors | ({"faults": _MARK} if marks else {})
    legend = "".join(
        f"<li><i style='background:{color}'></i>{html.escape(name)}" for name, color in names.items()
    )
    drawn = _svg(lines, colors, x_label, y_label, scale=scale, marks=marks, points=points)
    return f"<ul class=legend>{legend}</ul><div class=plot>{drawn}</div>"


def _svg(
    lines: Lines,
    colors: Mapping[str, str],
    x_label: str,
    y_label: str,
    *,
    scale: Callable[[Axes], None],
    marks: Sequence[PlotMark],
    points: bool,
) -> str:
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure as Plot
    except ImportError:
        raise LabError("a page needs the package matplotlib: pip install 'bettong[lab]'") from None
    with rc_context(_SETTINGS):
        drawing = Plot(figsize=(9, 3))
        drawing.subplots_adjust(left=0.09, right=0.96, top=0.97, bottom=0.17)
        FigureCanvasSVG(drawing)
        axes = drawing.subplots()
        style = {"linestyle": "none", "marker": "."} if points else {"linewidth": 1.4}
        for name, (along, values) in lines.items():
            axes.plot(along, values, color=colors[name], **style)
        for each in marks:
            end_s = each.at_s + each.lasting_s
            axes.axvspan(each.at_s, end_s, color=_MARK, alpha=0.35, linewidth=1.4)
        scale(axes)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.grid(visible=True, alpha=0.2)
        axes.spines[["top", "right"]].set_visible(False)
        text = StringIO()
        drawing.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    _, start, rest = text.getvalue().partition("<svg")
    return (start + rest).replace(_TEXT, "currentColor")
