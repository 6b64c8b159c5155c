"""What nothing follows is saved, too: under both schedules the newest state can be read soon after the log rests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bettong import metrics
from bettong.edges.kafka_log import LogWriter
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.edges.snapshot_stores import REDIS, snapshot_store
from bettong.identifiers import PartitionId, TopicPartition
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.snapshots.chain import chains
from bettong.topics import stage_topic
from tests.integration.applications import SUMS
from tests.servers.processor_process import PARTITIONS, ProcessorProcess, payments_frame
from tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timely]

MINUTE_S = 60.0
# The default interval of snapshots, and 2 s.
READABLE_S = 1.0 + 2.0


@pytest.mark.parametrize("schedule", ["micro-batch", "resident"])
def test_the_newest_state_is_a_snapshot_soon_after_its_log_rests(
    schedule: str,
    tmp_path: Path,
    unique_name: Callable[..., str],
    kafka: KafkaBroker,
    redis_server: RedisServer,
) -> None:
    name = unique_name("rest")
    processor = ProcessorProcess(
        name,
        SUMS.format(name=name),
        tmp_path,
        kafka=kafka.bootstrap,
        redis=redis_server.url,
        BETTONG_SCHEDULE=schedule,
    )

    def fed(sequence: int, partitions: range) -> None:
        with LogWriter(kafka.bootstrap, frame_bytes_max=1024 * 1024, buffer_bytes_max=1 << 24) as writer:
            for partition in partitions:
                writer.append(
                    TopicPartition(stage_topic(name, "payments"), partition),
                    payments_frame(processor, sequence),
                    lambda _: None,
                )
            writer.flush(30)

    with processor, RedisStore(redis_server.url, name) as store:
        snapshots = snapshot_store(REDIS, name, store)

        def folded() -> list[int]:
            reported = LiveMetrics(store).partitions()
            return [
                int(reported.get(PartitionId("payments", each), {}).get(metrics.OFFSET.name, 0))
                for each in range(PARTITIONS)
            ]

        def saved() -> list[int]:
            found = [
                chains(snapshots.increments(PartitionId("payments", each))) for each in range(PARTITIONS)
            ]
            return [each[0][-1].offset if each else 0 for each in found]

        for sequence in (1, 2, 3):
            fed(sequence, range(PARTITIONS))
            eventually(lambda: folded() == [sequence] * PARTITIONS, seconds=MINUTE_S)  # noqa: B023 - at once
        eventually(
            lambda: saved() == [3] * PARTITIONS, seconds=READABLE_S, what=lambda: f"all rest: {saved()}"
        )

        # One rests while another goes on.
        fed(4, range(1))
        eventually(lambda: folded()[0] == 4, seconds=MINUTE_S)
        sequences = iter(range(4, 1000))

        def saved_beside() -> bool:
            fed(next(sequences), range(1, PARTITIONS))
            return saved()[0] == 4

        eventually(saved_beside, seconds=READABLE_S, what="one rests")
