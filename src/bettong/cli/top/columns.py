"""A table of `bettong top`: its columns, which rows it shows and in which order, and what fits on the screen. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.cells import cell_len

from bettong.cli.top.texts import UNKNOWN, padded

GAP = 2
Row = TypeVar("Row")
SortKey = float | str | None


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """`unit` stands below the title. `key`: what the column sorts by; None sorts last. `is_bad`: highlights a cell.

    `first`: on a narrow screen the lowest number stays longest; 0 always stays. Only text is shortened, down to
    `width_min`. `is_optional`: not shown where no row has a value. `is_prose`: texts, and not names.
    """

    title: str
    text: Callable[[Row], str]
    key: Callable[[Row], SortKey]
    unit: str = ""
    first: int = 1
    right: bool = True
    width_min: int = 16
    is_optional: bool = False
    is_prose: bool = False
    is_bad: Callable[[Row], bool] = lambda _: False


@dataclass(frozen=True, slots=True)
class SortOrder:
    """The number of the column to sort by; `descending`: the greatest first."""

    column: int = 0
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Fitted(Generic[Row]):
    """A column that is shown, and its width."""

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


def ordered(rows: Sequence[Row], columns: Sequence[Column[Row]], order: SortOrder) -> list[Row]:
    """The rows sorted by a column; those without a value last, equal ones in their given order."""
    key = columns[order.column].key
    known = [row for row in rows if key(row) is not None]
    unknown = [row for row in rows if key(row) is None]

    def by(row: Row) -> tuple[float, str]:
        value = key(row)
        return (0.0, value) if isinstance(value, str) else (value or 0.0, "")

    return sorted(known, key=by, reverse=order.descending) + unknown


def widths_of(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> dict[int, int]:
    """The width of each column with these rows, by its number; without optional columns that have no value."""
    widths = {}
    for number, column in enumerate(columns):
        texts = [column.text(row) for row in rows]
        if column.is_optional and all(text == UNKNOWN for text in texts):
            continue
        longest = max(map(cell_len, texts), default=0)
        widths[number] = max(
            cell_len(column.title) + 1, cell_len(column.unit), longest
        )  # one for the order's mark
    return widths


def column_pages(
    columns: Sequence[Column[Row]], wanted: Mapping[int, int], width: int
) -> list[list[Fitted[Row]]]:
    """The columns of `wanted`, by number with width, in pages that fit into `width` cells: the most important first.

    Those with `first=0` are on every page.
    """
    always = [number for number in wanted if columns[number].first == 0]
    left = sorted(
        (each for each in wanted if each not in always), key=lambda each: (columns[each].first, each)
    )
    pages: list[list[Fitted[Row]]] = []
    while left or not pages:
        chosen = list(always)
        for number in left:
            needed = sum(_least(columns[each], wanted[each]) for each in (*chosen, number)) + GAP * len(
                chosen
            )
            if needed <= width or len(chosen) == len(always):  # at least one more, or this would never end
                chosen.append(number)
        pages.append(_fitted(columns, {number: wanted[number] for number in sorted(chosen)}, width))
        left = [number for number in left if number not in chosen]
    return pages


def _fitted(columns: Sequence[Column[Row]], widths: dict[int, int], width: int) -> list[Fitted[Row]]:
    """Where the columns are too wide together, narrows those that may be, the widest first."""
    least = {number: _least(columns[number], wide) for number, wide in widths.items()}
    while (over := sum(widths.values()) + GAP * (len(widths) - 1) - width) > 0:
        widest = max(widths, key=lambda each: widths[each] - least[each])
        spare = widths[widest] - least[widest]
        if spare <= 0:
            break
        widths[widest] -= min(over, max(1, spare // 2))
    return [Fitted(number, columns[number], wide) for number, wide in widths.items()]


def _least(column: Column[Row], wanted: int) -> int:
    return wanted if column.right else min(wanted, max(column.width_min, cell_len(column.title) + 1))


def titles(shown: Sequence[Fitted[Row]], order: SortOrder) -> list[str]:
    """The titles, each as wide as its column; a mark at the one that rows are sorted by."""
    mark = "▼" if order.descending else "▲"
    return [
        padded(
            f"{each.column.title}{mark if each.number == order.column else ''}",
            each.width,
            right=each.column.right,
        )
        + " " * GAP
        for each in shown
    ]


def units(shown: Sequence[Fitted[Row]]) -> list[str]:
    """The units, which stand below the titles."""
    return [padded(each.column.unit, each.width, right=each.column.right) + " " * GAP for each in shown]


def cells(shown: Sequence[Fitted[Row]], row: Row) -> list[tuple[str, bool]]:
    """The cells of a row, each as wide as its column and the space after it, and whether to highlight it."""
    return [
        (
            padded(each.column.text(row), each.width, right=each.column.right, is_prose=each.column.is_prose)
            + " " * GAP,
            each.column.is_bad(row),
        )
        for each in shown
    ]


def is_unknown(text: str) -> bool:
    """Whether a cell's value is unknown."""
    return text.strip() == UNKNOWN
