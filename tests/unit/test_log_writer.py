"""A log writer without a broker: what a failed one raises tells its caller whether a new one may succeed."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from bettong.config.connection_settings import KafkaConnection
from bettong.edges.kafka_log import writer as writing
from bettong.edges.kafka_log.librdkafka import client
from bettong.edges.kafka_log.writer import LogWriter
from bettong.errors import LogError, LogUnavailableError
from bettong.identifiers import TopicPartition

NOBODY = "127.0.0.1:9"
TO = TopicPartition("notes", 0)


def opened(monkeypatch: pytest.MonkeyPatch, kind: type[Producer] = Producer) -> LogWriter:
    """A writer whose broker goes away once it has told its topics."""

    def connect(
        _: type[Producer], connection: KafkaConnection, options: dict[str, object]
    ) -> tuple[Any, dict[str, int]]:
        return client(kind, connection, options), {TO.topic: 1}

    monkeypatch.setattr(writing, "connect", connect)
    return LogWriter(NOBODY, frame_bytes_max=1000, buffer_bytes_max=10_000, delivery_timeout_ms=200)


def test_a_writer_that_failed_since_no_broker_answered_says_that_the_log_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers: list[int | LogError] = []
    with opened(monkeypatch) as log:
        log.append(TO, b"first", answers.append)
        log.flush(10.0)
        with pytest.raises(LogUnavailableError, match=r"cannot be used any more: .*no answer from Kafka"):
            log.append(TO, b"second", answers.append)
    assert [type(each) for each in answers] == [LogUnavailableError]


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        (KafkaError._TRANSPORT, LogUnavailableError),
        (KafkaError._FATAL, LogError),
    ],
)
def test_a_producer_that_refuses_a_value_says_whether_the_log_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, code: int, raised: type[LogError]
) -> None:
    class Failed(Producer):
        def produce(self, *_: object, **__: object) -> None:
            raise KafkaException(KafkaError(code))

    with opened(monkeypatch, Failed) as log:
        with pytest.raises(LogError, match="cannot be used any more") as found:
            log.append(TO, b"first", lambda _: None)
        log.flush(0.0)
    assert type(found.value) is raised


def test_a_closed_writer_does_not_say_that_the_log_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    log = opened(monkeypatch)
    log.close()
    with pytest.raises(LogError, match="cannot be used any more: it was closed") as found:
        log.append(TO, b"first", lambda _: None)
    assert type(found.value) is LogError
