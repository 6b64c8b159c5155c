"""Kinds of columns of `bettong top`: names, prose, numbers, durations. Pure."""

from __future__ import annotations

from collections.abc import Callable

from bettong.cli.printable import printable
from bettong.cli.status_texts import duration
from bettong.cli.top.columns import Column, Row
from bettong.cli.top.texts import UNKNOWN, count, lasting, length
from bettong.inspection.trends import Since


def named(
    title: str,
    name: Callable[[Row], str],
    *,
    unit: str = "",
    first: int = 0,
    is_optional: bool = False,
    is_bad: Callable[[Row], bool] = lambda _: False,
) -> Column[Row]:
    """A column of names."""
    return Column(
        title,
        lambda row: printable(name(row)) or UNKNOWN,
        lambda row: name(row) or None,
        unit,
        first,
        right=False,
        is_optional=is_optional,
        is_bad=is_bad,
    )


def prose(title: str, text: Callable[[Row], str], *, first: int = 0) -> Column[Row]:
    """A column of texts; the last column of a table."""
    return Column(
        title, lambda row: printable(text(row)), text, first=first, right=False, width_min=20, is_prose=True
    )


def number(
    title: str,
    value: Callable[[Row], float | None],
    unit: str,
    *,
    first: int,
    text: Callable[[float | None], str] = count,
    is_optional: bool = False,
    is_bad: Callable[[Row], bool] = lambda _: False,
) -> Column[Row]:
    """A column of numbers."""
    return Column(
        title, lambda row: text(value(row)), value, unit, first, is_optional=is_optional, is_bad=is_bad
    )


def span(
    title: str,
    since: Callable[[Row], Since | None],
    unit: str,
    *,
    first: int,
    text: Callable[[Since | None], str] = lasting,
    is_optional: bool = False,
    is_bad: Callable[[Row], bool] = lambda _: False,
) -> Column[Row]:
    """A column of durations."""
    return Column(
        title,
        lambda row: text(since(row)),
        lambda row: length(since(row)),
        unit,
        first,
        is_optional=is_optional,
        is_bad=is_bad,
    )


def digits(value: float | None) -> str:
    """A number that is a name, without thousands separators."""
    return UNKNOWN if value is None else f"{value:.0f}"


def duration_text(time_s: float | None) -> str:
    """A duration with its unit."""
    return UNKNOWN if time_s is None else duration(time_s)
