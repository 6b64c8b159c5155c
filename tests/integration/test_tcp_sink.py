"""The at-least-once TCP sink: a receiver as a process, killed during deliveries."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from tests.samples.result_frames import note_frame as frame
from tests.samples.result_frames import note_numbers as expected
from tests.servers.receiver_process import Feed, ReceiverProcess, Store
from tests.servers.tcp_peer import Peer
from tests.waiting import eventually


@pytest.fixture
def name(unique_name: Callable[..., str]) -> str:
    return unique_name("tcp")


@pytest.mark.parametrize("seed", [20_261_121])
def test_through_kills_and_faults_of_the_peer_every_message_comes_and_first_in_order(
    name: str,
    kafka: KafkaBroker,
    redis_server: RedisServer,
    feed: Feed,
    store: Store,
    tmp_path: Path,
    seed: int,
) -> None:
    chance = random.Random(seed)
    with Peer(lines=True) as peer:
        receiver = ReceiverProcess(
            name,
            tmp_path,
            kafka=kafka.bootstrap,
            redis=redis_server.url,
            destinations="notes_to=bettong.AtLeastOnceTcp()",
            connections={"notes": {"address": "{}:{}".format(*peer.address)}},
        )

        def firsts() -> list[int]:
            return list(dict.fromkeys(json.loads(line)["number"] for line in peer.kept))

        try:
            last = 0
            for _ in range(2):
                receiver.launch()
                new = chance.randrange(20, 60)
                feed.append("notes", 0, [frame(0, last + number) for number in range(1, new + 1)])
                last += new
                wanted = chance.randrange(1, 2 * last)
                eventually(lambda least=wanted: len(firsts()) >= least, seconds=60)  # type: ignore[misc]
                receiver.kill()
            peer.answers = [None, b"no\n"]
            receiver.start()
            feed.append("notes", 0, [frame(0, last + 1)])
            eventually(lambda: firsts() == expected(last + 1), seconds=60)
            eventually(lambda: store.metrics().get("state") == "running", seconds=30)
        finally:
            receiver.kill()
