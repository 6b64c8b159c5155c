"""Merges the lines of many logs by time. Pure."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from bettong.errors import SettingsError

_DURATION = re.compile(r"(\d+)(s|m|h|d)")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_TIME = re.compile(r"(\S+?)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)")


@dataclass(frozen=True, slots=True, order=True)
class Line:
    """A line of a pod's log. `at_ns`: Unix nanoseconds."""

    at_ns: int
    pod: str
    text: str


def parsed(pod: str, line: str, before_ns: int) -> Line:
    """Parses a line that begins with its time; a line without one gets the time of the line before, `before_ns`."""
    time, _, text = line.partition(" ")
    at_ns = nanoseconds(time)
    return Line(before_ns, pod, line) if at_ns is None else Line(at_ns, pod, text)


def lines_of(pod: str, raw: Iterable[str]) -> Iterator[Line]:
    """The parsed lines of one log, with times that never decrease."""
    at_ns = 0
    for each in raw:
        found = parsed(pod, each, at_ns)
        at_ns = max(at_ns, found.at_ns)
        yield Line(at_ns, pod, found.text)


def nanoseconds(text: str) -> int | None:
    """Unix nanoseconds of an RFC 3339 time with up to nine decimals of a second; None for anything else."""
    if (found := _TIME.fullmatch(text)) is None:
        return None
    try:
        whole = datetime.fromisoformat(found[1] + found[3])
    except ValueError:
        return None
    return int(whole.timestamp()) * 1_000_000_000 + int((found[2] or "0").ljust(9, "0")[:9])


def merged(logs: Iterable[Iterator[Line]]) -> Iterator[Line]:
    """All lines ordered by time. Holds one line of each log in memory."""
    return heapq.merge(*logs)


def seconds(text: str) -> int:
    """Seconds of `90s`, `10m`, `2h` or `1d`. Raises SettingsError."""
    if (found := _DURATION.fullmatch(text)) is None:
        raise SettingsError(f"--since {text}: expected a number and s, m, h or d, such as 10m")
    return int(found[1]) * _UNITS[found[2]]
