"""A receiver as a process of its own, and a log to feed it with, for tests against a real broker and Redis."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from bettong.application.plan import Plan
from bettong.edges.kafka_log import LogAdmin, LogWriter
from bettong.edges.redis_store import RedisSink, RedisStore
from bettong.identifiers import TopicPartition
from bettong.inspection.live.dead_letters import DeadLetterLog
from bettong.topics import sink_topic
from bettong.v1.frame_pb2 import DeadLetter
from tests.samples.result_frames import planned
from tests.servers.service_process import GrpcServiceProcess, live_record

PARTITIONS = 3
FRAME_BYTES_MAX = 1024 * 1024


class ReceiverProcess(GrpcServiceProcess):
    """A receiver of `tests.samples.result_frames.application(name, ...)` with its files in `folder / "results"`."""

    def __init__(
        self,
        name: str,
        folder: Path,
        *,
        kafka: str,
        redis: str,
        destinations: str = "",
        connections: Mapping[str, Mapping[str, object]] | None = None,
        **settings: str | None,
    ) -> None:
        """A setting of None is left out. `destinations`: keywords of the application, as they are written."""
        self.results = folder / "results"
        super().__init__(
            "receiver",
            name,
            folder,
            {"BETTONG_RECEIVER_DIR": str(self.results), **settings},
            samples="tests.samples.result_frames",
            keywords=destinations,
            connections=json.dumps(connections) if connections is not None else "",
            kafka=kafka,
            redis=redis,
            partitions=PARTITIONS,
            frame_bytes_max=FRAME_BYTES_MAX,
        )

    def content(self, sink: str, partition: int) -> bytes:
        """What was delivered to a file so far; nothing while it is not there."""
        extension = "bin" if sink == "raw" else "jsonl"
        path = self.results / sink / f"{partition:05}.{extension}"
        return path.read_bytes() if path.exists() else b""


class Feed:
    """Writes into the topics of the sinks, as a processor does. Creates the topics."""

    def __init__(self, name: str, kafka: str) -> None:
        self._kafka = kafka
        self.plan: Plan = planned(name)
        with LogAdmin(kafka) as admin:
            admin.create_topics(
                self.plan.topics, partitions=PARTITIONS, replication=1, frame_bytes_max=FRAME_BYTES_MAX
            )
        self._writer = LogWriter(kafka, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=64 * 1024 * 1024)

    def append(self, sink: str, partition: int, values: Iterable[bytes]) -> None:
        """Appends and waits until all of it is durable."""
        faults: list[object] = []
        for value in values:
            self._writer.append(
                TopicPartition(sink_topic(self.plan.application, sink), partition),
                value,
                lambda done: faults.append(done) if not isinstance(done, int) else None,
            )
        self._writer.flush(60.0)
        assert not faults

    def dead_letters(self) -> list[DeadLetter]:
        """The dead letters in the log, as `bettong dead-letters list` takes them."""
        log = DeadLetterLog(self._kafka, self.plan.application, frame_bytes_max=FRAME_BYTES_MAX)
        return [found.dead_letter for found in log.dead_letters()]

    def close(self) -> None:
        """Lets go of the log."""
        self._writer.close()


class Store:
    """What the receiver leaves in Redis."""

    def __init__(self, url: str, name: str) -> None:
        self._store = RedisStore(url, name)

    def metrics(self) -> Mapping[str, str]:
        """The live record of the receiver; empty while there is none."""
        return live_record(self._store, "receiver-1")

    def results(self, sink: str) -> list[bytes]:
        """The newest results of a sink."""
        return RedisSink(self._store).results(sink, newest=100_000)

    def close(self) -> None:
        """Lets go of Redis."""
        self._store.close()
