"""What fires at one record may leave in several frames: none of them makes the others late."""

from dataclasses import dataclass

import bettong
from bettong import NEVER, Application
from bettong.application.plan import plan
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, decode, encode
from bettong.identifiers import Origin, SequenceNumber
from bettong.schema.schema import schema_of
from bettong.topics import stage_topic
from bettong.worker.stage_program import program
from tests.samples.worker import fold, worker

TIMEOUT_NS = 60


@dataclass
class Move:
    item: bettong.u32
    place: bettong.u32
    at: int
    ends: bool


@dataclass(slots=True)
class Planned:
    at: bettong.Timer = NEVER


@dataclass(slots=True)
class Waiting:
    until: bettong.Timer = NEVER


def begin(move: Move, planned: Planned) -> Move | None:
    if not move.ends:
        planned.at = move.at
    return None


def arrive(fired: bettong.Fired[int], _: Planned) -> Move | None:
    return Move(fired.key, 7, fired.at, ends=False) if fired.key == 1 else None


def leave(fired: bettong.Fired[int], _: Planned) -> Move | None:
    return Move(fired.key, 7, fired.at, ends=True) if fired.key == 2 else None


def wait(move: Move, waiting: Waiting) -> Move | None:
    waiting.until = NEVER if move.ends else move.at + TIMEOUT_NS
    return None


def give_up(fired: bettong.Fired[int], _: Waiting) -> Move:
    return Move(0, fired.key, fired.at, ends=True)


def frame(sequence: int, move: Move, watermark_ns: int) -> bytes:
    schema = schema_of(Move)
    return encode(
        Frame(
            origin=Origin("moves/a"),
            sequence=SequenceNumber(sequence),
            previous=SequenceNumber(sequence - 1),
            count=1,
            schema=schema.fingerprint,
            ingest_ns=1000 + sequence,
            watermark_ns=watermark_ns,
            columns=Columns.of_messages(schema, [move]).payload(),
        )
    )


def test_frames_of_several_timers_carry_the_watermark_of_before_their_record() -> None:
    app = Application("meters")
    moves = app.source("moves", schema=Move, key="item", event_time="at")
    arrivals = moves.stateful(begin, state=Planned, name="arrivals", timers={"at": arrive})
    departures = moves.stateful(begin, state=Planned, name="departures", timers={"at": leave})
    places = arrivals.merge(departures).key_by("place", name="places")
    places.stateful(wait, state=Waiting, name="waiting", timers={"until": give_up}).sink("out")
    first, second = (worker(program(each, compiled=False), partitions=1) for each in plan(app).stages)
    # One record moves the watermark past both: the arrival at 1000, the departure at 1050, in two frames.
    found = fold(
        first,
        [
            frame(1, Move(1, 7, 1000, ends=False), 999),
            frame(2, Move(2, 7, 1050, ends=False), 999),
            frame(3, Move(3, 7, 1200, ends=True), 1200),
        ],
    )
    between = [record for record in found if record.topic == stage_topic("meters", "places")]
    assert [decode(record.value).watermark_ns for record in between if record.count] == [999, 999]
    assert fold(second, [record.value for record in between]) == [], "the departure is in time"
