"""Pages whose code is parts of programs: each part runs in a small program, and does there what its page says."""

from __future__ import annotations

import inspect
import io
import json
import re
import socket
import socketserver
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from struct import pack
from types import TracebackType
from typing import Annotated, Any, Self

import pytest

import bettong
from bettong import Application
from bettong.application.nodes.stateful import Stateful
from bettong.application.plan import plan
from bettong.client import Sender
from bettong.config.access import Permission, Read, Write, digest, parse
from bettong.config.connections import read_connections
from bettong.frames.columns import Columns
from bettong.local.addresses import LOOPBACK
from bettong.schema.schema import schema_of
from bettong.testing import TwoPhaseSinkContract, run
from bettong_receiver.connectors.postgres import CREATE_POSITIONS
from ledger_file import read_ledger
from ledger_sink import SqliteLedger
from tests.samples.page_code import blocks, languages, run_block

DOCS = Path(__file__).resolve().parents[2] / "docs"
SINKS, SOURCES, SPEEDS, DELIVERY, SECURITY = (
    DOCS / f"{name}.md" for name in ("sinks", "sources", "speeds", "delivery", "security")
)
# By page, its languages, and how many blocks of Python it has. That of "Files by fields" is run in test_docs_sinks.py.
PARTS = {
    SINKS: ({"python", "json", "sql", "text", ""}, 4),
    SOURCES: ({"python"}, 3),
    SPEEDS: ({"python"}, 1),
    DELIVERY: ({"python"}, 1),
    SECURITY: ({"python", "toml", "sh"}, 1),
}


@dataclass
class Total:
    key: str
    total: int


@dataclass
class Sum:
    total: int = 0


@pytest.mark.parametrize("page", PARTS, ids=lambda page: page.stem)
def test_a_page_has_no_code_that_no_test_here_runs(page: Path) -> None:
    allowed, parts = PARTS[page]
    assert languages(page) <= allowed
    assert len(blocks(page, "python")) == parts


def test_a_sink_is_a_table_of_postgres_and_the_connections_are_those_of_sinks(tmp_path: Path) -> None:
    app = Application("totals")
    totals = app.source("totals-in", schema=Total, key="key")
    run_block(SINKS, 0, totals=totals, bettong=bettong)
    (sink,) = plan(app).sinks
    assert (sink.name, sink.to) == ("totals", bettong.Postgres("totals"))
    found = []
    for number, text in enumerate(blocks(SINKS, "json")):
        path = tmp_path / f"{number}.json"
        path.write_text(text)
        found.append(read_connections(path))
    assert [list(each) for each in found] == [["totals"], ["by-hour"], ["totals"]]
    assert [sorted(each.popitem()[1])[:2] for each in found] == [
        ["url"],
        ["folder"],
        ["bootstrap_servers", "sasl_mechanism"],
    ]


def test_the_table_of_positions_is_the_one_that_the_receiver_makes() -> None:
    (shown,) = blocks(SINKS, "sql")
    made = CREATE_POSITIONS.as_string().format("bettong_positions")

    def words(statement: str) -> list[str]:
        return re.sub(r"IF NOT EXISTS|;", "", statement).replace("(", " ( ").replace(")", " ) ").split()

    assert words(shown) == words(made)


def test_the_peer_keeps_a_batch_and_says_so_before_the_next_one() -> None:
    kept: list[list[Any]] = []
    peer = run_block(SINKS, 2, socketserver=socketserver, json=json, keep=kept.append)["Keeper"]
    with socketserver.ThreadingTCPServer((LOOPBACK, 0), peer) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        with (
            socket.create_connection((LOOPBACK, server.server_address[1]), timeout=10) as line,
            line.makefile("rb") as answers,
        ):
            for batch in ([{"a": 1}, {"a": 2}], [], [{"a": 3}]):
                line.sendall(b"".join(json.dumps(each).encode() + b"\n" for each in batch) + b"\n")
                assert answers.readline() == b"ok\n"
                assert kept[-1] == batch
        server.shutdown()
    assert len(kept) == 3


# Collected as the page shows it, and run: eight tests.
TestLedger = run_block(
    SINKS, 3, pytest=pytest, SqliteLedger=SqliteLedger, read_ledger=read_ledger, sqlite3=sqlite3
)["TestLedger"]


def test_the_contract_of_the_page_is_collected() -> None:
    assert issubclass(TestLedger, TwoPhaseSinkContract)


@dataclass
class Order:
    """As the layout of the page has it, behind its first byte."""

    side: bettong.u8
    account: bettong.u32
    order_id: Annotated[bytes, bettong.Width(6)]
    symbol: Annotated[str, bettong.Width(4)]
    quantity: float
    price: float
    time: Annotated[bytes, bettong.Width(21)]


def decoded(decoder: Any, message: type[Any], row: bytes) -> Any:
    schema = schema_of(message)
    decoder.check("s", schema)
    found = decoder.decode(schema, [row])
    return Columns(schema, 1, tuple(found.columns)).messages()[0] if not found.refused else found.refused


def test_a_source_reads_a_topic_of_ours_by_its_layout() -> None:
    app = Application("orders")
    orders = run_block(SOURCES, 0, app=app, Order=Order, bettong=bettong)["orders"]
    orders.sink("out")
    (source,) = plan(app).sources
    assert source.from_ == bettong.KafkaTopic("trades", connection="exchange")
    values = (1, 7, b"order1", b"ACME", 5.0, 2.5, b"t" * 21)
    row = b"\x01" + pack(">BI6s4sdd21s", *values)
    assert decoded(source.decoder, Order, row) == Order(1, 7, b"order1", "ACME", 5.0, 2.5, b"t" * 21)


def test_messages_of_two_layouts_are_told_apart_by_their_first_byte() -> None:
    given = {"bettong": bettong, "dataclass": dataclass, "Annotated": Annotated}
    page = run_block(SOURCES, 1, **given)
    message, decoder = page["Message"], page["decoder"]
    order, quote = pack(">B4sddI", 1, b"ACME", 5.0, 2.5, 9), pack(">B4sdd", 2, b"ACME", 2.0, 3.0)
    assert decoded(decoder, message, order) == message(1, "ACME", 5.0, 2.5, 9)
    assert decoded(decoder, message, quote) == message(2, "ACME", 2.0, 3.0, 0)
    assert list(decoded(decoder, message, b"\x03" + quote[1:])) == [0]


@dataclass
class Attempt:
    card: str
    at: int


def test_a_source_says_when_what_it_reports_happened() -> None:
    app = Application("attempts")
    run_block(SOURCES, 2, app=app, Attempt=Attempt, timedelta=timedelta)["attempts"].sink("out")
    (source,) = plan(app).sources
    assert source.event_time.out_of_order_ns == 5 * 10**9
    assert source.event_time.of == "at"


@dataclass
class Trade:
    cents: int
    quantity: int


def test_a_vectorized_filter_judges_each_row_alone() -> None:
    large = run_block(SPEEDS, 0, bettong=bettong, Trade=Trade)["large"]
    app = Application("trades")
    app.source("trades", schema=Trade).filter(large).sink("large-trades")
    trades = [Trade(cents, quantity) for cents in (1, 999, 1000) for quantity in (1, 1000, 1001)]
    expected = [each for each in trades if each.cents * each.quantity >= 1_000_000]
    assert 0 < len(expected) < len(trades)
    assert run(app, [("trades", trades)]).outputs["large-trades"] == expected
    assert run(app, [("trades", [each]) for each in trades]).outputs["large-trades"] == expected


@dataclass
class Numbered:
    number: int


@dataclass
class DurableFrames:
    """Keeps what a stream has sent, and takes no call that the real one does not take."""

    frames: list[tuple[int, list[Any]]] = field(default_factory=list)
    room: int = 10**6

    @property
    def acknowledged(self) -> int:
        return self.frames[-1][0] if self.frames else 0

    def send_messages(self, *given: Any, **options: Any) -> None:
        call = inspect.signature(Sender.send_messages).bind(self, *given, **options)
        if len(self.frames) == self.room:
            raise ConnectionError("killed")
        self.frames.append((call.arguments["sequence"], list(call.arguments["messages"])))

    def __call__(self, *given: Any, **options: Any) -> Self:
        inspect.signature(Sender).bind(*given, **options)
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@pytest.mark.parametrize("killed_at", [0, 1, 3])
def test_a_client_that_was_killed_goes_on_behind_the_last_line_that_is_durable(killed_at: int) -> None:
    lines = b"".join(b'{"number": %d}\n' % number for number in range(4))
    opened: Callable[..., io.BytesIO] = lambda *_: io.BytesIO(lines)  # noqa: E731 - of `open`
    sent = DurableFrames(room=killed_at)
    given = {"open": opened, "Sender": sent, "Order": Numbered, "json": json}
    with pytest.raises(ConnectionError, match="killed"):
        run_block(DELIVERY, 0, **given)
    sent.room = 4
    run_block(DELIVERY, 0, **given)
    assert [each for _, messages in sent.frames for each in messages] == [Numbered(each) for each in range(4)]
    assert [sequence for sequence, _ in sent.frames] == [14, 28, 42, 56]


def test_a_token_may_do_what_its_entry_names_and_nothing_else() -> None:
    (entry,) = blocks(SECURITY, "toml")
    tokens = entry.replace("5c1f7a...64 digits", digest("secret"))
    holder = parse(tokens.replace("0b0e91...64 digits", digest("other"))).holder("secret")
    assert holder is not None
    assert holder.name == "feed"
    may: list[Permission] = [Write("orders", "feed-7"), Write("nbbo", "any"), Read("rejected")]
    may_not: list[Permission] = [Write("orders", "other"), Write("trades", "feed-7"), Read("dead-letters")]
    assert [holder.may(each) for each in (*may, *may_not)] == [True] * 3 + [False] * 3


def test_a_state_that_is_a_pickle_is_described_so() -> None:
    class Model:
        """Anything."""

    def train(message: Total, model: Model) -> Total:
        return message

    app = Application("models")
    stream = app.source("messages", schema=Total, key="key")
    train.__annotations__ = {"message": Total, "model": Model, "return": Total}
    trained = stream.stateful(train, state=Model, state_codec=bettong.Pickle, name="expected")
    asked: list[Any] = []

    class Asked:
        def stateful(self, *given: Any, **options: Any) -> None:
            asked.append(stream.stateful(*given, **options))

    run_block(SECURITY, 0, stream=Asked(), train=train, Model=Model, bettong=bettong)
    assert isinstance(trained.node, Stateful)
    assert asked[0].node.state_codec is trained.node.state_codec is bettong.Pickle
