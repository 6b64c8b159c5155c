"""A sender that reaches Kafka and not Redis, which lists it no longer, so that the application may be repartitioned."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import grpc

from bettong.edges.kafka_log import LogAdmin
from bettong.frames.columns import Columns
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.schema.schema import schema_of
from bettong.topics import stage_topic
from tests.samples.sender import Order, as_row, orders, rows_frame
from tests.servers.external_topic import Producer
from tests.servers.sender_process import SenderProcess, frames_in, opened, taken
from tests.waiting import eventually


def numbers(kafka: KafkaBroker, sender: SenderProcess) -> list[int]:
    """The numbers of all orders that consumers take of the topic that is read, sorted."""
    return sorted(
        order.number
        for frames in frames_in(kafka.bootstrap, stage_topic(sender.name, "orders")).values()
        for frame in taken(frames)
        if frame.origin.startswith("orders/kafka.") and frame.columns is not None
        for order in Columns.of_payload(schema_of(Order), frame.columns).messages()
    )


def test_a_topic_is_not_read_on_and_frames_get_no_receipt_whatever_the_lease_until_redis_is_back(
    kafka: KafkaBroker, unique_name: Callable[..., str], tmp_path: Path
) -> None:
    name = unique_name("unlisted")
    with LogAdmin(kafka.bootstrap) as admin:
        admin.create_topics([f"{name}.external"], partitions=1, replication=1, frame_bytes_max=1_000_000)
    producer, sent = Producer(kafka.bootstrap), count()

    def send_one() -> int:
        number = next(sent)
        producer.send(f"{name}.external", 0, [as_row(order) for order in orders([number])])
        return number

    with (
        RedisServer(tmp_path / "redis") as redis,
        SenderProcess(
            name,
            tmp_path,
            kafka=kafka.bootstrap,
            redis=redis.url,
            sources=f"orders_from=bettong.KafkaTopic({name + '.external'!r}, connection='partner')",
            connections=f'{{"partner": {{"bootstrap_servers": "{kafka.bootstrap}"}}}}',
            BETTONG_SENDER_LEASE_MS="60000",
        ) as sender,
    ):
        sender.settle()
        send_one()
        eventually(lambda: numbers(kafka, sender) == [0], what="it is read")
        with opened(sender.address) as session:
            redis.kill()
            eventually(
                lambda: (send_one(), sender.said("this sender does not reach Redis"))[1], what="it waits"
            )
            session.send(rows_frame(1, orders([10**6])))
            code, text = session.status()
        assert code is grpc.StatusCode.UNAVAILABLE
        assert (
            "Kafka or Redis was away, and it is not known whether the application was repartitioned" in text
        )
        last = send_one()
        assert numbers(kafka, sender)[-1] < last
        redis.start()
        eventually(lambda: numbers(kafka, sender) == list(range(last + 1)), what="it is read on")
    producer.close()
