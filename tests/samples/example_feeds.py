"""What clients send to the examples and golden cases: always the same, so that results can be compared."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from bettong.application.nodes.source import Source
from bettong.application.plan import Plan
from bettong.frames.columns import Columns
from bettong.ingest.session import Session, SourceRoute
from bettong.topics import dead_letter_topic, stage_topic
from bettong.v1.frame_pb2 import Rows
from bettong.v1.ingest_pb2 import Hello, IngestFrame
from examples.market_spread_load import INITIAL_QUOTES, Round, rounds
from tests.e2e.poison import Number

# The source's name, and the body of a frame.
Feed = list[tuple[str, IngestFrame]]


def of_rows(rows: list[bytes], size: int) -> Iterator[IngestFrame]:
    for start in range(0, len(rows), size):
        yield IngestFrame(rows=Rows(messages=rows[start : start + size]))


def of_columns(columns: Columns) -> IngestFrame:
    return IngestFrame(schema=columns.schema.fingerprint, columns=columns.payload())


def lines(sources: dict[str, Source]) -> Feed:
    del sources
    chance = random.Random(1)
    words = [f"word{number}" for number in range(40)]
    rows = [" ".join(chance.choices(words, k=chance.randrange(8))).encode() for _ in range(600)]
    rows[100] = b"\xff is no UTF-8"
    return [("lines", frame) for frame in of_rows(rows, 7)]


def market_rounds() -> list[Round]:
    """The generated part of `market`."""
    return list(rounds(12_000, seed=1, round_messages=400))


def market(sources: dict[str, Source]) -> Feed:
    data, offset, quotes = INITIAL_QUOTES.read_bytes(), 0, []
    while offset < len(data):
        (size,) = struct.unpack_from(">I", data, offset)
        quotes.append(data[offset + 4 : offset + 4 + size])
        offset += 4 + size
    feed: Feed = [("nbbo", frame) for frame in of_rows(quotes, 50)]
    for each in market_rounds():
        for name, found in (("nbbo", each.quotes), ("orders", each.orders)):
            schema = sources[name].schema
            arrays = tuple(found[one.name].astype(one.dtype) for one in schema.fields)
            if len(arrays[0]):
                feed.append((name, of_columns(Columns(schema, len(arrays[0]), arrays))))
    return feed


def numbers(sources: dict[str, Source]) -> Feed:
    chance = random.Random(2)
    schema = sources["numbers"].schema
    return [
        (
            "numbers",
            of_columns(
                Columns.of_messages(
                    schema, [Number(f"g{chance.randrange(9)}", chance.randrange(6)) for _ in range(5)]
                )
            ),
        )
        for _ in range(80)
    ]


def letters(sources: dict[str, Source]) -> Feed:
    del sources
    chance = random.Random(3)
    rows = [bytes([chance.randrange(65, 91)]) + chance.randbytes(999) for _ in range(400)]
    return [("letters", frame) for frame in of_rows(rows, 6)]


def trades(sources: dict[str, Source]) -> Feed:
    chance = random.Random(4)
    schema = sources["trades"].schema
    frames = (
        [(chance.choice("abcdef"), chance.randrange(3000), chance.randrange(900)) for _ in range(9)]
        for _ in range(90)
    )
    return [
        ("trades", of_columns(Columns.of_messages(schema, [schema.message(*each) for each in frame])))
        for frame in frames
    ]


def payments(sources: dict[str, Source]) -> Feed:
    chance = random.Random(5)
    schema = sources["payments"].schema
    frames = (
        [(chance.choice(["ann", "bob", "çağ"]), chance.randrange(3)) for _ in range(7)] for _ in range(60)
    )
    return [
        ("payments", of_columns(Columns.of_messages(schema, [schema.message(*each) for each in frame])))
        for frame in frames
    ]


def steps(sources: dict[str, Source]) -> Feed:
    """Orders that are approved in time, too late, or never."""
    chance, minute_ns = random.Random(6), 60 * 10**9
    schema = sources["steps"].schema
    found = []
    for number in range(120):
        at_ns = chance.randrange(1, 200 * minute_ns)
        found.append((at_ns, f"A-{number}", False))
        if chance.random() < 0.7:
            found.append((at_ns + chance.choice([1, minute_ns - 1, 3 * minute_ns]), f"A-{number}", True))
    messages = [schema.message(order, at_ns, is_approved) for at_ns, order, is_approved in sorted(found)]
    return [
        ("steps", of_columns(Columns.of_messages(schema, messages[start : start + 5])))
        for start in range(0, len(messages), 5)
    ]


def clicks(sources: dict[str, Source]) -> Feed:
    """Visits of a few hours, and, hours later, one that brings event time past the end of all others."""
    chance, minute_ns = random.Random(7), 60 * 10**9
    schema = sources["clicks"].schema
    times = sorted(chance.randrange(600 * minute_ns) for _ in range(600))
    found = [
        (f"person-{chance.randrange(12)}", f"/{chance.randrange(9)}", at_ns - chance.randrange(10**10))
        for at_ns in times
    ]
    messages = [schema.message(person, page, max(at_ns, 0)) for person, page, at_ns in found]
    messages.append(schema.message("person-0", "/0", 2000 * minute_ns))
    return [
        ("clicks", of_columns(Columns.of_messages(schema, messages[start : start + 5])))
        for start in range(0, len(messages), 5)
    ]


def quoted_trades(sources: dict[str, Source]) -> Feed:
    """Trades and quotes of some minutes, and one of each a day later, which brings event time past the others."""
    chance, second_ns = random.Random(8), 10**9
    found: list[tuple[str, list[tuple[Any, ...]]]] = []
    for index in range(90):
        at_ns = (index + 1) * second_ns
        quotes = [
            (symbol, 99.5, 100.5 + chance.randrange(9), at_ns + chance.randrange(second_ns))
            for symbol in "abcd"
        ]
        trades = [
            (chance.choice("abcd"), 100.0, chance.randrange(1, 9), at_ns + chance.randrange(3 * second_ns))
            for _ in range(5)
        ]
        found += [("quotes", quotes), ("trades", trades)]
    later_ns = 86_400 * second_ns
    found += [("quotes", [("a", 99.5, 100.5, later_ns)]), ("trades", [("a", 100.0, 1, later_ns)])]
    feed: Feed = []
    for name, rows in found:
        schema = sources[name].schema
        columns = Columns.of_messages(schema, [schema.message(*row) for row in rows])
        feed.append((name, of_columns(columns)))
    return feed


def orders(sources: dict[str, Source]) -> Feed:
    chance = random.Random(5)
    schema, skus = sources["orders"].schema, ("apple", "bread", "milk", "tea", "gone")
    frames = []
    for _ in range(40):
        rows = [
            schema.make(chance.choice("abcdefgh"), chance.choice(skus), chance.randint(1, 4))
            for _ in range(6)
        ]
        frames.append(("orders", of_columns(Columns.of_messages(schema, rows))))
    return frames


def votes(sources: dict[str, Source]) -> Feed:
    chance = random.Random(9)
    rows = [(chance.choice("ABCDEFGHIJ"), chance.randrange(500)) for _ in range(500)]
    return of_messages(sources["votes"], rows, 7)


def temperatures(sources: dict[str, Source]) -> Feed:
    chance = random.Random(10)
    rows = [(f"sensor-{chance.randrange(9)}"[-8:], chance.uniform(-300, 6000)) for _ in range(500)]
    return of_messages(sources["celsius"], rows, 7)


def readings(sources: dict[str, Source]) -> Feed:
    chance = random.Random(11)
    rows = [
        (f"press-{chance.randrange(9)}", chance.uniform(0, 12), chance.uniform(40, 100)) for _ in range(500)
    ]
    return of_messages(sources["readings"], rows, 7)


def transactions(sources: dict[str, Source]) -> Feed:
    """Of half an hour, and, hours later, one that closes every minute."""
    chance, second_ns = random.Random(12), 10**9
    rows = [
        (f"account-{chance.randrange(6)}", chance.randrange(-60_000, 55_000), (index + 1) * 2 * second_ns)
        for index in range(900)
    ]
    rows += [(f"account-{number % 12}", 100_000, (1800 + number) * second_ns) for number in range(60)]
    rows.append(("account-0", 1, 10_000 * second_ns))
    return of_messages(sources["transactions"], rows, 5)


def card_events(sources: dict[str, Source]) -> Feed:
    """Payments small and large, of which some are confirmed in time or too late, and one hours later."""
    chance, second_ns = random.Random(13), 10**9
    kind = {each.name: each for each in sources["events"].schema.message.__annotations__["kind"]}
    rows = []
    for number in range(300):
        card, at_ns = f"card-{chance.randrange(12)}", chance.randrange(1, 1800 * second_ns)
        cents = chance.choice([100, 20_000, 60_000])
        rows.append((card, number, kind["PAID"], cents, at_ns))
        if chance.random() < 0.7:
            later_ns = at_ns + chance.choice([1, 59, 60, 90]) * second_ns
            rows.append((card, number, kind["CONFIRMED"], cents, later_ns))
    rows.sort(key=lambda row: int(row[-1]))
    rows.append(("card-0", 300, kind["PAID"], 1, 10_000 * second_ns))
    return of_messages(sources["events"], rows, 5)


def of_messages(source: Source, rows: Sequence[tuple[Any, ...]], size: int) -> Feed:
    """Messages of a source in frames of so many each."""
    messages = [source.schema.message(*row) for row in rows]
    return [
        (source.name, of_columns(Columns.of_messages(source.schema, messages[start : start + size])))
        for start in range(0, len(messages), size)
    ]


def session(
    planned: Plan, source: Source, *, partitions: int, frame_bytes_max: int, stream: str = "client"
) -> Session:
    """A client's: what the sender makes of its frames."""
    stage = planned.stage_of(source.name)
    route = SourceRoute(
        source,
        stage_topic(planned.application, stage.name),
        dead_letter_topic(planned.application),
        partitions,
        frame_bytes_max,
        needs_time=stage.needs_time,
        judges_lateness=stage.judges_lateness,
        needs_each_watermark=stage.needs_each_watermark,
    )
    return Session(route, Hello(source=source.name, stream=stream), [-1] * partitions)
