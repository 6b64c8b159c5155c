"""What a sink's destination may be, told when the application is described."""

from typing import Any

import pytest

import bettong
from bettong.errors import ApplicationError
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
    ],
)
def test_a_sink_keeps_its_destination_as_data(to: Any) -> None:
    (sink,) = described(to).sinks
    assert sink.to is to


def test_a_sink_without_a_destination_has_none() -> None:
    assert described(None).sinks[0].to is None


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("postgres://secret@host", "is no destination; expected bettong.Postgres"),
        (bettong.Postgres, "is no destination"),
        (bettong.Postgres(""), "'' is no table"),
        (bettong.Postgres("a.b.c"), "'a.b.c' is no table"),
        (bettong.Postgres("n" * 64), "at most 63 bytes"),
        (bettong.KafkaTopic("no topic"), "'no topic' is no topic"),
        (bettong.KafkaTopic(".."), "'..' is no topic"),
        (bettong.KafkaTopic("t", positions="a/b"), "'a/b' is no topic"),
        (bettong.KafkaTopic("t", key="price"), "key='price': expected a field of Note that holds text"),
        (bettong.KafkaTopic("t", key="nothing"), "it has key, number, price"),
        (bettong.TwoPhase("ledger"), "expected a function that opens the sink"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_work_is_refused_by_name(to: Any, words: str) -> None:
    text = fault(to)
    assert text.startswith("sink 'out': ")
    assert words in text


def test_destinations_that_need_fields_take_no_encoder() -> None:
    assert "leave the encoder out" in fault(bettong.Postgres("totals"), encoder=encoded)
    assert "leave the key out" in fault(bettong.KafkaTopic("t", key="key"), encoder=encoded)
    described(bettong.KafkaTopic("t"), encoder=encoded)


def read_note(data: bytes) -> Note:
    return Note(data.decode(), 1, 1.0)


def source(kafka: Any, *, decodes: bool = True) -> bettong.Application:
    app = bettong.Application("app")
    decoder = bettong.each(read_note) if decodes else None
    app.source("in", schema=Note, key="key", decoder=decoder, kafka=kafka)
    return app


def test_a_source_keeps_its_topic_as_data_and_names_a_stream_a_partition() -> None:
    topic = bettong.ExternalTopic("trades.eu", connection="exchange")
    assert source(topic).sources[0].kafka is topic
    assert topic.stream(7) == "kafka.trades.eu.7"
    assert topic.owns("kafka.trades.eu.7")
    assert not topic.owns("kafka.trades")
    assert source(None, decodes=False).sources[0].kafka is None


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        ("trades", "expected bettong.ExternalTopic"),
        (bettong.ExternalTopic(""), "'' is no topic"),
        (bettong.ExternalTopic("a b"), "'a b' is no topic"),
        (bettong.ExternalTopic("t" * 101), "1 to 100 letters"),
        (bettong.ExternalTopic("t", start="now"), "start='now': expected 'earliest' or 'latest'"),  # type: ignore[arg-type]
        (bettong.ExternalTopic("t", on_lost="no"), "on_lost='no': expected 'stop' or 'skip'"),  # type: ignore[arg-type]
    ],
)
def test_a_topic_that_cannot_be_read_is_refused_by_name(topic: Any, words: str) -> None:
    with pytest.raises(ApplicationError, match="source 'in': ") as caught:
        source(topic)
    assert words in str(caught.value)


def test_a_source_that_reads_a_topic_needs_a_decoder() -> None:
    with pytest.raises(ApplicationError, match="give the source a decoder"):
        source(bettong.ExternalTopic("t"), decodes=False)
