"""What the next start of a processor does after `bettong state reset`."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from bettong import metrics
from bettong.application.plan import plan
from bettong.config.processor import ProcessorSettings
from bettong.config.reading import read
from bettong.edges.application_file import load
from bettong.edges.kafka_log import LogWriter
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.edges.snapshot_stores import REDIS, snapshot_store
from bettong.identifiers import PartitionId, TopicPartition
from bettong.inspection.live.states import States
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.snapshots.chain import chains
from bettong.topics import stage_topic
from tests.integration.applications import SUMS
from tests.servers.locations import locations_of
from tests.servers.processor_process import PARTITIONS, ProcessorProcess, payments_frame
from tests.waiting import eventually

pytestmark = pytest.mark.slow

MINUTE_S = 60.0
FRAME_BYTES_MAX = read(ProcessorSettings, {"application": "app.py"}).frame_bytes_max


def test_an_idle_application_is_folded_again_by_micro_batches(
    kafka: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str], tmp_path: Path
) -> None:
    """Spark's checkpoint says that nothing is left to fold."""
    name = unique_name("reset")
    parts = {"kafka": kafka.bootstrap, "redis": redis_server.url, "BETTONG_SCHEDULE": "micro-batch"}
    processor = ProcessorProcess(name, SUMS.format(name=name), tmp_path, **parts)
    with ExitStack() as stack, RedisStore(redis_server.url, name) as store:
        stack.callback(processor.kill)

        def folded() -> set[str | None]:
            return {each.get(metrics.OFFSET.name) for each in LiveMetrics(store).partitions().values()}

        def snapshots() -> set[int]:
            kept = snapshot_store(REDIS, name, store)
            ids = [PartitionId("payments", partition) for partition in range(PARTITIONS)]
            return {chain[-1].offset for each in ids for chain in chains(kept.increments(each))}

        processor.launch()
        eventually(processor.answers, seconds=2 * MINUTE_S, what="it runs")
        feed(kafka, processor)
        eventually(lambda: folded() == {"1"}, seconds=MINUTE_S, what="all is folded")
        processor.terminate()
        assert processor.status() == 0
        assert snapshots() == {1}

        planned = plan(load(processor.command.environment["BETTONG_APPLICATION"]))
        where = locations_of(
            kafka.connection,
            redis_server.connection,
            state_dir=tmp_path / "state",
            frame_bytes_max=FRAME_BYTES_MAX,
        )
        with States(planned, where) as states:
            states.clear()
        assert snapshots() == set()
        assert folded() == set(), "status counts all records as waiting"

        processor.launch()
        eventually(lambda: folded() == {"1"}, seconds=2 * MINUTE_S, what="all is folded again")
        processor.terminate()
        assert processor.status() == 0
        assert snapshots() == {1}


def feed(kafka: KafkaBroker, processor: ProcessorProcess) -> None:
    """One frame a partition."""
    topic = stage_topic(processor.name, "payments")
    with LogWriter(kafka.bootstrap, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=1 << 24) as writer:
        for partition in range(PARTITIONS):
            writer.append(TopicPartition(topic, partition), payments_frame(processor, 1), lambda _: None)
        writer.flush(30)
