"""Lists of the clients and subscribers that wait longest, as text for live records."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

# How many a service lists; the other metrics count all.
NAMED_MAX = 20


class ClientCredits(NamedTuple):
    """A client of a sender, by its stream. `in_flight`: frames without a receipt. `waited_s`: time without credit."""

    stream: str
    credits: int
    in_flight: int
    waited_s: float


class SubscriberQueue(NamedTuple):
    """A subscriber of a sink. `stalled_s`: for how long it has not read `waiting_bytes` that were sent to it.

    `lag`: records that were not sent to it yet; None while the end of the log is unknown.
    """

    sink: str
    address: str
    stalled_s: float
    waiting_bytes: int
    lag: int | None


def clients_first(each: ClientCredits) -> tuple[float, float, str]:
    """A sort key: least credit first, then the longest time without credit."""
    return each.credits, -each.waited_s, each.stream


def subscribers_first(each: SubscriberQueue) -> tuple[float, float, str, str]:
    """A sort key: the longest stalled first, then the largest lag."""
    return -each.stalled_s, -(each.lag or 0), each.sink, each.address


def clients_text(found: Iterable[ClientCredits]) -> str:
    """The clients with least credit, for a live record."""
    return _text(sorted(found, key=clients_first))


def clients_in(text: str) -> list[ClientCredits]:
    """The inverse of `clients_text`. Raises ValueError."""
    return [
        ClientCredits(_name(stream), _count(credits_), _count(in_flight), _seconds(waited_s))
        for stream, credits_, in_flight, waited_s in _rows(text, 4)
    ]


def subscribers_text(found: Iterable[SubscriberQueue]) -> str:
    """The subscribers that have stalled longest, then those with the largest lag, for a live record."""
    return _text(sorted(found, key=subscribers_first))


def subscribers_in(text: str) -> list[SubscriberQueue]:
    """The inverse of `subscribers_text`. Raises ValueError."""
    return [
        SubscriberQueue(
            _name(sink),
            _name(address),
            _seconds(stalled_s),
            _count(waiting_bytes),
            None if lag is None else _count(lag),
        )
        for sink, address, stalled_s, waiting_bytes, lag in _rows(text, 5)
    ]


def _text(rows: list[ClientCredits] | list[SubscriberQueue]) -> str:
    return json.dumps(rows[:NAMED_MAX], separators=(",", ":"), ensure_ascii=False)


def _rows(text: str, width: int) -> list[list[object]]:
    try:
        found = json.loads(text)
    except RecursionError as error:
        raise ValueError(f"no list of who waits: {error!r}") from None
    if not isinstance(found, list) or not all(
        isinstance(row, list) and len(row) == width for row in found[:NAMED_MAX]
    ):
        raise ValueError(f"no list of who waits, {width} values each: {text[:200]!r}")
    return found[:NAMED_MAX]


def _name(found: object) -> str:
    if not isinstance(found, str):
        raise ValueError(f"a name, got {found!r:.100}")  # noqa: TRY004 - as for every text that is none of these
    return found


def _count(found: object) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise ValueError(f"a count from 0 on, got {found!r:.100}")
    return found


def _seconds(found: object) -> float:
    if not isinstance(found, int | float) or not 0 <= found < 1e12:
        raise ValueError(f"seconds from 0 on, got {found!r:.100}")
    return float(found)
