"""Tables of `bettong top`: order, filter, and which columns fit how wide."""

from dataclasses import dataclass

import pytest
from rich.cells import cell_len

from bettong.cli.printable import printable
from bettong.cli.top.columns import (
    GAP,
    Column,
    SortOrder,
    cells,
    column_pages,
    matching,
    ordered,
    titles,
    widths_of,
)
from bettong.cli.top.texts import begun, count, curve, lasting, padded, seconds, shortened
from bettong.inspection.trends import Since


@dataclass(frozen=True)
class Item:
    name: str
    size: int | None = None
    note: str = ""


COLUMNS: tuple[Column[Item], ...] = (
    Column("name", lambda row: row.name, lambda row: row.name, first=0, right=False),
    Column("size", lambda row: count(row.size), lambda row: row.size, "bytes", first=1),
    Column(
        "note",
        lambda row: row.note or "-",
        lambda row: row.note or None,
        first=2,
        right=False,
        is_optional=True,
    ),
)
ROWS = [Item("b", 20, "cold"), Item("a", None), Item("c", 3_000_000, "warm")]


def names(rows: list[Item]) -> str:
    return "".join(row.name for row in rows)


def test_rows_are_in_the_order_of_a_column_and_those_without_a_value_last() -> None:
    assert names(ordered(ROWS, COLUMNS, SortOrder())) == "abc"
    assert names(ordered(ROWS, COLUMNS, SortOrder(0, descending=True))) == "cba"
    assert names(ordered(ROWS, COLUMNS, SortOrder(1))) == "bca"
    assert names(ordered(ROWS, COLUMNS, SortOrder(1, descending=True))) == "cba"


def test_a_filter_wants_all_of_its_words_in_capitals_or_not() -> None:
    assert names(matching(ROWS, COLUMNS, "")) == "bac"
    assert names(matching(ROWS, COLUMNS, "WARM 3,0")) == "c"
    assert names(matching(ROWS, COLUMNS, "warm 20")) == ""


def test_columns_that_do_not_fit_are_on_further_pages_beside_the_name() -> None:
    wanted = widths_of(COLUMNS, ROWS)
    (all_,) = column_pages(COLUMNS, wanted, 80)
    assert [each.column.title for each in all_] == ["name", "size", "note"]
    first, second = column_pages(COLUMNS, wanted, 17)
    assert [each.column.title for each in first] == ["name", "size"]
    assert [each.column.title for each in second] == ["name", "note"]


def test_a_screen_of_no_width_has_an_end_of_pages_too() -> None:
    for width in range(6):
        assert len(column_pages(COLUMNS, widths_of(COLUMNS, ROWS), width)) == 2


def test_what_nobody_knows_has_no_column_where_it_is_optional() -> None:
    assert list(widths_of(COLUMNS, [Item("a")])) == [0, 1]


def test_each_cell_is_as_wide_as_its_column() -> None:
    rows = [*ROWS, Item("注文" * 20, 10**12, "x" * 90)]
    (page, *_) = column_pages(COLUMNS, widths_of(COLUMNS, rows), 60)
    wide = [each.width + GAP for each in page]
    for row in rows:
        assert [cell_len(text) for text, _ in cells(page, row)] == wide
    assert [cell_len(text) for text in titles(page, SortOrder(1))] == wide
    assert any("1,000,000,000,000" in text for text, _ in cells(page, rows[-1])), "numbers stay whole"


@pytest.mark.parametrize("width", range(12))
@pytest.mark.parametrize("text", ["", "short", "a-very-long-name/12", "注文注文注文/3"])
def test_texts_are_never_wider_than_they_may_be(text: str, width: int) -> None:
    assert cell_len(shortened(text, width)) <= width
    assert cell_len(begun(text, width)) <= width or width == 0
    assert cell_len(padded(text, width, right=True)) == width


def test_a_long_name_keeps_its_end_and_prose_its_beginning() -> None:
    assert shortened("a-very-long-name/12", 10) == "a-ver…e/12"
    assert begun("cannot be read at all", 10) == "cannot be…"


def test_numbers_have_their_thousands_apart_and_durations_say_when_they_may_be_longer() -> None:
    assert [count(1234567), count(None)] == ["1,234,567", "-"]
    assert [seconds(each) for each in (None, Since(0.04), Since(1234.5, at_least=True))] == [
        "-",
        "0.0",
        ">1,234",
    ]
    assert [lasting(each) for each in (Since(5.0), Since(90.0, at_least=True))] == ["5 s", ">2 min"]


def test_nothing_that_a_terminal_would_obey_is_printable() -> None:
    assert printable("a\x1b[2J\x07\n\tb\x9bé注\u202e") == "a\ufffd[2J\ufffd  b\ufffdé注\ufffd"


def test_a_curve_has_a_bar_for_each_of_the_newest_rates() -> None:
    assert curve([0.0, 50.0, 100.0], 10) == "▁▅█"
    assert curve([1.0] * 20, 3) == "███"
    assert curve([], 5) == curve([0.0], 5) == ""
