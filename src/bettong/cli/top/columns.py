"""A table of `bettong top`: its columns, which rows it shows and in which order, and what fits on the screen. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.cells import cell_len

from bettong.cli.top.texts import UNKNOWN, padded

GAP = 2
Row = TypeVar("Row")
SortKey = float | str | None


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """`unit` stands below the title. `key`: what the column sorts by; None sorts last. `is_bad`: a cell to look at.

    `first`: the lowest number stays longest where the screen is narrow; 0 always stays. Only text is made shorter, to
    `width_min` at the least.
    """

    title: str
    text: Callable[[Row], str]
    key: Callable[[Row], SortKey]
    unit: str = ""
    first: int = 1
    right: bool = True
    width_min: int = 10
    is_bad: Callable[[Row], bool] = lambda _: False


@dataclass(frozen=True, slots=True)
class Order:
    """By which column, by its number; `descending`: the greatest first."""

    column: int = 0
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Fitted(Generic[Row]):
    """A column that is shown, and how wide."""

    number: int
    column: Column[Row]
    width: int


def matching(rows: Sequence[Row], columns: Sequence[Column[Row]], words: str) -> list[Row]:
    """The rows whose texts hold all of these words, in capitals or not."""
    wanted = words.lower().split()
    if not wanted:
        return list(rows)

    def holds(row: Row) -> bool:
        text = "\n".join(column.text(row) for column in columns).lower()
        return all(word in text for word in wanted)

    return [row for row in rows if holds(row)]


def ordered(rows: Sequence[Row], columns: Sequence[Column[Row]], order: Order) -> list[Row]:
    """By that column; those without a value last, equal ones as they were."""
    key = columns[order.column].key
    known = [row for row in rows if key(row) is not None]
    unknown = [row for row in rows if key(row) is None]

    def by(row: Row) -> tuple[float, str]:
        value = key(row)
        return (0.0, value) if isinstance(value, str) else (value or 0.0, "")

    return sorted(known, key=by, reverse=order.descending) + unknown


def fitted(columns: Sequence[Column[Row]], rows: Sequence[Row], width: int) -> list[Fitted[Row]]:
    """The columns that fit into `width` cells, each as wide as its texts; of those that do not, the most important.

    Where even one is too wide, texts that stand on the left are made shorter, the widest first.
    """
    wanted = {
        number: max(
            cell_len(column.title) + 1,  # with the mark of the order
            cell_len(column.unit),
            max((cell_len(column.text(row)) for row in rows), default=0),
        )
        for number, column in enumerate(columns)
    }
    least = {
        number: wide if columns[number].right else min(wide, columns[number].width_min)
        for number, wide in wanted.items()
    }
    chosen: list[int] = []
    for number in sorted(wanted, key=lambda each: (columns[each].first, each)):
        needed = sum(least[each] for each in (*chosen, number)) + GAP * len(chosen)
        if columns[number].first == 0 or needed <= width:
            chosen.append(number)
    widths = {number: wanted[number] for number in chosen}
    while (over := sum(widths.values()) + GAP * (len(widths) - 1) - width) > 0:
        widest = max(widths, key=lambda each: widths[each] - least[each])
        if widths[widest] <= least[widest]:
            break
        widths[widest] -= min(over, max(1, (widths[widest] - least[widest]) // 2))
    return [Fitted(number, columns[number], widths[number]) for number in sorted(chosen)]


def header(shown: Sequence[Fitted[Row]], order: Order) -> tuple[str, str]:
    """Two lines: titles, with a mark at the column that rows are in the order of; and units."""
    mark = "▼" if order.descending else "▲"
    titles = (
        padded(
            f"{each.column.title}{mark if each.number == order.column else ''}",
            each.width,
            right=each.column.right,
        )
        for each in shown
    )
    units = (padded(each.column.unit, each.width, right=each.column.right) for each in shown)
    space = " " * GAP
    return space.join(titles), space.join(units)


def cells(shown: Sequence[Fitted[Row]], row: Row) -> list[tuple[str, bool]]:
    """The cells of a row, each as wide as its column and the space behind it, and whether it is one to look at."""
    return [
        (
            padded(each.column.text(row), each.width, right=each.column.right) + " " * GAP,
            each.column.is_bad(row),
        )
        for each in shown
    ]


def is_unknown(text: str) -> bool:
    """Whether a cell says that nobody knows."""
    return text.strip() == UNKNOWN
