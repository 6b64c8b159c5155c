"""An application for tests of the sender, its messages in each form, and a log in memory."""

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated, Any

from bettong import Application, KafkaTopic, Width, each, f64, i64, packed, u8, u32
from bettong.application.key import Key
from bettong.application.nodes.source import Source
from bettong.application.on_error import OnError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, FrameKind, decode
from bettong.frames.refused import Refused, unpack
from bettong.ingest.session import Append, SourceRoute
from bettong.routing import partition_of
from bettong.schema.decoded import Decoder
from bettong.v1.frame_pb2 import Rows
from bettong.v1.ingest_pb2 import IngestFrame
from bettong_sender.feed import Feed
from bettong_sender.ownership import Lease

PARTITIONS = 4
LAYOUT = ">BI4sd"
FRAME_BYTES_MAX = 64 * 1024


@dataclass
class Order:
    """A message with a number of its own, so that each can be told from every other."""

    side: u8
    number: u32
    symbol: Annotated[str, Width(4)]
    price: f64


@dataclass
class Line:
    """A message of one text."""

    text: str


def application(
    name: str, *, orders_from: KafkaTopic | None = None, orders_decoder: Decoder | None = None
) -> Application:
    """Sources of each kind: `orders` by a key, `lines` without one, `quotes` without a decoder; and those that
    skip or refuse what they cannot read.
    """
    app = Application(name)
    orders_decoder = orders_decoder or packed(LAYOUT, prefix=b"\x01")
    app.source("orders", schema=Order, key="symbol", decoder=orders_decoder, from_=orders_from).sink(
        "all-orders"
    )
    app.source("lines", schema=Line, decoder=each(lambda row: Line(row.decode()))).sink("all-lines")
    app.source("quotes", schema=Order, key=lambda order: order.number).sink("all-quotes")
    decoder = packed(LAYOUT, prefix=b"\x01")
    app.source("lenient", schema=Order, key="symbol", decoder=decoder, on_error="skip").sink("all-lenient")
    app.source("strict", schema=Order, key="symbol", decoder=decoder, on_error="stop").sink("all-strict")
    return app


def source(key: Key | None = "symbol", *, decodes: bool = True, on_error: OnError = "dead-letter") -> Source:
    """The source `orders` of a new application."""
    app = Application("shop")
    decoder = packed(LAYOUT, prefix=b"\x01") if decodes else None
    app.source("orders", schema=Order, key=key, decoder=decoder, on_error=on_error).sink("all")
    return app.sources[0]


def json_source() -> Source:
    """Another one, `objects`, of orders as JSON."""
    app = Application("shop")
    app.source("objects", schema=Order, key="symbol", format="json").sink("all")
    return app.sources[0]


def route(of: Source | None = None, *, frame_bytes_max: int = FRAME_BYTES_MAX) -> SourceRoute:
    """Where its frames go."""
    return SourceRoute(of or source(), "shop.stage.orders", "shop.dead-letters", PARTITIONS, frame_bytes_max)


@dataclass
class Reading:
    """A message that tells when it was made."""

    sensor: u32
    at: i64


def readings(
    event_time: str | Callable[[Any], int] | None = "at",
    *,
    key: Key | None = "sensor",
    on_error: OnError = "dead-letter",
    out_of_order: timedelta = timedelta(0),
    max_lead: timedelta = timedelta(hours=1),
) -> SourceRoute:
    """Where readings go, to a stage that needs their time."""
    app = Application("shop")
    app.source(
        "orders",
        schema=Reading,
        key=key,
        on_error=on_error,
        event_time=event_time,
        out_of_order=out_of_order,
        max_lead=max_lead,
    ).sink("all")
    return replace(route(app.sources[0]), needs_time=True)


def readings_frame(sequence: int, *values: tuple[int, int]) -> IngestFrame:
    """Of sensors and times."""
    return columns_frame(readings().source, sequence, [Reading(*each) for each in values])


def sensor_of(partition: int) -> int:
    """One whose readings go there."""
    return next(sensor for sensor in range(1000) if partition_of(sensor, PARTITIONS) == partition)


def orders(numbers: Iterable[int], symbol: str | None = None) -> list[Order]:
    """Orders of those numbers; over eleven symbols, or of one."""
    return [Order(1, number, symbol or f"S{number % 11}", number / 4) for number in numbers]


def as_row(order: Order) -> bytes:
    """An order in the layout of the decoder."""
    return b"\x01" + struct.pack(LAYOUT, order.side, order.number, order.symbol.encode(), order.price)


def rows_frame(sequence: int, messages: Iterable[Order], *, spoilt: Iterable[bytes] = ()) -> IngestFrame:
    """A frame of rows, and after them rows that no decoder reads."""
    rows = [*map(as_row, messages), *spoilt]
    return IngestFrame(sequence=sequence, sent_ns=7, rows=Rows(messages=rows))


def columns_frame(of: Source, sequence: int, messages: Iterable[Order | Reading]) -> IngestFrame:
    """A frame of columns."""
    return IngestFrame(
        sequence=sequence, sent_ns=7, columns=Columns.of_messages(of.schema, list(messages)).payload()
    )


class MemoryLog:
    """What was appended, decoded, by topic and partition."""

    def __init__(self) -> None:
        self.frames: dict[tuple[str, int], list[Frame]] = defaultdict(list)
        self.data: dict[tuple[str, int], list[Frame]] = defaultdict(list)

    def extend(self, appends: Iterable[Append]) -> None:
        """Appends records in their order."""
        for append in appends:
            frame = decode(append.value)
            self.frames[append.topic, append.partition].append(frame)
            if frame.kind is FrameKind.DATA:
                self.data[append.topic, append.partition].append(frame)


def numbers_in(of: Source, frame: Frame) -> list[int]:
    """The numbers of the orders in a frame of the stage."""
    if frame.columns is None:
        return []
    return [order.number for order in Columns.of_payload(of.schema, frame.columns).messages()]


def refused_in(frame: Frame) -> list[Refused]:
    """The messages of a frame of the stage that the sender refused."""
    return list(unpack(frame.refused)) if frame.refused is not None else []


async def taken(feed: Feed, frame: IngestFrame) -> None:
    """Feeds a frame; returns when it was read and given to the log. Raises what it was refused for."""
    await feed.take(frame, frame.ByteSize(), None)
    await feed.all_appended()


async def request_taken(feed: Feed, data: bytes, lease: Lease) -> None:
    """The same of a frame as a client sends it."""
    await feed.take_request(data, lease)
    await feed.all_appended()
