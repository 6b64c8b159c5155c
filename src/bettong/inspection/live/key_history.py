"""The history of a key, folded from the log while the application runs: nothing is stopped or written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bettong.application.plan import Plan, Stage
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.log_stretch import stretch
from bettong.edges.partitioning_log import partitions_in_use
from bettong.edges.redis_store import RedisStore
from bettong.edges.snapshot_stores import snapshot_store
from bettong.errors import LogTruncatedError, StoreError
from bettong.garbage import CollectionPaused
from bettong.identifiers import PartitionId, TopicPartition
from bettong.inspection.key_history import Event, KeyHistory
from bettong.inspection.live.exclusions import exclusions_of
from bettong.inspection.live.stored_references import StoredReferences
from bettong.inspection.locations import Locations
from bettong.routing import partition_of
from bettong.schema.key_types import KeyValue
from bettong.snapshots.chain import chains
from bettong.snapshots.store import SnapshotStore, read_chain
from bettong.topics import stage_topic
from bettong.worker.partition import Assignment
from bettong.worker.references.versions import ReferenceTables
from bettong.worker.stage_program import program


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """The log of a key's partition, one of `partitions`: from `begin` up to but not including `end`."""

    stage: Stage
    topic: str
    partition: int
    partitions: int
    begin: int
    end: int

    @property
    def id(self) -> PartitionId:
        """The partition, of its stage."""
        return PartitionId(self.stage.name, self.partition)


@dataclass(frozen=True, slots=True)
class Stretch:
    """The records to fold: from `first` up to but not including `until`, after `snapshot`."""

    log: PartitionLog
    first: int
    until: int
    snapshot: list[bytes] | None


def log_of(plan: Plan, stage: Stage, key: KeyValue, where: Locations) -> PartitionLog:
    """The log that holds the messages of a key. Raises LogError."""
    topic = stage_topic(plan.application, stage.name)
    with LogAdmin(where.kafka) as admin:
        beginnings, ends = admin.beginnings([topic]), admin.ends([topic])
        used = partitions_in_use(admin, where.kafka, plan.application, topic)
    partition = partition_of(key, used.partitions)
    id_ = TopicPartition(topic, partition)
    begin = max(beginnings[id_], used.begin_of(PartitionId(stage.name, partition)))
    return PartitionLog(stage, topic, partition, used.partitions, begin, ends[id_])


def stretch_of(
    plan: Plan, log: PartitionLog, where: Locations, until: int, *, from_snapshot: bool
) -> Stretch:
    """Begins at the beginning of the log, else after a snapshot; with `from_snapshot` after the newest one.

    Raises StoreError, and LogTruncatedError when the beginning of the log was deleted and no snapshot replaces it.
    """
    if log.begin == 0 and not from_snapshot:
        return Stretch(log, 0, until, None)
    partition = log.id
    with RedisStore(where.redis, plan.application) as redis:
        store = snapshot_store(where.snapshots, plan.application, redis)
        kept = _snapshot(store, partition, range(log.begin, until + 1), newest=from_snapshot)
        if kept is not None:
            return Stretch(log, kept[0], until, kept[1])
        if log.begin == 0:
            return Stretch(log, 0, until, None)
        known = store.increments(partition)
        offsets = ", ".join(str(each[-1].offset) for each in reversed(chains(known))) or "none"
    raise LogTruncatedError(
        f"partition {log.partition} of stage {log.stage.name}: its log begins at {log.begin}, and no snapshot lies"
        f" between there and {until} (there are: {offsets}), so the state cannot be rebuilt; give a higher --until"
    )


def kept_snapshots(plan: Plan, found: Stretch, where: Locations) -> list[int]:
    """The offsets of the snapshots in the stretch: its first one, and those that are kept.

    Without the latter where the store is away: a fold from the beginning needs none.
    """
    offsets = {found.first} if found.snapshot is not None else set[int]()
    try:
        with RedisStore(where.redis, plan.application) as redis:
            known = snapshot_store(where.snapshots, plan.application, redis).increments(found.log.id)
    except StoreError:
        known = []
    offsets |= {each[-1].offset for each in chains(known)}
    return sorted(each for each in offsets if found.first <= each <= found.until)


def history_of(plan: Plan, key: KeyValue, where: Locations, found: Stretch) -> KeyHistory:
    """A history that has folded nothing yet. Raises LogError."""
    log = found.log
    assignment = Assignment(
        application=plan.application,
        partition=log.partition,
        partitions=log.partitions,
        frame_bytes_max=where.frame_bytes_max,
    )
    ready = program(log.stage, compiled=where.compiled, cache=where.kernel_cache, state_key=where.state_key)
    references = ReferenceTables(StoredReferences(plan.application, where))
    left_out = exclusions_of(plan, where, [log.id])[log.id]
    history = KeyHistory(ready, assignment, key, left_out, references)
    if found.snapshot is not None:
        history.restore(found.snapshot)
    return history


def folded(history: KeyHistory, found: Stretch, where: Locations) -> Iterator[list[Event]]:
    """The key's events in each record, until the stretch or the history ends. Raises LogError."""
    partition = TopicPartition(found.log.topic, found.log.partition)
    records = stretch(
        where.kafka,
        {partition: found.first},
        {partition: found.until},
        frame_bytes_max=where.frame_bytes_max,
    )
    for record in records:
        with CollectionPaused():
            events = history.fold(record.offset, record.value)
        yield events
        if history.stopped is not None:
            return


def _snapshot(
    store: SnapshotStore, partition: PartitionId, wanted: range, *, newest: bool
) -> tuple[int, list[bytes]] | None:
    """The newest or oldest snapshot with a wanted offset, as its increments."""
    usable = [each for each in chains(store.increments(partition)) if each[-1].offset in wanted]
    for chain in usable if newest else reversed(usable):
        kept = read_chain(store, partition, chain)
        if kept is not None:  # else it was replaced by newer ones meanwhile
            return chain[-1].offset, kept
    return None
