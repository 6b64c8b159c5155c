"""What all benchmarks measure: Market Spread's steady load, as bytes, as frames, and with its right answer."""

import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bettong.application.nodes.source import Source
from bettong.application.plan import Plan, plan
from bettong.edges.application_file import load
from bettong.frames.columns import Array, Columns
from bettong.frames.frame import Frame, encode
from bettong.identifiers import Origin, SequenceNumber
from examples.market_spread_load import INITIAL_QUOTES, SYMBOLS, Round, further_quotes, rounds
from examples.market_spread_oracle import Results, rejected, rows

APPLICATION = Path(__file__).parents[1] / "examples" / "market_spread" / "risk_check.py"
SEED = 1
ORIGIN = "benchmark"

_QUOTE = struct.Struct(">IB4s21sdd")
_ORDER = struct.Struct(">IBBI6s4sdd21s")


@dataclass(frozen=True, slots=True)
class Workload:
    """Generated load, and what a plain loop makes of it: result bytes by symbol.

    `further`: quotes that come first, beside the initial ones, where there are more symbols than these have.
    """

    rounds: list[Round]
    rejected: Results
    further: Round | None = None

    @property
    def messages(self) -> int:
        """Generated messages; the initial quotes, and the further ones, come on top."""
        return sum(each.messages for each in self.rounds)

    @property
    def result_bytes(self) -> int:
        """Bytes of all results."""
        return sum(len(result) for results in self.rejected.values() for result in results)


def workload(messages: int, *, seed: int = SEED, symbols: int = SYMBOLS) -> Workload:
    """The steady load with the rejecting symbols in it, 15 of 350, and its right answer."""
    generated, further = list(rounds(messages, seed=seed, symbols=symbols)), further_quotes(symbols)
    return Workload(generated, rejected([further, *generated]), further)


def planned() -> Plan:
    """Market Spread's plan."""
    return plan(load(str(APPLICATION)))


def user_module() -> Any:
    """The module of examples/market_spread/risk_check.py, as the application was loaded from it."""
    planned()
    return sys.modules["bettong_application_risk_check"]


def wire_messages(load: Workload) -> list[bytes]:
    """The initial quotes and the load as framed binary messages, in the order of sending."""
    data = INITIAL_QUOTES.read_bytes()
    messages = [data[offset : offset + _QUOTE.size] for offset in range(0, len(data), _QUOTE.size)]
    for each in load.rounds:
        messages += [_QUOTE.pack(_QUOTE.size - 4, 2, *row) for row in rows(each.quotes)]
        messages += [_ORDER.pack(_ORDER.size - 4, 1, *row) for row in rows(each.orders)]
    return messages


def column_frames(load: Workload, frame_messages: int) -> Iterator[tuple[Source, Columns]]:
    """The initial quotes and the load as columns of at most `frame_messages` messages."""
    quotes, orders = planned().sources
    data = INITIAL_QUOTES.read_bytes()
    initial = [data[offset + 4 : offset + _QUOTE.size] for offset in range(0, len(data), _QUOTE.size)]
    assert quotes.decoder is not None
    assert quotes.schema is not None
    decoded = quotes.decoder.decode(quotes.schema, initial)
    assert decoded.columns is not None
    yield quotes, Columns(quotes.schema, len(initial), tuple(decoded.columns))
    for each in load.rounds:
        for source, named in ((quotes, each.quotes), (orders, each.orders)):
            assert source.schema is not None
            columns = Columns(source.schema, len(named["symbol"]), tuple(named.values()))
            for piece in pieces(columns, frame_messages):
                yield source, piece


def pieces(columns: Columns, messages: int) -> Iterator[Columns]:
    """The columns, at most so many messages at a time."""
    for start in range(0, columns.length, messages):
        yield columns.slice(start, min(columns.length, start + messages))


def timed_frames(source: Source, columns: Columns, messages: int, times: Array) -> list[bytes]:
    """The columns as the records of one partition, so many messages each; the watermark is the last one's time."""
    return [
        log_frame(
            source,
            piece,
            sequence=number,
            previous=number - 1,
            now_ns=number,
            watermark_ns=int(times[min(number * messages, len(times)) - 1]),
        )
        for number, piece in enumerate(pieces(columns, messages), 1)
    ]


def log_frame(
    source: Source, columns: Columns, *, sequence: int, previous: int, now_ns: int, watermark_ns: int = 0
) -> bytes:
    """A frame as the sender would append it."""
    frame = Frame(
        origin=Origin(f"{source.name}/{ORIGIN}"),
        sequence=SequenceNumber(sequence),
        previous=SequenceNumber(previous),
        count=columns.length,
        schema=columns.schema.fingerprint,
        ingest_ns=now_ns,
        sent_ns=now_ns,
        watermark_ns=watermark_ns,
        columns=columns.payload(),
    )
    return encode(frame)
