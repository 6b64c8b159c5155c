r"""An application that goes by event time, in two stages, and frames for it: what the tests of event time share.

visits --> seen (stateful, ttl by event time) --> sightings
                 \--> key_by place --> busy (stateful, ttl by event time) --> places
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, Literal

import bettong
from bettong import Application
from bettong.application.plan import Plan, plan
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, FrameKind, encode, tick_record
from bettong.identifiers import Origin, SequenceNumber
from bettong.schema.schema import schema_of
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import StageProgram, program
from tests.samples.worker import worker
from tests.simulation.twins import compiled_twin

Speed = Literal["python", "compiled"]
TTL = timedelta(microseconds=1)
TTL_NS = 1000
IDLE_NS = 1_000_000_000
FIRST_OUT, STAGE, LAST_OUT = "meters.sink.sightings", "meters.stage.places", "meters.sink.places-seen"


@dataclass
class Visit:
    """Of somebody, to a place, at a time."""

    who: bettong.u32
    place: bettong.u32
    at: int


@dataclass
class Sighting:
    """How often somebody was seen lately."""

    who: bettong.u32
    place: bettong.u32
    count: bettong.i64


@dataclass
class Seen:
    """What is kept of somebody, and of a place."""

    count: int = 0


def see(visit: Visit, seen: Seen) -> Sighting:
    """Counts."""
    seen.count += 1
    return Sighting(visit.who, visit.place, seen.count)


def fill(sighting: Sighting, seen: Seen) -> Sighting:
    """Counts, too."""
    seen.count += 1
    return Sighting(sighting.who, sighting.place, seen.count)


FUNCTIONS: dict[Speed, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "python": (see, fill),
    "compiled": (compiled_twin(see), compiled_twin(fill)),
}


def described(speed: Speed = "python", event_time: Any = "at", ttl_clock: Any = "event") -> Plan:
    """The application of the module's docstring; its worker's samples want it to be called meters."""
    app = Application("meters")
    first, second = FUNCTIONS[speed]
    visits = app.source(
        "visits",
        schema=Visit,
        key="who",
        event_time=event_time,
        idle_timeout=timedelta(microseconds=IDLE_NS // 1000),
    )
    seen = visits.stateful(first, state=Seen, name="seen", ttl=TTL, ttl_clock=ttl_clock)
    seen.sink("sightings")
    busy = seen.key_by("place", name="places")
    busy.stateful(second, state=Seen, name="busy", ttl=TTL, ttl_clock=ttl_clock).sink("places-seen")
    return plan(app)


@cache
def programs(speed: Speed = "python") -> tuple[StageProgram, StageProgram]:
    """Both stages."""
    first, second = described(speed).stages
    return program(first, compiled=True), program(second, compiled=True)


def workers(speed: Speed = "python", *, partitions: int = 1) -> tuple[PartitionWorker, PartitionWorker]:
    """New ones, of partition 0 of both stages."""
    first, second = programs(speed)
    return worker(first, partitions=partitions), worker(second, partitions=partitions)


def visits(origin: str, sequence: int, found: Sequence[Visit], *, log_ns: int, watermark_ns: int) -> bytes:
    """A frame, as a sender writes it."""
    schema = schema_of(Visit)
    return encode(
        Frame(
            origin=Origin(f"visits/{origin}"),
            sequence=SequenceNumber(sequence),
            previous=SequenceNumber(sequence - 1),
            count=len(found),
            schema=schema.fingerprint,
            ingest_ns=log_ns,
            watermark_ns=watermark_ns,
            columns=Columns.of_messages(schema, found).payload(),
        )
    )


def alone(at_ns: int, *, who: int = 1, place: int = 1, number: int = 1, log_ns: int = 0) -> bytes:
    """One visit of client `a`, whose watermark is its time."""
    return visits("a", number, [Visit(who, place, at_ns)], log_ns=log_ns, watermark_ns=at_ns)


def control(
    kind: FrameKind, origin: str, *, log_ns: int, acknowledged: int = 0, watermark_ns: int = 0
) -> bytes:
    """OPEN or END of a client."""
    return encode(
        Frame(
            origin=Origin(f"visits/{origin}"),
            sequence=SequenceNumber(acknowledged),
            previous=SequenceNumber(acknowledged),
            kind=kind,
            ingest_ns=log_ns,
            watermark_ns=watermark_ns,
        )
    )


def sender_tick(log_ns: int, **watermarks_ns: int) -> bytes:
    """A TICK of a sender, with the watermarks of clients."""
    watermarks = {Origin(f"visits/{origin}"): at_ns for origin, at_ns in watermarks_ns.items()}
    return tick_record("visits", log_ns, watermarks)
