"""How `bettong k8s` prints pods and their logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from bettong.cli.status_texts import duration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from bettong.cluster.log_lines import Line
    from bettong.cluster.pods import PodRow
    from bettong.cluster.rolling import RolloutProgress

_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "bright_cyan", "bright_green", "bright_magenta")


def pods_table(found: Iterable[PodRow], release: str, now_s: float) -> Table:
    """A row for each pod. CPUs that are `whole` are the pod's own where the node's CPU manager is static."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    for column in ("component", "pod", "state", "ready", "restarts", "class", "CPUs", "node", "age"):
        table.add_column(column, justify="right" if column in ("restarts", "CPUs", "age") else "left")
    for row in found:
        colour = (
            "green"
            if row.ready
            else "yellow"
            if row.state in ("Pending", "Running", "Terminating")
            else "red"
        )
        table.add_row(
            escape(row.component),
            escape(short(row.name, release)),
            f"[{colour}]{escape(row.state)}[/{colour}]",
            "yes" if row.ready else "no",
            str(row.restarts) if row.restarts else "",
            row.qos,
            f"{float(row.cpus):g}{' whole' if row.whole else ''}",
            escape(row.node),
            duration(now_s - row.since_s),
        )
    return table


def workloads_line(found: Iterable[RolloutProgress]) -> str | None:
    """The workloads that are not complete, in a line; None when all are."""
    late = [each.line() for each in found if not each.done]
    return "; ".join(late) if late else None


def short(pod: str, release: str) -> str:
    """A pod's name without the release's."""
    for prefix in (f"{release}-bettong-", f"{release}-"):
        if pod.startswith(prefix):
            return pod.removeprefix(prefix)
    return pod


class Printer:
    """Prints log lines, each after its pod's name, in the pod's colour."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._colours: dict[str, str] = {}

    def print(self, release: str, line: Line) -> None:
        """Prints a line as it was written, without control sequences that a terminal would obey."""
        name = short(line.pod, release)
        colour = self._colours.setdefault(name, _COLOURS[len(self._colours) % len(_COLOURS)])
        text = Text.assemble((f"{name} | ", colour), Text.from_ansi(line.text))
        self._console.print(text, soft_wrap=True)
