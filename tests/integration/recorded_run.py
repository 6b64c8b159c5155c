"""An application that ran in memory, and left in Kafka and Redis what one that runs leaves there."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bettong.application.plan import Plan, plan
from bettong.edges.application_file import load
from bettong.edges.kafka_log import LogAdmin, LogWriter
from bettong.edges.redis_store import RedisSnapshots, RedisStore
from bettong.errors import LogError
from bettong.identifiers import TopicPartition
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.spark import WhereOptions
from bettong.testing import AppSession, Outcome
from bettong.testing.memory_processor import AtEachRecord
from bettong.topics import stage_topic
from tests.integration.log_parts import FRAME_BYTES_MAX
from tests.samples.spark_application import PROGRAM

PARTITIONS = 3
BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


class RecordedRun:
    """An application that ran: its logs, with repetitions, and its snapshots. `outcome`: what it must have given."""

    def __init__(
        self, name: str, file: Path, kafka: KafkaBroker, redis: RedisServer, *, source: str = PROGRAM
    ) -> None:
        self.name, self.kafka, self.redis = name, kafka, redis
        self.app = file
        self.app.write_text(source.replace("{name!r}", repr(name)))
        self.outcome = Outcome({}, [], {}, [], {})
        self.where = WhereOptions(kafka=kafka.bootstrap, redis=redis.url, directory=file.parent)

    @property
    def plan(self) -> Plan:
        return plan(load(str(self.app)))

    def make_topics(self) -> None:
        with LogAdmin(self.kafka.bootstrap) as admin:
            admin.create_topics(
                self.plan.topics, partitions=PARTITIONS, replication=1, frame_bytes_max=FRAME_BYTES_MAX
            )

    def run(self, inputs: Iterable[object]) -> None:
        """In memory, where each record comes twice to each stage. Then its logs go to Kafka, and its states to Redis.

        So do its results, of which some come twice, too: as from a processor that died and came back.
        """
        session = AppSession(load(str(self.app)), partitions=PARTITIONS, at_each_record=AtEachRecord.TWICE)
        session.step(*inputs)
        self.outcome = session.finish()
        stages = {stage_topic(self.name, stage.name) for stage in self.plan.stages}
        with RedisStore(self.redis.url, self.name) as store:
            for id_, partition in session._processor.partitions.items():
                topic = TopicPartition(stage_topic(self.name, id_.stage), id_.partition)
                results = [each for found in partition._outputs for each in found if each.topic not in stages]
                self.append((topic, value) for value in partition._log)
                for again in (results, results[::2]):
                    self.append((TopicPartition(each.topic, each.partition), each.value) for each in again)
                RedisSnapshots(store).save(id_, *partition.worker.increment())

    def append(self, records: Iterable[tuple[TopicPartition, bytes]]) -> None:
        """To Kafka."""
        with LogWriter(
            self.kafka.bootstrap, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=1 << 24
        ) as log:
            for topic, value in records:
                log.append(topic, value, raise_error)
            log.flush(30)

    def payments(self, count: int) -> Iterator[tuple[str, list[Any]]]:
        """Frames of several each, one of which cannot be processed."""
        payment, chance = self.plan.sources[0].schema.message, random.Random(7)
        for number in range(count):
            yield (
                "payments",
                [
                    payment(
                        f"account-{chance.randrange(20)}",
                        chance.randrange(60_000, 60_005),
                        float(13 if (number, index) == (3, 1) else chance.randrange(100) * 2),
                        BEGIN + timedelta(seconds=number, milliseconds=index),
                    )
                    for index in range(4)
                ],
            )


def raise_error(answer: int | LogError) -> None:
    if isinstance(answer, LogError):
        raise answer
