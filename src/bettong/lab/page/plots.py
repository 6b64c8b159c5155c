"""Line plots as SVG for light and dark pages: text and axes take the colour of the page's text."""

from __future__ import annotations

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
    """An event on the time axis, and how long it lasted; 0: a moment."""

    name: str
    at_s: float
    lasting_s: float


def svg(
    lines: Lines,
    x_label: str,
    y_label: str,
    *,
    scale: Callable[[Axes], None] | None = None,
    marks: Sequence[PlotMark] = (),
    points: bool = False,
) -> str:
    """A plot. `points`: draws single points instead of lines. Raises LabError without matplotlib."""
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure as Plot
    except ImportError:
        raise LabError("a page needs the package matplotlib: pip install 'bettong[lab]'") from None
    with rc_context(_SETTINGS):
        plot = Plot(figsize=(9, 3.4), layout="constrained")
        FigureCanvasSVG(plot)
        axes = plot.subplots()
        style = {"linestyle": "none", "marker": "."} if points else {"linewidth": 1.4}
        for number, (name, (along, values)) in enumerate(lines.items()):
            axes.plot(along, values, label=name, color=_COLORS[number % len(_COLORS)], **style)
        for name in dict.fromkeys(each.name for each in marks):
            own = [each for each in marks if each.name == name]
            for each, label in zip(own, [name, *[None] * len(own)], strict=False):
                end_s = each.at_s + each.lasting_s
                axes.axvspan(each.at_s, end_s, color=_MARK, alpha=0.35, linewidth=1.4, label=label)
        if scale is not None:
            scale(axes)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.grid(visible=True, alpha=0.2)
        axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        text = StringIO()
        plot.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    _, start, rest = text.getvalue().partition("<svg")
    return (start + rest).replace(_TEXT, "currentColor")
