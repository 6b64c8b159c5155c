"""Event times and TICKs of a sender process, in a real Kafka."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bettong import metrics
from bettong.frames.frame import Frame, FrameKind
from bettong.identifiers import Origin
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.topics import stage_topic
from bettong.v1.ingest_pb2 import Hello, IngestRequest
from tests.samples.sender import PARTITIONS, readings_frame, refused_in, sensor_of
from tests.servers.sender_process import BareSession, SenderProcess, frames_in, opened
from tests.waiting import eventually

NOW_NS = 1_700_000_000 * 1_000_000_000
FAR_AHEAD_NS = 2**62
OTHERS = set(range(1, PARTITIONS))

APPLICATION = """
from dataclasses import dataclass
from datetime import timedelta

import bettong
from tests.samples.sender import Reading


@dataclass
class Count:
    seen: int = 0


def count(reading: Reading, state: Count) -> Reading:
    state.seen += 1
    return reading


app = bettong.Application({name!r})
readings = app.source("orders", schema=Reading, key="sensor", event_time="at")
readings.stateful(count, state=Count, ttl=timedelta(hours=1), ttl_clock="event").sink("all")
"""


class TimedSender(SenderProcess):
    """A sender of readings whose event times a stage needs."""

    def prepare(self) -> None:
        """See Server."""
        self._file.write_text(APPLICATION.format(name=self.name))


@pytest.fixture
def sender(
    kafka: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str], tmp_path: Path
) -> Iterator[SenderProcess]:
    with TimedSender(
        unique_name(), tmp_path, kafka=kafka.bootstrap, redis=redis_server.url, BETTONG_TICK_MS="50"
    ) as process:
        yield process


def reported(frames: dict[int, list[Frame]], origin: Origin) -> dict[int, list[int]]:
    """The watermarks that TICKs carry of an origin, by partition."""
    return {
        partition: [
            frame.watermarks[origin]
            for frame in found
            if frame.kind is FrameKind.TICK and origin in frame.watermarks
        ]
        for partition, found in frames.items()
    }


def test_to_partitions_that_get_nothing_it_is_reported_how_far_clients_have_come_until_these_are_gone(
    sender: SenderProcess, kafka: KafkaBroker
) -> None:
    topic = stage_topic(sender.name, "orders")

    def await_ticks(origin: str, at: int) -> dict[int, list[Frame]]:
        """All that is in the log once it was reported to all partitions but the first."""
        found: dict[int, list[Frame]] = {}

        def complete() -> bool:
            found.update(frames_in(kafka.bootstrap, topic))
            return {
                partition for partition, each in reported(found, Origin(origin)).items() if at in each
            } == OTHERS

        eventually(complete, seconds=60, what=f"TICKs of {origin}")
        return found

    hello = IngestRequest(hello=Hello(source="orders", stream="short", client="tester", ephemeral=True))
    with BareSession(sender.address, hello) as short:
        short.welcome()
        short.send(readings_frame(1, (sensor_of(0), NOW_NS)))
        short.acknowledged(1)
        frames = await_ticks("orders/short", NOW_NS)
        (data,) = (frame for frame in frames[0] if frame.kind is FrameKind.DATA)
        assert data.watermark_ns == NOW_NS
        eventually(lambda: sender.metrics().get(metrics.TICKS.name) == str(PARTITIONS - 1), seconds=60)
        assert float(sender.metrics()[f"{metrics.WATERMARK_LAG.name}/orders"]) > 0

        with opened(sender.address, stream="other") as other:
            other.send(readings_frame(1, (sensor_of(2), FAR_AHEAD_NS)))
            other.send(readings_frame(2, (sensor_of(0), NOW_NS + 5)))
            assert other.acknowledged(2).dead_letters == 1
        frames = await_ticks("orders/other", NOW_NS + 5)
        (early,) = (each for frame in frames[2] if frame.kind is FrameKind.DATA for each in refused_in(frame))
        assert (early.index, early.message) == (0, b'{"sensor":%d,"at":%d}' % (sensor_of(2), FAR_AHEAD_NS))
        assert reported(frames, Origin("orders/short")) == {0: []} | {each: [NOW_NS] for each in OTHERS}, (
            "reported once"
        )
        short.finish()

    def ended() -> bool:
        found = frames_in(kafka.bootstrap, topic)
        return all(
            any(each.kind is FrameKind.END and each.origin == "orders/short" for each in of)
            for of in found.values()
        )

    eventually(ended, seconds=60, what="END in every partition that has heard of the stream")
