"""Connections that grow old: clients of a sender and of a receiver connect anew, and nothing is lost or doubled."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bettong.client import Sender
from bettong.frames.columns import Columns
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.schema.schema import schema_of
from bettong.topics import stage_topic
from tests.samples.sender import Order, orders
from tests.servers.sender_process import SenderProcess, frames_in, taken
from tests.waiting import eventually

SCHEMA = schema_of(Order)


@pytest.mark.slow
def test_a_client_moves_to_a_new_connection_without_loss(
    kafka: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str], tmp_path: Path
) -> None:
    """A second of age, 5 s of grace: a stream that goes on is cut in the middle, and goes on elsewhere."""
    parts = {"kafka": kafka.bootstrap, "redis": redis_server.url, "BETTONG_CONNECTION_AGE_MAX_S": "1"}
    with SenderProcess(unique_name(), tmp_path, **parts) as process:
        sent = 0
        with Sender(process.address, "orders", "feed") as client:

            def moved() -> bool:
                nonlocal sent
                client.send_messages(orders([sent]))
                sent += 1
                return process.said("session opened") >= 2

            eventually(moved, seconds=60, what="another session of the same client")
            client.flush(60)
        assert process.said("Traceback") == 0
        found = [
            order.number
            for frames in frames_in(kafka.bootstrap, stage_topic(process.name, "orders")).values()
            for frame in taken(frames)
            if frame.columns is not None
            for order in Columns.of_payload(SCHEMA, frame.columns).messages()
        ]
    assert sorted(found) == list(range(sent))
