r"""An application whose stages judge lateness, though none of its computations does; and what reaches it from clients.

readings --> episodes (stateful, a timer by event time) --> seen
                 \--> key_by place --> places (stateful, the same) --> places-seen
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from itertools import accumulate
from typing import Any

import bettong
from bettong import NEVER, Application
from bettong.application.on_error import OnError
from bettong.application.plan import Plan, Stage, plan
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, FrameKind, decode
from bettong.ingest.session import Session, SourceRoute
from bettong.topics import sink_topic, stage_topic
from bettong.v1.ingest_pb2 import Hello, IngestFrame

GAP_NS = 10
FAILS = 99
OUT, PLACES = sink_topic("meters", "seen"), stage_topic("meters", "places")


@dataclass
class Reading:
    """`number`: its own. `looks`: it changes nothing, and what it finds goes out."""

    number: bettong.u32
    sensor: bettong.u32
    at: int
    looks: bool = False


@dataclass
class Seen:
    """A reading that went by, or, where it looks, how many episodes had ended. `number` 0: one ends."""

    number: bettong.u32
    sensor: bettong.u32
    place: bettong.u32
    at: int
    ended: bettong.i64
    looks: bool


@dataclass(slots=True)
class Episode:
    """Of one sensor: it ends GAP_NS behind its newest reading."""

    ended: int = 0
    until: bettong.Timer = NEVER


def note(reading: Reading, episode: Episode) -> Seen:
    """Of a sensor."""
    if reading.sensor == FAILS:
        raise ValueError("no reading")
    if not reading.looks:
        _go_on(episode, reading.at)
    found = episode.ended if reading.looks else 0
    return Seen(reading.number, reading.sensor, reading.sensor % 3, reading.at, found, reading.looks)


def _go_on(episode: Episode, at: int) -> None:
    """By times alone, as a function must whose results do not depend on when between messages its timer fires."""
    if episode.until <= at:
        episode.ended += 1
        episode.until = NEVER
    until = at + GAP_NS
    episode.until = until if episode.until == NEVER else max(episode.until, until)


def end(fired: bettong.Fired[int], episode: Episode) -> Seen:
    """An episode has ended."""
    episode.ended += 1
    return Seen(0, fired.key, fired.key % 3, fired.at, episode.ended, looks=False)


def look(seen: Seen, episode: Episode) -> Seen | None:
    """Of a place, by its readings, too."""
    if seen.looks:
        return Seen(seen.number, seen.sensor, seen.place, seen.at, episode.ended, looks=True)
    if seen.number:
        _go_on(episode, seen.at)
    return None


def end_of_place(fired: bettong.Fired[int], episode: Episode) -> None:
    """It ended."""
    del fired
    episode.ended += 1


@cache
def judging(
    out_of_order_ns: int = 0, idle_ns: int = 1_000_000_000, on_error: OnError = "dead-letter"
) -> Plan:
    """The application of the module's docstring, as if its computations judged lateness."""
    app = Application("meters")
    readings = app.source(
        "readings",
        schema=Reading,
        key="sensor",
        event_time="at",
        # Durations are whole microseconds; plans are values.
        out_of_order=timedelta(0),
        idle_timeout=timedelta(microseconds=idle_ns // 1000),
    )
    episodes = readings.stateful(
        note, state=Episode, name="episodes", timers={"until": end}, on_error=on_error
    )
    episodes.sink("seen")
    places = episodes.key_by("place", name="places")
    places.stateful(look, state=Episode, name="looks", timers={"until": end_of_place}).sink("places-seen")
    found = plan(app)
    source = replace(
        found.sources[0], event_time=replace(found.sources[0].event_time, out_of_order_ns=out_of_order_ns)
    )
    return replace(found, sources=(source,), stages=tuple(map(_judging, found.stages)))


def _judging(stage: Stage) -> Stage:
    outputs = tuple(replace(each, judges_lateness=each.needs_time) for each in stage.outputs)
    return replace(stage, judges_lateness=True, outputs=outputs)


class Client:
    """One of an application's only source, whose frames go through a sender. `partitions`: of the stage."""

    def __init__(self, of: Plan, partitions: int, name: str = "a") -> None:
        route = SourceRoute(
            of.sources[0],
            stage_topic("meters", of.stages[0].name),
            "meters.dead-letters",
            partitions,
            64 * 1024,
            needs_time=True,
            judges_lateness=of.stages[0].judges_lateness,
            needs_each_watermark=of.stages[0].needs_each_watermark,
        )
        self._session = Session(route, Hello(source=of.sources[0].name, stream=name), [-1] * partitions)
        self._schema = of.sources[0].schema
        self._sequence = 0

    def send(self, messages: Sequence[Any], now_ns: int = 1_000_000) -> list[tuple[int, bytes]]:
        """One frame of them: its records, each with its partition."""
        self._sequence += 1
        columns = Columns.of_messages(self._schema, list(messages)).payload()
        taken = self._session.take(IngestFrame(sequence=self._sequence, columns=columns), 0, now_ns)
        return [(append.partition, append.value) for append in taken.appends]


def own_before(times: Sequence[int], out_of_order_ns: int = 0) -> list[int]:
    """The watermark that messages of these times, one after the other, have made before each of them."""
    newest = accumulate([0, *times[:-1]], max)
    return [max(0, each - out_of_order_ns) for each in newest]


def readings_in(frame: Frame) -> list[Reading]:
    """The messages of a frame of the first stage."""
    if frame.kind is not FrameKind.DATA or frame.columns is None:
        return []
    return Columns.of_payload(judging().sources[0].schema, frame.columns).messages()


def decoded(values: Sequence[tuple[int, bytes]]) -> list[tuple[int, Frame]]:
    """Frames, each with its partition."""
    return [(partition, decode(value)) for partition, value in values]
