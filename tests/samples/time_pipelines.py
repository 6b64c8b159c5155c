"""Pipelines of all that goes by time, each from events to lines. `time_cases.py` says what must come of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import bettong
from bettong.application.joins.kinds import How
from bettong.application.streams import Stream
from bettong.application.windows.kinds import Ranges, Sessions, WindowKind

# Of the log clock, and of event times: 1 January 2026, a border of all windows here.
START_NS = 1_767_225_600_000_000_000
S_NS = 1_000_000_000


@dataclass(frozen=True)
class Event:
    """`at`: Unix ns. `right`: of which side of a join it is. `gone`: it deletes what a table has."""

    key: bettong.u32
    at: int
    value: int
    right: bool = False
    gone: bool = False


@dataclass(frozen=True)
class Line:
    """A result, for people: a key, when, and the values of messages."""

    text: str


def left(key: int, at_s: float, value: int) -> Event:
    return Event(key, START_NS + int(at_s * S_NS), value)


def right(key: int, at_s: float, value: int, *, gone: bool = False) -> Event:
    return Event(key, START_NS + int(at_s * S_NS), value, right=True, gone=gone)


@dataclass(frozen=True)
class KeyName:
    """A row of a reference table."""

    key: bettong.u32
    name: str


def s(count: float) -> timedelta:
    return timedelta(seconds=count)


def since_start(at_ns: int) -> str:
    """Seconds; of what is no whole one, three places."""
    seconds = (at_ns - START_NS) / S_NS
    return f"{seconds:.0f}" if seconds == int(seconds) else f"{seconds:.3f}"


# Gets the stream of a case's events, and makes the stream of its lines.
Build = Callable[[Stream[Event]], Stream[Line]]


class Values:
    """The values of a window's messages, in their order."""

    def initial(self) -> list[int]:
        return []

    def update(self, accumulator: list[int], event: Event) -> list[int]:
        return [*accumulator, event.value]

    def combine(self, older: list[int], newer: list[int]) -> list[int]:
        return [*older, *newer]

    def output(self, key: int, accumulator: list[int], window: bettong.Window) -> Line:
        begins, ends = since_start(window.start), since_start(window.end)
        values = " ".join(map(str, accumulator)) or "none"
        return Line(f"{key} from {begins} to {ends}: {values}{'' if window.final else ' so far'}")


class Group(Values):
    """The same without the times of the window, which of a count are those of its messages."""

    def output(self, key: int, accumulator: list[int], window: bettong.Window) -> Line:  # noqa: ARG002
        return Line(f"{key}: {' '.join(map(str, accumulator))}")


@dataclass
class Total:
    key: bettong.u32
    start: int
    count: int
    highest: int


@dataclass
class Top:
    """Of all keys, in a window whose start is the key."""

    key: int
    count: int


TOTAL = bettong.aggregate(Total, count=bettong.Count(), highest=bettong.Max("value"))
COMPILED = bettong.compiled(bettong.aggregate(Total, count=bettong.Count(), highest=bettong.Max("value")))
TOP = bettong.aggregate(Top, count=bettong.Max("count"))
MINUTE = bettong.tumbling(s(10))


@dataclass
class Summed:
    key: bettong.u32
    start: int
    count: int
    total: int


SUMMED = bettong.compiled(bettong.aggregate(Summed, count=bettong.Count(), total=bettong.Sum("value")))


@dataclass
class SoFar:
    key: bettong.u32
    start: int
    final: bool
    total: int


SO_FAR = bettong.compiled(bettong.aggregate(SoFar, total=bettong.Sum("value")))


def so_far_line(found: SoFar) -> Line:
    suffix = "" if found.final else " so far"
    return Line(f"{found.key} from {since_start(found.start)}: sum {found.total}{suffix}")


def summed_line(summed: Summed) -> Line:
    return Line(f"{summed.key} from {since_start(summed.start)}: {summed.count}, sum {summed.total}")


def total_line(total: Total) -> Line:
    return Line(f"{total.key} from {since_start(total.start)}: {total.count}, highest {total.highest}")


def top_line(top: Top) -> Line:
    return Line(f"from {since_start(top.key)}: {top.count}")


def late_line(event: Event) -> Line:
    return Line(f"late: {event.value}")


def with_late(events: Stream[Event]) -> Stream[Line]:
    window = events.window(MINUTE, Values(), name="side", late="side")
    return window.merge(window.late.map(late_line, name="late-line"))


def tops(events: Stream[Event]) -> Stream[Line]:
    counted = events.window(MINUTE, TOTAL, name="counted")
    return (
        counted.key_by("start", name="starts").window(MINUTE, TOP, name="tops").map(top_line, name="top-line")
    )


def combined_before(events: Stream[Event]) -> Stream[Line]:
    """By another key than that of the source: odd and even values."""
    return (
        events.local(lambda event: event.value % 2)
        .window(MINUTE, TOTAL, name="local")
        .map(total_line, name="local-line")
    )


def sides(events: Stream[Event], name: str) -> tuple[Stream[Event], Stream[Event]]:
    return (
        events.filter(lambda event: not event.right, name=f"{name}-left"),
        events.filter(lambda event: event.right, name=f"{name}-right"),
    )


def pair(one: Event | None, other: Event | None) -> Line:
    """The values of both; a dash where there is none."""
    return Line(" ".join("-" if each is None else str(each.value) for each in (one, other)))


def within(how: How, name: str) -> Build:
    def build(events: Stream[Event]) -> Stream[Line]:
        one, other = sides(events, name)
        return one.join_within(other, s(-5), s(5), pair, how=how, name=name)

    return build


@dataclass
class Met:
    left: int
    right: int


@bettong.compiled
def met(one: Event | None, other: Event | None) -> Met:
    return Met(-1 if one is None else one.value, -1 if other is None else other.value)


def met_line(found: Met) -> Line:
    return Line(" ".join("-" if each < 0 else str(each) for each in (found.left, found.right)))


def within_compiled(how: How, name: str) -> Build:
    def build(events: Stream[Event]) -> Stream[Line]:
        one, other = sides(events, name)
        return one.join_within(other, s(-5), s(5), met, how=how, name=name).map(met_line, name=f"{name}-line")

    return build


@bettong.compiled
def met_or_alone(one: Event, other: Event | None) -> Met:
    return Met(one.value, -1 if other is None else other.value)


def met_or_alone_line(found: Met) -> Line:
    return Line(f"{found.left} {'-' if found.right < 0 else found.right}")


def latest_compiled(events: Stream[Event]) -> Stream[Line]:
    one, table = sides(events, "latest-compiled")
    found = one.join_latest(table, met_or_alone, how="left", delete_when="gone", name="latest-compiled")
    return found.map(met_or_alone_line, name="latest-compiled-line")


def latest_compiled_for_a_while(events: Stream[Event]) -> Stream[Line]:
    one, table = sides(events, "latest-ttl-compiled")
    found = one.join_latest(table, met_or_alone, how="left", ttl=s(15), name="latest-ttl-compiled")
    return found.map(met_or_alone_line, name="latest-ttl-compiled-line")


def as_of_compiled(how: Literal["inner", "left"], name: str) -> Build:
    def build(events: Stream[Event]) -> Stream[Line]:
        one, table = sides(events, name)
        found = one.join_as_of(table, met_or_alone, tolerance=s(10), how=how, name=name)
        return found.map(met_or_alone_line, name=f"{name}-line")

    return build


def latest(how: Literal["inner", "left"], name: str) -> Build:
    def build(events: Stream[Event]) -> Stream[Line]:
        one, table = sides(events, name)
        return one.join_latest(table, pair, how=how, delete_when="gone", name=name)

    return build


def latest_for_a_while(events: Stream[Event]) -> Stream[Line]:
    one, table = sides(events, "latest-ttl")
    return one.join_latest(table, pair, how="left", ttl=s(15), name="latest-ttl")


def as_of(how: Literal["inner", "left"], name: str) -> Build:
    def build(events: Stream[Event]) -> Stream[Line]:
        one, table = sides(events, name)
        return one.join_as_of(table, pair, tolerance=s(10), how=how, name=name)

    return build


def in_window(windows: Ranges | Sessions, how: How, name: str) -> Build:
    def build(events: Stream[Event]) -> Stream[Line]:
        one, other = sides(events, name)
        return one.join_window(other, windows, pair, how=how, name=name)

    return build


def in_window_compiled(windows: Ranges | Sessions, how: How, name: str) -> Build:
    def build(events: Stream[Event]) -> Stream[Line]:
        one, other = sides(events, name)
        return one.join_window(other, windows, met, how=how, name=name).map(met_line, name=f"{name}-line")

    return build


def first_names() -> list[KeyName]:
    return [KeyName(1, "one"), KeyName(2, "two")]


def named_line(event: Event, row: KeyName | None) -> Line:
    return Line(f"{event.value} {'-' if row is None else row.name}")


def reference(how: Literal["inner", "left"], name: str) -> Build:
    def build(events: Stream[Event]) -> Stream[Line]:
        return events.join_reference(first_names, named_line, key="key", how=how, name=name)

    return build


@dataclass
class NamedEvent:
    key: bettong.u32
    name: str


def named_event(event: Event, row: KeyName) -> NamedEvent:
    return NamedEvent(event.key, f"{event.value}={row.name}")


class Names:
    """The names of a window's messages, in their order."""

    def initial(self) -> list[str]:
        return []

    def update(self, accumulator: list[str], event: NamedEvent) -> list[str]:
        return [*accumulator, event.name]

    def combine(self, older: list[str], newer: list[str]) -> list[str]:
        return [*older, *newer]

    def output(self, key: int, accumulator: list[str], window: bettong.Window) -> Line:
        return Line(f"{key} from {since_start(window.start)}: {' '.join(accumulator)}")


def reference_before_windows(events: Stream[Event]) -> Stream[Line]:
    named = events.join_reference(first_names, named_event, key="key", name="reference-window")
    return named.window(MINUTE, Names(), name="names")


@dataclass
class Waiting:
    seen: int = 0
    due_at: bettong.Timer = bettong.NEVER


@dataclass
class WaitingByLogClock:
    seen: int = 0
    due_at: bettong.LogTimer = bettong.NEVER


def wait_by_event_time(event: Event, waiting: Waiting) -> None:
    """Each event moves the timer on."""
    waiting.seen += 1
    waiting.due_at = event.at + bettong.seconds(5)


def wait_by_log_clock(event: Event, waiting: WaitingByLogClock) -> None:
    """The first event alone sets the timer. Here event times are those of the log clock."""
    waiting.seen += 1
    if waiting.seen == 1:
        waiting.due_at = event.at + bettong.seconds(15)


def fired_line(fired: bettong.Fired[int], waiting: Waiting | WaitingByLogClock) -> Line:
    return Line(f"{fired.key} at {since_start(fired.at)}: {waiting.seen}")


def event_timer(events: Stream[Event]) -> Stream[Line]:
    return events.stateful(
        wait_by_event_time, state=Waiting, name="event-timer", timers={"due_at": fired_line}
    )


def log_timer(events: Stream[Event]) -> Stream[Line]:
    return events.stateful(
        wait_by_log_clock, state=WaitingByLogClock, name="log-timer", timers={"due_at": fired_line}
    )


@dataclass
class Seen:
    values: int = 0


def count(event: Event, seen: Seen) -> Line:
    seen.values += 1
    return Line(f"{event.key} {event.value}: {seen.values}")


def lasting(name: str, **options: object) -> Build:
    def build(events: Stream[Event]) -> Stream[Line]:
        found: Stream[Line] = events.stateful(count, state=Seen, name=name, **options)  # type: ignore[call-overload]
        return found

    return build


def windows(name: str, kind: WindowKind, **options: object) -> Build:
    def build(events: Stream[Event]) -> Stream[Line]:
        return events.window(kind, Values(), name=name, **options)  # type: ignore[arg-type]

    return build
