"""States end where no record comes: real Kafka and Redis, resident slots as threads, and both schedules on Spark."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from bettong import metrics
from bettong.application.plan import plan
from bettong.edges.kafka_log import LogAdmin, LogReader, LogWriter
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.frames.frame import Frame, FrameKind, decode, encode
from bettong.identifiers import PartitionId, TopicPartition
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.metric_series import Metric
from bettong.topics import stage_topic
from tests.integration.applications import SUMS
from tests.integration.log_parts import FRAME_BYTES_MAX
from tests.integration.resident_slots import World, application, programs_of
from tests.servers.processor_process import PARTITIONS, ProcessorProcess, payments_frame
from tests.waiting import bound_s, eventually

SECOND_NS = 1_000_000_000
TTL_S = 3600
TTL_NS = TTL_S * SECOND_NS
MINUTE_S = 60.0
# A second, as docs say, and as much again as a busy machine may need.
LATE_S_MAX = 5.0


def frames(kafka: str, topic: str, partition: int) -> list[Frame]:
    """What a partition of a stage holds."""
    with LogAdmin(kafka) as admin:
        end = admin.ends([topic])[TopicPartition(topic, partition)]
    found: list[Frame] = []
    with LogReader(kafka, {TopicPartition(topic, partition): 0}, frame_bytes_max=FRAME_BYTES_MAX) as reader:
        while len(found) < end:
            found += [decode(record.value) for record in reader.poll(200, 1000)]
    return found


def assert_ended(log: list[Frame], due_ns: int) -> None:
    """One TICK has ended the state, in time and by a clock that is right; nothing else was written."""
    assert [frame.kind for frame in log] == [FrameKind.DATA, FrameKind.TICK]
    assert due_ns <= log[1].ingest_ns < due_ns + bound_s(LATE_S_MAX) * SECOND_NS
    assert log[1].ingest_ns <= time.time_ns()


@pytest.fixture
def world(kafka: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str]) -> Iterator[World]:
    name = unique_name("idle")
    planned = plan(application(name, ttl=timedelta(seconds=TTL_S)))
    one = World(name, kafka.bootstrap, redis_server.url, programs_of(planned, compiled=False))
    yield one
    one.close()


def expired(world: World) -> int:
    reported = world.metrics.partitions().get(PartitionId(world.stage.name, 0), {})
    return int(reported.get(metrics.EXPIRED.name, 0))


@pytest.mark.timely
@pytest.mark.parametrize("ahead_s", [0, 30 * 3600], ids=["right", "30 hours ahead"])
def test_a_slot_ends_a_state_at_its_time_whatever_its_own_clock_says(world: World, ahead_s: int) -> None:
    world.machine_ns = lambda: time.time_ns() + ahead_s * SECOND_NS
    due_ns = time.time_ns() + 3 * SECOND_NS
    world.feed(0, 1, ingest_ns=due_ns - TTL_NS)
    world.start(0)
    world.group.assign({0: [0, 1]})
    eventually(lambda: expired(world) == 1)
    assert_ended(frames(world.kafka, world.source, 0), due_ns)
    assert frames(world.kafka, world.source, 1) == []
    eventually(lambda: world.saved(0) == 2, what="the end of the state is saved")


@pytest.mark.timely
def test_who_restores_a_partition_ends_what_was_over_while_nobody_held_it(world: World) -> None:
    due_ns = time.time_ns() + 2 * SECOND_NS
    world.feed(0, 1, ingest_ns=due_ns - TTL_NS)
    slot = world.start(0)
    world.group.assign({0: [0]})
    world.await_saved(0)
    world.kill(slot)
    eventually(lambda: time.time_ns() > due_ns)
    world.start(1)
    world.group.assign({1: [0]})
    eventually(lambda: expired(world) == 1)
    assert [frame.kind for frame in frames(world.kafka, world.source, 0)] == [FrameKind.DATA, FrameKind.TICK]


WITH_TTL = SUMS.replace("import bettong\n", "from datetime import timedelta\nimport bettong\n").replace(
    "state=Sum", f"state=Sum, ttl=timedelta(seconds={TTL_S})"
)


@pytest.mark.timely
@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["micro-batch", "resident"])
def test_a_processor_ends_a_state_in_a_partition_that_no_record_reaches(
    schedule: str,
    tmp_path: Path,
    unique_name: Callable[..., str],
    kafka: KafkaBroker,
    redis_server: RedisServer,
) -> None:
    name = unique_name("idle")
    topic = stage_topic(name, "payments")
    source, settings = WITH_TTL.format(name=name), {"BETTONG_SCHEDULE": schedule}
    processor = ProcessorProcess(
        name, source, tmp_path, kafka=kafka.bootstrap, redis=redis_server.url, **settings
    )
    with processor, RedisStore(redis_server.url, name) as store:

        def reported(metric: Metric) -> int:
            found = LiveMetrics(store).partitions().get(PartitionId("payments", 0), {})
            return int(found.get(metric.name) or 0)

        due_ns = time.time_ns() + 10 * SECOND_NS
        frame = replace(decode(payments_frame(processor, 1)), ingest_ns=due_ns - TTL_NS)
        with LogWriter(kafka.bootstrap, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=1 << 24) as writer:
            writer.append(TopicPartition(topic, 0), encode(frame), lambda _: None)
        eventually(lambda: reported(metrics.KEYS) == 1, seconds=MINUTE_S)
        assert reported(metrics.DUE) == due_ns
        eventually(lambda: reported(metrics.EXPIRED) == 1, seconds=MINUTE_S)
        print(f"{schedule}: {(time.time_ns() - due_ns) / SECOND_NS:.2f} s after its time")  # noqa: T201 - measured
        assert_ended(frames(kafka.bootstrap, topic, 0), due_ns)
        assert (reported(metrics.KEYS), reported(metrics.DUE), reported(metrics.OFFSET)) == (0, 0, 2)
        for other in range(1, PARTITIONS):
            assert frames(kafka.bootstrap, topic, other) == []
