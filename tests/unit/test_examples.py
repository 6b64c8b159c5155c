"""The examples that newcomers copy, each in every way that it supports, against answers of a plain loop."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bettong.application.nodes.source import Source
from bettong.application.plan import Plan, plan
from bettong.edges.application_file import load
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, decode, encode, tick_record
from bettong.identifiers import Origin, SequenceNumber
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import StageProgram, program
from examples.market_spread_load import INITIAL_QUOTES, instruments, rounds
from examples.market_spread_oracle import RESULT, Oracle, by_symbol, nanoseconds, rows
from wire import unix_ns

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SEED = 20160902
MESSAGES = 60_000
FRAME_MESSAGES = 3000


@pytest.fixture(scope="module")
def market() -> Plan:
    return plan(load(str(EXAMPLES / "market_spread" / "risk_check.py")))


@pytest.fixture(scope="module", params=["python", "compiled"])
def check(request: pytest.FixtureRequest, market: Plan) -> StageProgram:
    return program(market.stages[0], compiled=request.param == "compiled")


def market_worker(of: StageProgram, market: Plan) -> PartitionWorker:
    return PartitionWorker(of, Assignment(market.application, 0, 1, 4 * 2**20))


def frames(
    source: Source, columns: Columns, *, first: int, messages: int = FRAME_MESSAGES
) -> Iterator[bytes]:
    """Columns as frames of a client, numbered from `first` on."""
    for number, start in enumerate(range(0, columns.length, messages), start=first):
        part = columns.slice(start, min(start + messages, columns.length))
        yield encode(
            Frame(
                origin=Origin(f"{source.name}/test"),
                sequence=SequenceNumber(number),
                previous=SequenceNumber(number - 1),
                count=part.length,
                schema=source.schema.fingerprint,
                columns=part.payload(),
            )
        )


class Client:
    """Feeds a worker, and collects what it puts out."""

    def __init__(self, worker: PartitionWorker) -> None:
        self.worker = worker
        self.sent: Counter[str] = Counter()
        self.output: list[OutputRecord] = []

    def send(self, source: Source, values: dict[str, np.ndarray[Any, Any]]) -> None:
        arrays = tuple(values[field.name].astype(field.dtype) for field in source.schema.fields)
        columns = Columns(source.schema, len(arrays[0]), arrays)
        for value in frames(source, columns, first=self.sent[source.name] + 1):
            self.output += self.worker.fold(self.worker.next_offset, value)
            self.sent[source.name] += 1

    def send_file(self, source: Source, path: Path) -> None:
        """A file of framed messages, through the source's decoder."""
        data = path.read_bytes()
        messages, offset = [], 0
        while offset < len(data):
            size = int.from_bytes(data[offset : offset + 4], "big")
            messages.append(data[offset + 4 : offset + 4 + size])
            offset += 4 + size
        assert source.decoder is not None
        decoded = source.decoder.decode(source.schema, messages)
        assert not decoded.refused
        assert decoded.columns is not None
        self.send(
            source, dict(zip([each.name for each in source.schema.fields], decoded.columns, strict=True))
        )

    def rejected(self) -> bytes:
        assert {record.topic for record in self.output} <= {"market-spread.sink.rejected"}
        return b"".join(row for record in self.output for row in decode(record.value).rows or ())


def test_market_spread_rejects_exactly_what_the_oracle_rejects(check: StageProgram, market: Plan) -> None:
    print(f"seed {SEED}")  # noqa: T201 - for whoever repeats it
    quotes, orders = market.sources
    load_rounds = list(rounds(MESSAGES, seed=SEED, round_messages=MESSAGES // 4))
    oracle = Oracle()
    assert oracle.initial_quotes(INITIAL_QUOTES) == 350
    oracle.rounds(load_rounds)
    client = Client(market_worker(check, market))
    client.send_file(quotes, INITIAL_QUOTES)
    for each in load_rounds:
        client.send(quotes, each.quotes)
        client.send(orders, each.orders)
    assert by_symbol(client.rejected()) == oracle.rejected
    assert len(client.rejected()) > 100 * RESULT.size
    assert client.worker.keys == 350
    assert client.worker.counters.messages == MESSAGES + 350


def test_every_order_of_the_15_rejecting_symbols_is_rejected_and_no_other(
    check: StageProgram, market: Plan
) -> None:
    quotes, orders = market.sources
    everything = instruments(rejecting=True)
    client = Client(market_worker(check, market))
    client.send_file(quotes, INITIAL_QUOTES)
    count = len(everything.symbols)
    client.send(
        orders,
        {
            "side": np.ones(count, "u1"),
            "account": np.arange(count),
            "order_id": np.full(count, b"000001"),
            "symbol": everything.symbols,
            "quantity": np.full(count, 100.0),
            "price": everything.prices,
            "time": np.full(count, b"20160902-15:48:09.123"),
        },
    )
    expected = set(everything.symbols[everything.rejecting].tolist())
    assert len(expected) == 15
    assert set(by_symbol(client.rejected())) == expected


def test_an_order_before_any_quote_is_rejected_with_no_price(check: StageProgram, market: Plan) -> None:
    _, orders = market.sources
    client = Client(market_worker(check, market))
    order = {
        "side": [1],
        "account": [7],
        "order_id": [b"000001"],
        "symbol": [b" NEW"],
        "quantity": [1.0],
        "price": [2.0],
    }
    values = {name: np.array(value) for name, value in order.items()}
    client.send(orders, values | {"time": np.array([b"20160902-15:48:09.123"])})
    *_, bid, offer, time_ns = RESULT.unpack(client.rejected())
    assert (bid, offer, time_ns) == (0.0, 0.0, 1472831289123000000)


def test_times_are_those_of_the_calendar() -> None:
    for time in [
        b"19700101-00:00:00.000",
        b"20000229-12:34:56.789",
        b"20160902-15:48:09.123",
        b"21000301-00:00:00.001",
    ]:
        assert unix_ns(time) == nanoseconds(time)


def test_the_load_is_what_the_reference_says(market: Plan) -> None:
    load_rounds = list(rounds(20_000, seed=SEED))
    assert sum(each.messages for each in load_rounds) == 20_000
    again = list(rounds(20_000, seed=SEED))
    for one, other in zip(load_rounds, again, strict=True):
        assert list(rows(one.orders)) == list(rows(other.orders))
    for each in load_rounds:
        assert not set(each.quotes["symbol"].tolist()) & set(each.orders["symbol"].tolist())
    assert [field.name for field in market.sources[1].schema.fields] == list(load_rounds[0].orders)


LINES = ["the quick brown fox", "the lazy dog", "", "THE  end", "the end"] * 20


@pytest.mark.parametrize("partitions", [1, 4])
def test_word_count_counts_as_a_counter_does(partitions: int) -> None:
    planned = plan(load(str(EXAMPLES / "word_count.py")))
    (source,) = planned.sources
    stages = {stage.name: program(stage, compiled=True) for stage in planned.stages}

    def workers(stage: str) -> list[PartitionWorker]:
        assignments = (Assignment("word-count", each, partitions, 2**20) for each in range(partitions))
        return [PartitionWorker(stages[stage], assignment) for assignment in assignments]

    assert source.decoder is not None
    messages = source.decoder.decode(source.schema, [line.encode() for line in LINES]).messages
    columns = Columns.of_messages(source.schema, messages or [])
    reader = workers("lines")[0]
    lines = reader_output(reader, frames(source, columns, first=1))
    counters = workers(planned.stages[1].name)
    schema = planned.stages[1].outputs[0].schema
    totals: dict[str, int] = {}
    for record in lines:
        counter = counters[record.partition]
        for frame in (decode(each.value) for each in counter.fold(counter.next_offset, record.value)):
            for result in Columns.of_payload(schema, frame.columns or b"").messages():
                assert result.total == totals.get(result.word, 0) + 1
                totals[result.word] = result.total
    assert totals == Counter(word for line in LINES for word in line.lower().split())


def reader_output(reader: PartitionWorker, values: Iterator[bytes]) -> list[OutputRecord]:
    return [record for value in values for record in reader.fold(reader.next_offset, value)]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("frame_messages", [1, 7, 1000])
def test_an_order_is_overdue_once_unless_it_was_approved_in_time(
    frame_messages: int,
    compiled: bool,  # noqa: FBT001 - pytest fills it in
) -> None:
    planned = plan(load(str(EXAMPLES / "overdue_orders.py")))
    (source,), (stage,) = planned.sources, planned.stages
    chance, minute_ns = random.Random(SEED), 60 * 10**9
    placed = {f"A-{number}": chance.randrange(1, 500 * minute_ns) for number in range(300)}
    # Some are approved in time, some at the last moment or too late, some never.
    approved = {
        order: at_ns + chance.choice([1, minute_ns - 1, minute_ns, 3 * minute_ns])
        for order, at_ns in placed.items()
        if chance.random() < 0.8
    }
    steps = sorted(
        [(at, order, False) for order, at in placed.items()]
        + [(at, order, True) for order, at in approved.items()]
    )
    worker = PartitionWorker(program(stage, compiled=compiled), Assignment("overdue", 0, 1, 2**20))
    messages = [source.schema.message(order, at_ns, is_approved) for at_ns, order, is_approved in steps]
    output: list[OutputRecord] = []
    for value in frames(
        source, Columns.of_messages(source.schema, messages), first=1, messages=frame_messages
    ):
        frame = decode(value)
        newest_ns = Columns.of_payload(source.schema, frame.columns or b"").messages()[-1].time
        output += reader_output(worker, iter([encode(replace(frame, ingest_ns=1, watermark_ns=newest_ns))]))
    end = tick_record("steps", 2, {Origin("steps/test"): 2**62})
    output += reader_output(worker, iter([end]))
    schema = stage.outputs[0].schema
    found = [each for one in output for each in Columns.of_payload(schema, decode(one.value).columns or b"")]
    expected = {
        order: at_ns + minute_ns
        for order, at_ns in placed.items()
        if approved.get(order, 2**62) >= at_ns + minute_ns
    }
    assert sorted((each.order, each.time) for each in found) == sorted(expected.items())
    assert 100 < len(expected) < 250
    assert worker.keys == 0


@pytest.mark.parametrize("frame_messages", [1, 7, 1000])
def test_turnover_is_what_a_loop_adds_up_however_trades_are_cut_into_frames(frame_messages: int) -> None:
    planned = plan(load(str(EXAMPLES / "turnover.py")))
    (source,), (stage,) = planned.sources, planned.stages
    chance = random.Random(SEED)
    trades = [(chance.choice("abcde"), chance.randrange(5000), chance.randrange(900)) for _ in range(1000)]
    worker = PartitionWorker(program(stage, compiled=True), Assignment("turnover", 0, 1, 2**20))
    columns = Columns.of_messages(source.schema, [source.schema.message(*trade) for trade in trades])
    output = reader_output(worker, frames(source, columns, first=1, messages=frame_messages))
    expected, so_far = [], Counter[str]()
    for symbol, cents, quantity in trades:
        if cents * quantity >= 1_000_000:
            so_far[symbol] += cents * quantity
            expected.append((symbol, cents * quantity, so_far[symbol]))
    schema = stage.outputs[0].schema
    found = [each for one in output for each in Columns.of_payload(schema, decode(one.value).columns or b"")]
    assert [(each.symbol, each.cents, each.so_far) for each in found] == expected
    assert len(expected) > 300
