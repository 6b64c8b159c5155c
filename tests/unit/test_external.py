"""What a source may read and a sink append to, checked when the application is described."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, get_type_hints

import pytest

import bettong
from bettong.application.external.destination import Destination
from bettong.application.external.transport import OnLost, Start, Transport
from bettong.application.plan import plan
from bettong.cli.check import tree
from bettong.config.reading import read
from bettong.config.sender import SenderSettings
from bettong.errors import ApplicationError, LogUnavailableError
from bettong_sender.external_sources import external_sources
from tests.samples.result_frames import Note


def keep(note: Note) -> Note:
    return note


def described(to: Any, **options: Any) -> bettong.Application:
    app = bettong.Application("app")
    app.source("in", schema=Note, key="key").map(keep).sink("out", to=to, **options)
    return app


def fault(to: Any, **options: Any) -> str:
    with pytest.raises(ApplicationError) as caught:
        described(to, **options)
    return str(caught.value)


def encoded(note: Note) -> bytes:
    return note.key.encode()


@pytest.mark.parametrize(
    "to",
    [
        bettong.Postgres("totals"),
        bettong.Postgres('odd "name".totals', connection="warehouse"),
        bettong.KafkaTopic("totals", key="key"),
        bettong.KafkaTopic("totals", key="number", positions="mine"),
        bettong.TwoPhase(lambda _: None),  # type: ignore[arg-type,return-value]
        bettong.AtLeastOnceWebhook(),
        bettong.AtLeastOnceTcp(),
        bettong.PartitionedFiles(by="key"),
        bettong.PartitionedFiles(by=("key", "number"), connection="disk"),
    ],
)
def test_a_sink_keeps_its_destination_as_data(to: Any) -> None:
    (sink,) = described(to).sinks
    assert sink.to is to


def test_a_sink_without_a_destination_has_none() -> None:
    assert described(None).sinks[0].to is None


async def open_later(options: object) -> None:
    del options


POSTGRES: Any = bettong.Postgres
KAFKA_TOPIC: Any = bettong.KafkaTopic
TWO_PHASE: Any = bettong.TwoPhase


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("postgres://secret@host", "is no destination; expected a value of bettong.AtLeastOnceTcp, "),
        (bettong.Postgres, "is no destination"),
        (bettong.Postgres(""), "'' is no table"),
        (bettong.Postgres("a.b.c"), "'a.b.c' is no table"),
        (bettong.Postgres("n" * 64), "at most 63 bytes"),
        (POSTGRES(None), "None is no table: expected 'table' or 'schema.table'"),
        (POSTGRES("public.", connection="db"), "'public.' is no table"),
        (bettong.Postgres("tot\0als"), "is no table"),
        (POSTGRES("totals", connection=7), "connection=7: expected the name of an entry of the file"),
        (bettong.AtLeastOnceTcp(connection=""), "connection='': expected the name of an entry"),
        (KAFKA_TOPIC(None), "None is no topic"),
        (KAFKA_TOPIC("t", key=["key"]), "key=['key']: expected a field of Note that holds text"),
        (bettong.KafkaTopic("no topic"), "'no topic' is no topic"),
        (bettong.KafkaTopic(".."), "'..' is no topic"),
        (bettong.KafkaTopic("t" * 250), "1 to 249 letters"),
        (bettong.KafkaTopic("t", start="latest"), "are for sources, which read it; leave them out"),
        (bettong.KafkaTopic("t", on_lost="skip"), "are for sources, which read it; leave them out"),
        (bettong.KafkaTopic("t", positions="a/b"), "'a/b' is no topic"),
        (bettong.KafkaTopic("t", key="price"), "key='price': expected a field of Note that holds text"),
        (bettong.KafkaTopic("t", key="nothing"), "it has key, number, price"),
        (bettong.PartitionedFiles(by=()), "by=(): expected 1 to 8 different fields of Note"),
        (bettong.PartitionedFiles(by=("key", "key")), "expected 1 to 8 different fields of Note"),
        (bettong.PartitionedFiles(by=("key", "hour")), "Note has no field 'hour'; it has key, number, price"),
        (
            bettong.PartitionedFiles(by="price"),
            "field 'price' of Note is of kind float; folders are named after text,",
        ),
        (bettong.PartitionedFiles(by=["key"]), "expected the name of a field, or a tuple of names"),  # type: ignore[arg-type]
        (bettong.TwoPhase("ledger"), "expected a function that opens the sink"),  # type: ignore[arg-type]
        (
            TWO_PHASE(lambda: None),
            "TwoPhase(open_sink): must take one argument, the options of its connection",
        ),
        (TWO_PHASE(open_later), "TwoPhase(open_sink): it is an async function"),
    ],
)
def test_what_cannot_work_is_refused_by_name(to: Any, words: str) -> None:
    text = fault(to)
    assert text.startswith("sink 'out': ")
    assert words in text


def test_destinations_that_need_fields_take_no_encoder() -> None:
    assert "leave the encoder out" in fault(bettong.Postgres("totals"), encoder=encoded)
    assert "leave the key out" in fault(bettong.KafkaTopic("t", key="key"), encoder=encoded)
    assert "an encoder: leave it out" in fault(bettong.PartitionedFiles(by="key"), encoder=encoded)
    described(bettong.KafkaTopic("t"), encoder=encoded)


def read_note(data: bytes) -> Note:
    return Note(data.decode(), 1, 1.0)


def source(from_: Any, *, decodes: bool = True) -> bettong.Application:
    app = bettong.Application("app")
    decoder = bettong.each(read_note) if decodes else None
    app.source("in", schema=Note, key="key", decoder=decoder, from_=from_)
    return app


def test_a_source_keeps_its_topic_as_data_and_names_a_stream_a_partition() -> None:
    topic = bettong.KafkaTopic("trades.eu", connection="exchange")
    assert source(topic).sources[0].from_ is topic
    assert topic.stream(7) == "kafka.trades.eu.7"
    assert topic.owns("kafka.trades.eu.7")
    assert not topic.owns("kafka.trades")
    assert source(None, decodes=False).sources[0].from_ is None


@pytest.mark.parametrize(
    ("from_", "words"),
    [
        ("trades", "is nothing that a source can read; expected a value of bettong.KafkaTopic"),
        (bettong.KafkaTopic, "is nothing that a source can read"),
        (bettong.Postgres("trades"), "is nothing that a source can read"),
        (bettong.KafkaTopic(""), "'' is no topic"),
        (bettong.KafkaTopic("a b"), "'a b' is no topic"),
        (KAFKA_TOPIC(b"t"), "b't' is no topic"),
        (KAFKA_TOPIC("t", connection=b"c"), "connection=b'c': expected the name of an entry of the file"),
        (bettong.KafkaTopic("t" * 101), "1 to 100 letters"),
        (bettong.KafkaTopic("t", start="now"), "start='now': expected 'earliest' or 'latest'"),  # type: ignore[arg-type]
        (bettong.KafkaTopic("t", on_lost="no"), "on_lost='no': expected 'stop' or 'skip'"),  # type: ignore[arg-type]
        (bettong.KafkaTopic("t", key="key"), "are for sinks, which append to it; leave them out"),
        (bettong.KafkaTopic("t", positions="p"), "are for sinks, which append to it; leave them out"),
    ],
)
def test_a_topic_that_cannot_be_read_is_refused_by_name(from_: Any, words: str) -> None:
    with pytest.raises(ApplicationError, match="source 'in': ") as caught:
        source(from_)
    assert words in str(caught.value)


def test_a_source_that_reads_a_topic_needs_a_decoder() -> None:
    with pytest.raises(ApplicationError, match="give the source format='json', or a decoder"):
        source(bettong.KafkaTopic("t"), decodes=False)


def ours(kinds: list[Any]) -> list[Any]:
    return [kind for kind in kinds if kind.__module__.startswith("bettong.")]


@pytest.mark.parametrize("kind", ours(Destination.__subclasses__()), ids=lambda kind: kind.__name__)
def test_each_destination_is_delivered_to_by_the_module_of_its_kind(kind: type[Destination]) -> None:
    route = import_module(f"bettong_receiver.connectors.{kind.kind}").route
    assert get_type_hints(route)["to"].__name__ == kind.__name__


@pytest.mark.parametrize("kind", ours(Transport.__subclasses__()), ids=lambda kind: kind.__name__)
def test_each_transport_is_read_by_the_module_of_its_kind(kind: type[Transport]) -> None:
    opener = import_module(f"bettong_sender.readers.{kind.kind}").opener
    assert get_type_hints(opener)["transport"].__name__ == kind.__name__


@dataclass(frozen=True, slots=True)
class Tape(Transport):
    """A transport that nobody knows but its reader."""

    kind: ClassVar[str] = "tape"
    stream_prefix: ClassVar[str] = "tape."

    label: str
    connection: str | None = None
    start: Start = "earliest"
    on_lost: OnLost = "stop"

    @property
    def title(self) -> str:
        return f"tape {self.label}"

    def check_source(self, source: str, *, decodes: bool) -> None:
        if not decodes:
            raise ApplicationError(f"source {source!r}: give it a decoder")


def test_a_transport_of_a_new_kind_is_a_description_and_a_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    def opener(transport: Tape, *, source: str, connections: object) -> Callable[[], str]:
        return lambda: f"{source} reads {transport.label}, {connections}"

    reader = ModuleType("bettong_sender.readers.tape")
    vars(reader)["opener"] = opener
    monkeypatch.setitem(sys.modules, reader.__name__, reader)
    app = source(Tape("A7"))
    bettong.Stream[Any](app, app.sources[0]).sink("out")
    (found,) = external_sources(plan(app), read(SenderSettings, {"application": "app.py"}))
    assert (found.source, found.transport.stream(3)) == ("in", "tape.3")
    assert found.open_reader() == "in reads A7, {}"  # type: ignore[comparison-overlap]
    assert "reads tape A7" in str(tree(plan(app)).children[0].children[0].label)
    settings = read(SenderSettings, {"application": "app.py", "sender_topics": "none"})
    assert external_sources(plan(app), settings) == []


def test_each_session_reads_the_password_of_our_own_kafka_anew(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("first")
    app = source(bettong.KafkaTopic("trades"))
    bettong.Stream[Any](app, app.sources[0]).sink("out")
    connections = tmp_path / "connections.json"
    connections.write_text('{"in": {"bootstrap_servers": "elsewhere:9092"}}')
    secured = {"kafka_security": "sasl_plaintext", "kafka_user": "me", "kafka_password_file": str(password)}
    settings = read(SenderSettings, {"application": "app.py", "connections": str(connections), **secured})
    (found,) = external_sources(plan(app), settings)
    password.write_text("second")
    options = found.open_boundary_log()._options.for_librdkafka()
    assert options["sasl.password"] == "second"
    password.unlink()
    with pytest.raises(LogUnavailableError, match="BETTONG_KAFKA_PASSWORD_FILE"):
        found.open_boundary_log()
