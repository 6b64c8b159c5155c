"""The topics that an application reads and writes by itself: a run has its own Kafka for them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, cycle
from pathlib import Path

import numpy as np

from bettong.application.external.kafka_topic import KafkaTopic
from bettong.application.plan import Plan
from bettong.closing import Closing
from bettong.config.connections import Options, read_connections
from bettong.edges.external_kafka import ClientOptions
from bettong.edges.kafka_log import LogAdmin, LogWriter
from bettong.errors import LogError
from bettong.identifiers import TopicPartition
from bettong.lab.load import PARTITION, VALUE
from bettong.lab.target.gc_pauses import logging_pauses
from bettong.local.broker import KafkaBroker

_NAME = "lab"
_FILE = "connections.json"
_RECORD_BYTES_MAX = 1 << 20
_BUFFER_BYTES_MAX = 64 << 20


@dataclass(frozen=True, slots=True)
class RunTopics:
    """Where the topics are: their names by those of sources and sinks, and how many partitions each has.

    `connections`: the file in which the application finds the connections.
    """

    bootstrap: str
    partitions: int
    of_sources: Mapping[str, str]
    of_sinks: Mapping[str, str]
    connections: Path

    @property
    def options(self) -> ClientOptions:
        """Options for clients of the topics."""
        return ClientOptions(_NAME, {"bootstrap_servers": self.bootstrap})


def topics_of(plan: Plan) -> tuple[dict[str, KafkaTopic], dict[str, KafkaTopic]]:
    """The topics that sources read, and those that sinks write, by the names of sources and sinks."""
    return (
        {each.name: each.from_ for each in plan.sources if isinstance(each.from_, KafkaTopic)},
        {each.name: each.to for each in plan.sinks if isinstance(each.to, KafkaTopic)},
    )


@contextmanager
def run_topics(
    plan: Plan, partitions: int, folder: Path, *, connections: str | None
) -> Iterator[RunTopics | None]:
    """Starts a broker with empty topics; stops it when the context exits. None for an application without topics.

    `connections`: the file of the application's other connections.
    """
    sources, sinks = topics_of(plan)
    if not sources and not sinks:
        yield None
        return
    with KafkaBroker(folder / "kafka", environment=logging_pauses(folder, "topics")) as broker:
        names = {each.topic for each in chain(sources.values(), sinks.values())}
        with LogAdmin(broker.connection) as admin:
            admin.create_topics(
                names, partitions=partitions, replication=1, frame_bytes_max=_RECORD_BYTES_MAX
            )
        ours: dict[str, Options] = {
            each.connection or name: {"bootstrap_servers": broker.bootstrap}
            for name, each in chain(sources.items(), sinks.items())
        }
        file = folder / _FILE
        others = read_connections(Path(connections) if connections else None)
        file.write_text(json.dumps(others | ours))
        yield RunTopics(
            broker.bootstrap,
            partitions,
            {name: each.topic for name, each in sources.items()},
            {name: each.topic for name, each in sinks.items()},
            file,
        )


class TopicFeed(Closing):
    """Writes a source's messages to its topic, a record each. For one thread.

    Takes the role of a `Sender`, which feeds the other sources.
    """

    def __init__(self, topics: RunTopics, source: str) -> None:
        self._topic = topics.of_sources[source]
        self._count = topics.partitions
        self._partitions = cycle(range(topics.partitions))
        self._writer = LogWriter(
            topics.bootstrap, frame_bytes_max=_RECORD_BYTES_MAX, buffer_bytes_max=_BUFFER_BYTES_MAX
        )

    def send_columns(self, columns: Mapping[str, np.ndarray], *, sent_ns: int | None = None) -> None:  # noqa: ARG002
        """See `Sender`. A record does not say when it was due: the load finds that from the result."""
        given = columns.get(PARTITION)
        partitions = self._partitions if given is None else given.tolist()
        for value, partition in zip(columns[VALUE], partitions, strict=False):
            self._writer.append(TopicPartition(self._topic, partition % self._count), value, _ignore)

    def flush(self, timeout_s: float) -> None:
        """Blocks until all is durable. Raises LogError."""
        self._writer.flush(timeout_s)
        if self._writer.failure is not None:
            raise self._writer.failure

    def close(self) -> None:
        """Sends what is buffered. Never raises."""
        self._writer.close()


def _ignore(_: int | LogError) -> None:
    """Does nothing: `flush` raises the writer's error."""
