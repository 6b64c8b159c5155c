"""The parts of a stopped application: its topics in Kafka, and its data in Redis other than states."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from uuid import uuid4

from bettong.application.nodes.source import Source
from bettong.application.plan import Plan
from bettong.closing import Closing
from bettong.edges.boundary_log import boundary_log
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.log_stretch import stretch
from bettong.edges.partitioning_log import (
    append_durably,
    keep_partitioning,
    kept_partitioning,
)
from bettong.edges.redis_store import VALUE_BYTES_MAX, LiveMetrics, RedisLeases, RedisStore
from bettong.edges.snapshot_stores import REDIS, snapshot_store
from bettong.errors import LogError
from bettong.identifiers import Origin, PartitionId, SequenceNumber, TopicPartition, stream_of
from bettong.inspection.live.forgetting import forget_progress
from bettong.inspection.live.repartitioning import OnStep, Repartitioning
from bettong.inspection.locations import Locations
from bettong.inspection.repartition import silent_in_s, speak
from bettong.metrics import OFFSET, SNAPSHOT_OFFSET
from bettong.snapshots.partitioning import Partitioning
from bettong.topics import boundaries_topic, dead_letter_topic, stage_of_topic, stage_topic
from bettong.worker.stage_program import StageProgram, program

_POLL_S = 0.5
# A service's record expires by the clock of Redis.
_LATE_S = 2.0
# The constructor of leases needs one; none is held here.
_NO_TTL_MS = 1


class PartsAtRest(Closing):
    """See `repartitioning.AtRest`. A context manager. `on_wait` gets a text while services' records expire."""

    def __init__(
        self, plan: Plan, where: Locations, *, on_wait: Callable[[str], None] = lambda _: None
    ) -> None:
        self._plan = plan
        self._where = where
        self._on_wait = on_wait
        self._admin = LogAdmin(where.kafka)
        self.store = RedisStore(where.redis, plan.application)
        self._stage_topics = [stage_topic(plan.application, stage.name) for stage in plan.stages]

    def running(self) -> Collection[str]:
        """See AtRest. Waits until the records of services that have just been stopped expire."""
        metrics = LiveMetrics(self.store)
        live = metrics.live()
        deadline_s = time.monotonic() + silent_in_s(live) + _LATE_S
        while live and time.monotonic() < deadline_s:
            self._on_wait(f"waiting until the records of {', '.join(sorted(live))} expire")
            time.sleep(_POLL_S)
            before, live = live, metrics.live()
            if speaking := speak(before, live, after_s=_POLL_S):
                return speaking
        return sorted(live)

    def kept(self) -> Partitioning | None:
        """See AtRest."""
        return kept_partitioning(self._admin, self._where.kafka, self._plan.application)

    def keep(self, partitioning: Partitioning) -> None:
        """See AtRest."""
        keep_partitioning(
            self._admin,
            self._where.kafka,
            self._plan.application,
            partitioning,
            alike=self._stage_topics[0],
        )

    def counts(self) -> Mapping[str, int]:
        """See AtRest."""
        return self._admin.partition_counts(self._plan.topics)

    def stages(self) -> Collection[str]:
        """See AtRest."""
        application = self._plan.application
        return [
            stage_of_topic(application, each) for each in self._admin.topics(stage_topic(application, ""))
        ]

    def add_partitions(self, partitions: int, *, only_check: bool = False) -> None:
        """See AtRest."""
        self._admin.add_partitions(self._plan.topics, partitions, only_check=only_check)

    def ends(self) -> Mapping[PartitionId, int]:
        """See AtRest."""
        application = self._plan.application
        return {
            PartitionId(stage_of_topic(application, topic), partition): end
            for (topic, partition), end in self._admin.ends(self._stage_topics).items()
        }

    def mark(self, marks: Mapping[PartitionId, tuple[int, bytes]]) -> None:
        """See AtRest."""
        application, bytes_max = self._plan.application, self._where.frame_bytes_max
        wanted = {
            TopicPartition(stage_topic(application, id_.stage), id_.partition): each
            for id_, each in marks.items()
        }
        ends = self._admin.ends(self._stage_topics)
        missing = {log: value for log, (offset, value) in wanted.items() if ends[log] == offset}
        if missing:
            append_durably(self._where.kafka, missing, frame_bytes_max=bytes_max)
        firsts = {log: offset for log, (offset, _) in wanted.items()}
        behind = {log: offset + 1 for log, offset in firsts.items()}
        for record in stretch(self._where.kafka, firsts, behind, frame_bytes_max=bytes_max):
            log = TopicPartition(record.topic, record.partition)
            if record.value != wanted[log][1]:
                raise LogError(
                    f"{log}: at offset {record.offset}, where its mark belongs, is a record of"
                    f" {len(record.value)} bytes that something has appended meanwhile: find out what ran; restore the"
                    " topic and the snapshots from a copy, or start under another application name"
                )

    def acknowledged(self, origins: Iterable[Origin]) -> Mapping[Origin, SequenceNumber]:
        """See AtRest. From the leases of streams, and the stored boundaries of external topics that sources read."""
        sources = {source.name: source for source in self._plan.sources}
        leases, logs = RedisLeases(self.store, lease_ms=_NO_TTL_MS), self._logs()
        found: dict[Origin, SequenceNumber] = {}
        for source in self._plan.sources:
            found |= self._stored_boundaries(source)
        for origin in origins:
            if origin not in found and stream_of(origin) in sources:
                found[origin] = leases.acknowledged(origin, logs[stream_of(origin)])
        return found

    def begin_anew(self, offsets: Mapping[PartitionId, int]) -> None:
        """See AtRest.

        New reports claim nothing that is due: partitions get a TICK, and the task that folds it finds out what is.
        """
        forget_progress(self.store, by="repartition")
        metrics = LiveMetrics(self.store)
        for id_, offset in offsets.items():
            metrics.write_partition(id_, {OFFSET.name: offset, SNAPSHOT_OFFSET.name: offset})

    def close(self) -> None:
        """Closes the connections."""
        self._admin.close()
        self.store.close()

    def _logs(self) -> dict[str, str]:
        """By source, the identity of its stage's log, as sessions store it: see the sender's intake."""
        application = self._plan.application
        topics = {
            source.name: (
                stage_topic(application, self._plan.stage_of(source.name).name),
                dead_letter_topic(application),
            )
            for source in self._plan.sources
        }
        identities = self._admin.identities({each for pair in topics.values() for each in pair})
        return {name: "/".join(identities[each] for each in pair) for name, pair in topics.items()}

    def _stored_boundaries(self, source: Source) -> dict[Origin, SequenceNumber]:
        """How far each partition is durable of a source that reads an external topic."""
        topic = boundaries_topic(self._plan.application, source.name)
        if source.from_ is None or not self._admin.partition_counts([topic])[topic]:
            return {}
        with boundary_log(self._where.kafka, self._plan.application, source.name) as boundaries:
            stored = boundaries.open()
        found = (_durable(topic, key, data) for key, data in stored.items())
        return {Origin(f"{source.name}/{stream}"): durable for stream, durable in found}


def _durable(topic: str, key: bytes, data: bytes) -> tuple[str, SequenceNumber]:
    """A stream and how far it is durable, as the sender's `batcher` writes it. Raises LogError."""
    try:
        return key.decode(), SequenceNumber(int(json.loads(data)["durable"]))
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(
            f"{topic}: {data[:100]!r} of stream {key[:100]!r} are not batch boundaries: {error}; restore the topic"
        ) from None


def repartitioning_of(plan: Plan, where: Locations, parts: PartsAtRest, *, on_step: OnStep) -> Repartitioning:
    """The repartitioning of an application at rest, with its snapshot store."""

    @lru_cache(maxsize=1)
    def ready(stage: str) -> StageProgram:
        return program(
            plan.stage(stage), compiled=where.compiled, cache=where.kernel_cache, state_key=where.state_key
        )

    return Repartitioning(
        plan,
        parts,
        snapshot_store(where.snapshots, plan.application, parts.store),
        run=uuid4().hex,
        program=ready,
        frame_bytes_max=where.frame_bytes_max,
        snapshot_bytes_max=VALUE_BYTES_MAX if where.snapshots == REDIS else None,
        on_step=on_step,
    )
