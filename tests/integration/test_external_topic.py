"""A topic of the user's as a source: a sender as a process, real brokers, killed in the middle of everything."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from kafka import KafkaAdminClient, TopicPartition

from bettong import metrics
from bettong.edges.kafka_log import LogAdmin
from bettong.frames.columns import Columns
from bettong.frames.refused import Refused
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.schema.schema import schema_of
from bettong.topics import boundaries_topic, stage_topic
from bettong_sender.batcher import BatchBoundaries
from tests.samples.sender import Order, as_row, orders, refused_in, rows_frame
from tests.servers.external_topic import Producer, committed
from tests.servers.freezing import frozen
from tests.servers.sender_process import (
    FRAME_BYTES_MAX,
    BareSession,
    SenderProcess,
    frames_in,
    hello,
    opened,
    taken,
)
from tests.waiting import eventually

SCHEMA = schema_of(Order)
EXTERNAL_PARTITIONS = 2


@pytest.fixture
def name(unique_name: Callable[..., str]) -> str:
    return unique_name("external")


@pytest.fixture
def external(name: str, kafka: KafkaBroker) -> str:
    """A topic of the user's on the shared broker."""
    return created(kafka, f"{name}.external")


@pytest.fixture
def producer(kafka: KafkaBroker) -> Iterator[Producer]:
    one = Producer(kafka.bootstrap)
    yield one
    one.close()


Make = Callable[..., SenderProcess]


@pytest.fixture
def make(
    name: str, external: str, kafka: KafkaBroker, redis_server: RedisServer, tmp_path: Path
) -> Iterator[Make]:
    """Makes senders that read the topic; none is started, all are killed at the end."""
    made: list[SenderProcess] = []

    def one(
        *,
        there: str = kafka.bootstrap,
        topic: str = external,
        options: str = "",
        sources: str = "",
        **settings: str,
    ) -> SenderProcess:
        folder = tmp_path / f"sender-{len(made)}"
        folder.mkdir()
        made.append(
            SenderProcess(
                name,
                folder,
                kafka=kafka.bootstrap,
                redis=redis_server.url,
                sources=f"orders_from=bettong.KafkaTopic({topic!r}, connection='partner', {options}), {sources}",
                connections=json.dumps({"partner": {"bootstrap_servers": there, "client_id": "mine"}}),
                **settings,
            )
        )
        return made[-1]

    yield one
    for each in made:
        each.kill()


def created(broker: KafkaBroker, topic: str) -> str:
    with LogAdmin(broker.bootstrap) as admin:
        admin.create_topics([topic], partitions=EXTERNAL_PARTITIONS, replication=1, frame_bytes_max=1_000_000)
    return topic


def numbers(kafka: KafkaBroker, name: str, partition: int, topic: str) -> list[int]:
    """The numbers of all orders that a consumer takes from an external partition, symbol by symbol in log order."""
    found: dict[str, list[int]] = {}
    for frames in frames_in(kafka.bootstrap, stage_topic(name, "orders")).values():
        for frame in taken(frames):
            if frame.origin == f"orders/kafka.{topic}.{partition}" and frame.columns is not None:
                for order in Columns.of_payload(SCHEMA, frame.columns).messages():
                    found.setdefault(order.symbol, []).append(order.number)
    for each in found.values():
        assert each == sorted(each), "the order of a key"
    return sorted(number for each in found.values() for number in each)


def rows(first: int, last: int) -> list[bytes]:
    return [as_row(order) for order in orders(range(first, last))]


@pytest.mark.parametrize("seed", [1, 2])
def test_after_many_kills_every_record_is_taken_once_and_in_order(
    make: Make, name: str, external: str, kafka: KafkaBroker, producer: Producer, seed: int
) -> None:
    """SIGKILL at random moments, beside aborted transactions: their records, and markers, leave gaps of offsets."""
    chance = random.Random(seed)
    transactional = Producer(kafka.bootstrap, transactional_id=name)
    sender = make()
    last = [0, 0]
    sender.start()  # once, so that its topics are there to be looked at
    for _ in range(6):
        sender.launch()
        for _ in range(chance.randrange(2, 6)):
            for partition in range(EXTERNAL_PARTITIONS):
                new = last[partition] + chance.randrange(1, 400)
                values = rows(last[partition], new)
                if chance.random() < 0.3:
                    transactional.transaction(external, partition, rows(10**6, 10**6 + 5), commit=False)
                    transactional.transaction(external, partition, values, commit=True)
                else:
                    producer.send(external, partition, values)
                last[partition] = new
        if chance.random() < 0.8:
            wanted = chance.randrange(last[0])
            eventually(lambda least=wanted: len(numbers(kafka, name, 0, external)) >= least, seconds=60)  # type: ignore[misc]
        sender.kill()
    sender.start()
    for partition in range(EXTERNAL_PARTITIONS):
        eventually(
            lambda p=partition: numbers(kafka, name, p, external) == list(range(last[p])),  # type: ignore[misc]
            seconds=60,
            what="all of it, once",
        )
    transactional.close()
    sender.stop()
    assert sender.process is not None
    assert str(sender.process.ending) == "exit code 0"


def test_a_reader_that_was_thought_dead_doubles_nothing(
    make: Make, name: str, external: str, kafka: KafkaBroker, producer: Producer
) -> None:
    """It stands still, another sender takes over, it goes on: the first finds itself shut out and says so."""
    old, new = make(), make(BETTONG_INSTANCE="sender-2")
    old.start()
    producer.send(external, 0, rows(0, 100))
    eventually(lambda: numbers(kafka, name, 0, external) == list(range(100)), seconds=30)
    with frozen(old):
        producer.send(external, 0, rows(100, 300))
        new.start()
        eventually(lambda: len(numbers(kafka, name, 0, external)) == 300, seconds=60)
    for first in range(300, 1300, 50):
        producer.send(external, 0, rows(first, first + 50))
    eventually(lambda: old.said("another process has taken over"), seconds=30)
    old.kill()
    eventually(lambda: numbers(kafka, name, 0, external) == list(range(1300)), seconds=90)


def test_garbage_and_oversized_records_become_dead_letters_and_tombstones_nothing(
    make: Make, name: str, external: str, kafka: KafkaBroker, producer: Producer
) -> None:
    sender = make()
    sender.start()
    producer.send(external, 1, [b"garbage", None, *rows(0, 3), b"", None])
    eventually(lambda: numbers(kafka, name, 1, external) == [0, 1, 2], seconds=30)

    def dead_letters() -> list[Refused]:
        return [
            each
            for frames in frames_in(kafka.bootstrap, stage_topic(name, "orders")).values()
            for frame in taken(frames)
            if frame.origin == f"orders/kafka.{external}.1"
            for each in refused_in(frame)
        ]

    eventually(
        lambda: [dead_letter.message for dead_letter in dead_letters()] == [b"garbage", b""], seconds=30
    )
    eventually(lambda: sender.metrics().get("lag/orders") == "0", seconds=30)
    oversized = b"g" * (FRAME_BYTES_MAX + 1)
    producer.send(external, 1, [*rows(3, 4), oversized, *rows(4, 6)])
    eventually(lambda: numbers(kafka, name, 1, external) == list(range(6)), seconds=30, what="it goes on")
    eventually(lambda: len(dead_letters()) == 3, seconds=30)
    dead_letter = dead_letters()[-1]
    assert (
        f"the record at offset 8 of partition 1 of topic {external} has {FRAME_BYTES_MAX + 1} bytes"
        in dead_letter.reason
    )
    assert (dead_letter.as_received, dead_letter.truncated) == (True, True)
    assert oversized.startswith(dead_letter.message)
    sender.kill()
    sender.start()
    producer.send(external, 1, rows(6, 7))
    eventually(lambda: numbers(kafka, name, 1, external) == list(range(7)), seconds=30)
    assert len(dead_letters()) == 3, "once"


def test_a_cluster_that_is_away_is_waited_for_and_read_on(
    make: Make, name: str, external: str, kafka: KafkaBroker, own_broker: KafkaBroker
) -> None:
    sender = make(there=own_broker.bootstrap)
    sender.start()
    eventually(lambda: "there is no such topic" in sender.metrics().get("detail", ""), seconds=30)
    created(own_broker, external)
    there = Producer(own_broker.bootstrap)
    there.send(external, 0, rows(0, 10))
    eventually(lambda: numbers(kafka, name, 0, external) == list(range(10)), seconds=60)
    eventually(lambda: sender.metrics()["state"] == "running", seconds=30)
    own_broker.kill()
    own_broker.start()
    there.send(external, 0, rows(10, 20))
    there.close()
    eventually(lambda: numbers(kafka, name, 0, external) == list(range(20)), seconds=60)


@pytest.mark.parametrize("on_lost", ["stop", "skip"])
def test_records_that_were_deleted_unread_stop_the_source_or_are_skipped_with_a_line(
    make: Make, name: str, external: str, kafka: KafkaBroker, producer: Producer, on_lost: str
) -> None:
    sender = make(options=f"on_lost={on_lost!r}")
    sender.start()
    producer.send(external, 0, rows(0, 10))
    eventually(lambda: numbers(kafka, name, 0, external) == list(range(10)), seconds=30)
    sender.stop()
    producer.send(external, 0, rows(10, 30))
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    admin.delete_records({TopicPartition(external, 0): 20})
    admin.close()
    sender.start()
    if on_lost == "stop":
        eventually(
            lambda: (
                "records 10 to 19 were deleted before they were read" in sender.metrics().get("detail", "")
            ),
            seconds=30,
        )
        assert numbers(kafka, name, 0, external) == list(range(10))
    else:
        wanted = [*range(10), *range(20, 30)]
        eventually(lambda: numbers(kafka, name, 0, external) == wanted, seconds=30)
        assert sender.said("records lost")


def test_deleted_markers_and_aborted_records_are_no_records_that_were_lost(
    make: Make, name: str, external: str, kafka: KafkaBroker
) -> None:
    sender = make()
    sender.start()
    producer = Producer(kafka.bootstrap, transactional_id=name)
    producer.transaction(external, 0, rows(0, 10), commit=True)  # offsets 0 to 9, and 10 is its marker
    producer.transaction(external, 0, rows(90, 93), commit=False)  # 11 to 13, and 14
    eventually(lambda: numbers(kafka, name, 0, external) == list(range(10)), seconds=30)
    stored = boundaries_topic(name, "orders")
    eventually(
        lambda: BatchBoundaries.decode(committed(kafka.bootstrap, stored)[-1][2]).durable == 15,
        seconds=30,
    )
    sender.kill()
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    admin.delete_records({TopicPartition(external, 0): 15})
    admin.close()
    producer.transaction(external, 0, rows(10, 20), commit=True)
    producer.close()
    sender.start()
    eventually(lambda: numbers(kafka, name, 0, external) == list(range(20)), seconds=30)
    assert not sender.said("deleted before they were read")


def test_another_topic_is_read_from_its_own_beginning(
    make: Make, name: str, external: str, kafka: KafkaBroker, producer: Producer
) -> None:
    first = make()
    first.start()
    producer.send(external, 0, rows(0, 10))
    eventually(lambda: numbers(kafka, name, 0, external) == list(range(10)), seconds=30)
    first.stop()
    another = created(kafka, f"{name}.another")
    producer.send(another, 0, rows(10, 35))
    second = make(topic=another)
    second.start()
    eventually(lambda: numbers(kafka, name, 0, another) == list(range(10, 35)), seconds=30)
    second.stop()
    producer.send(external, 0, rows(50, 55))
    back = make()
    back.start()
    wanted = [*range(10), *range(50, 55)]
    eventually(lambda: numbers(kafka, name, 0, external) == wanted, seconds=30)


def test_a_topic_that_was_made_anew_is_refused_however_much_it_holds(
    make: Make, name: str, external: str, kafka: KafkaBroker, producer: Producer
) -> None:
    sender = make()
    sender.start()
    producer.send(external, 0, rows(0, 10))
    eventually(lambda: numbers(kafka, name, 0, external) == list(range(10)), seconds=30)
    sender.stop()
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    admin.delete_topics([external])
    with LogAdmin(kafka.bootstrap) as log:
        eventually(lambda: not log.partition_counts([external])[external], seconds=30)
    admin.close()
    created(kafka, external)
    producer.send(external, 0, rows(10, 40))
    sender.start()
    eventually(
        lambda: f"topic {external}/0 was deleted and made anew" in sender.metrics().get("detail", ""),
        seconds=30,
    )
    assert numbers(kafka, name, 0, external) == list(range(10))


def test_a_sender_whose_decoder_never_returns_ends_when_it_is_told_to(
    make: Make, external: str, producer: Producer
) -> None:
    sender = make(sources="orders_decoder=bettong.each(lambda row: __import__('time').sleep(600))")
    sender.start()
    producer.send(external, 0, [b"anything"])
    eventually(lambda: "source orders is busy" in sender.metrics().get(metrics.DETAIL.name, ""), seconds=30)
    process = sender.process
    assert process is not None
    process.terminate()
    ending = process.wait(60)
    assert ending is not None
    assert ending.status == 0


def test_reading_may_begin_with_what_is_new(
    make: Make, name: str, external: str, kafka: KafkaBroker, producer: Producer
) -> None:
    producer.send(external, 0, rows(0, 10))
    sender = make(options="start='latest'")
    sender.start()
    eventually(lambda: sender.said("reads an external source"), seconds=30)
    producer.send(external, 0, rows(10, 20))
    eventually(lambda: numbers(kafka, name, 0, external) == list(range(10, 20)), seconds=30)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"BETTONG_SENDER_TOPICS": "lines"}, "BETTONG_SENDER_TOPICS: lines: expected all, none, or sources"),
        ({"BETTONG_CONNECTIONS": ""}, "source 'orders' needs the connection 'partner'"),
    ],
)
def test_settings_that_do_not_fit_stop_the_start(make: Make, settings: dict[str, str], words: str) -> None:
    sender = make(**settings)
    sender.launch()
    assert sender.process is not None
    ending = sender.process.wait(60.0)
    assert ending is not None
    assert ending.status == 4
    assert sender.said(words)


def test_clients_may_feed_the_source_too_but_not_under_a_partitions_name(
    make: Make, name: str, external: str, kafka: KafkaBroker, producer: Producer
) -> None:
    sender = make()
    sender.start()
    producer.send(external, 0, rows(0, 10))
    with opened(sender.address, "orders", "client") as session:
        session.send(rows_frame(1, orders(range(100, 110))))
        session.acknowledged(1)
    with BareSession(sender.address, hello("orders", f"kafka.{external}.0")) as session:
        status, text = session.status()
    assert status is grpc.StatusCode.INVALID_ARGUMENT
    assert "choose another name" in text
    eventually(lambda: numbers(kafka, name, 0, external) == list(range(10)), seconds=30)


def test_a_sender_that_shall_read_none_reads_none(make: Make, external: str, producer: Producer) -> None:
    sender = make(BETTONG_SENDER_TOPICS="none")
    sender.start()
    producer.send(external, 0, rows(0, 1))
    eventually(lambda: sender.metrics().get("state") == "running", seconds=30)
    sender.stop()
    assert not sender.said("reads an external source")
