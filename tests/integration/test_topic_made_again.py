"""A stage's topic that was deleted and made again: a processor has states of the records of the one before."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from bettong.application.plan import plan
from bettong.config.processor import ProcessorSettings
from bettong.config.reading import read
from bettong.edges.application_file import load
from bettong.edges.kafka_log import LogAdmin, LogWriter
from bettong.edges.redis_store import RedisSnapshots, RedisStore
from bettong.errors import LogTruncatedError
from bettong.identifiers import PartitionId, TopicPartition
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.logs import configure
from bettong.topics import stage_topic
from bettong.worker.partition import Assignment, PartitionWorker
from bettong_processor.programs import programs
from bettong_processor.service import _check
from tests.integration.applications import SUMS
from tests.waiting import eventually

PARTITIONS = 2
FRAME_BYTES_MAX = 1024 * 1024


class FoldedStage:
    """The only stage of an application: its topic, and its states."""

    def __init__(self, settings: ProcessorSettings) -> None:
        self.settings = settings
        self.plan = plan(load(settings.application))
        (stage,) = self.plan.stages
        self.id = PartitionId(stage.name, 0)
        self.topic = stage_topic(self.plan.application, stage.name)
        self.admin = LogAdmin(settings.kafka_connection)
        self.store = RedisStore(settings.redis_connection, self.plan.application)
        self.snapshots = RedisSnapshots(self.store)

    def check(self) -> None:
        """What a processor checks at its start."""
        topic_ids = self.admin.identities([self.topic])
        _check(self.settings, self.plan, self.admin, self.store, topic_ids, configure(self.settings, "test"))

    def make_topic(self) -> None:
        """Makes the topic, once it may be made."""
        eventually(
            lambda: self.admin.create_topics(
                [self.topic], partitions=PARTITIONS, replication=1, frame_bytes_max=FRAME_BYTES_MAX
            )
        )

    def delete_topic(self) -> None:
        client = KafkaAdminClient(bootstrap_servers=self.settings.kafka)
        client.delete_topics([self.topic])
        client.close()

    def append(self, records: int) -> None:
        with LogWriter(
            self.settings.kafka_connection, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=1 << 24
        ) as writer:
            for _ in range(records):
                writer.append(TopicPartition(self.topic, 0), b"no frame", lambda _: None)
            writer.flush(30)

    def fold(self, records: int) -> None:
        """Folds the records of partition 0, and saves its state."""
        program = programs(self.settings).stages[self.id.stage]
        assignment = Assignment(self.plan.application, 0, PARTITIONS, FRAME_BYTES_MAX)
        worker = PartitionWorker(program, assignment)
        for offset in range(records):
            worker.fold(offset, b"no frame")
        self.snapshots.save(self.id, *worker.increment())

    def close(self) -> None:
        self.admin.close()
        self.store.close()


@pytest.fixture
def stage(
    tmp_path: Path, unique_name: Callable[..., str], kafka: KafkaBroker, redis_server: RedisServer
) -> Iterator[FoldedStage]:
    file = tmp_path / "app.py"
    file.write_text(SUMS.format(name=unique_name("made-again")))
    overrides = {
        "application": str(file),
        "kafka": kafka.bootstrap,
        "redis": redis_server.url,
        "partitions": PARTITIONS,
        "kernel_cache": tmp_path / "kernels",
    }
    made = FoldedStage(read(ProcessorSettings, overrides))
    made.make_topic()
    yield made
    made.close()


def test_a_topic_that_was_made_again_is_refused_also_when_it_has_more_records_than_were_folded(
    stage: FoldedStage,
) -> None:
    stage.append(3)
    stage.check()
    stage.fold(3)
    stage.check()
    stage.delete_topic()
    stage.make_topic()
    stage.append(5)
    for _ in range(2):
        with pytest.raises(LogTruncatedError, match=f"topic {stage.topic} was deleted and made again"):
            stage.check()
    stage.store.ask("as the error says", lambda client: client.delete(stage.store.key("logs")))
    stage.check()


def test_without_states_a_topic_that_was_made_again_is_folded_from_its_beginning(stage: FoldedStage) -> None:
    stage.check()
    stage.delete_topic()
    stage.make_topic()
    stage.check()
    stage.append(1)
    stage.fold(1)
    stage.check()
