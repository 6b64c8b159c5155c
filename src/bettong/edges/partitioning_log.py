"""Stores the number of an application's partitions as records of a topic: see `snapshots.partitioning`."""

from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

from bettong.config.connection_settings import KafkaConnection
from bettong.edges.kafka_log import LogAdmin, LogWriter, Record
from bettong.edges.log_stretch import stretch
from bettong.errors import LogError
from bettong.frames.frame import Repartition, repartition_record
from bettong.identifiers import TopicPartition
from bettong.snapshots.partitioning import Partitioning, fault_of, newest
from bettong.topics import is_stage_topic, partitioning_topic, stage_of_topic

# Enough for 4,096 partitions of a hundred stages, with the end of each log.
_RECORD_BYTES_MAX = 4 * 1024 * 1024
_ANSWER_S_MAX = 30.0


class PreparedTopics(NamedTuple):
    """The topics that were created, how often the partition count was changed, and `record_count` at the start."""

    created: tuple[str, ...]
    generation: int
    records: int


def prepare_topics(
    admin: LogAdmin,
    where: KafkaConnection,
    application: str,
    topics: tuple[str, ...],
    *,
    partitions: int,
    replication: int,
    frame_bytes_max: int,
) -> PreparedTopics:
    """Checks, before a service runs, that its number of partitions is right and that the topics have them.

    Creates missing topics. The log of a stage that was added after a change of the number begins with a mark that
    says so. Raises LogError with the remedy, LogUnavailableError without a broker.
    """
    records = record_count(admin, application)
    kept = _newest_of(admin, where, application, records)
    fault = fault_of(kept, application, partitions)
    if fault is not None:
        raise LogError(fault)
    created = admin.create_topics(
        topics, partitions=partitions, replication=replication, frame_bytes_max=frame_bytes_max
    )
    admin.check_topics(
        topics, partitions=partitions, frame_bytes_max=frame_bytes_max, or_more=kept is not None
    )
    if kept is None:
        return PreparedTopics(created, 0, records)
    stages = {
        topic: stage_of_topic(application, topic)
        for topic in filter(partial(is_stage_topic, application), topics)
    }
    _mark_new(
        admin,
        where,
        kept,
        {topic: stage for topic, stage in stages.items() if stage not in kept.begins},
        frame_bytes_max=frame_bytes_max,
    )
    return PreparedTopics(created, kept.generation, records)


def _mark_new(
    admin: LogAdmin,
    where: KafkaConnection,
    kept: Partitioning,
    stages: Mapping[str, str],
    *,
    frame_bytes_max: int,
) -> None:
    """Appends to each empty log a first record with the generation of its stage. `stages`: by topic.

    All services do so before they write anything else. So one such record comes first, and the others are redundant.
    """
    begins = Repartition(kept.generation, kept.partitions, begins_stage=True)
    empty = {
        log: repartition_record(stages[log.topic], begins)
        for log, end in (admin.ends(stages) if kept.generation else {}).items()
        if not end
    }
    if empty:
        append_durably(where, empty, frame_bytes_max=frame_bytes_max)


def kept_partitioning(admin: LogAdmin, where: KafkaConnection, application: str) -> Partitioning | None:
    """The newest valid record; None for an application that was never repartitioned. Blocks; raises LogError."""
    return _newest_of(admin, where, application, record_count(admin, application))


def record_count(admin: LogAdmin, application: str) -> int:
    """The number of records in the topic: each step of a change appends one. Blocks; raises LogError."""
    topic = partitioning_topic(application)
    if not admin.partition_counts([topic])[topic]:
        return 0
    return admin.ends([topic])[TopicPartition(topic, 0)]


def _newest_of(admin: LogAdmin, where: KafkaConnection, application: str, count: int) -> Partitioning | None:
    """The newest valid record of the first `count`."""
    if not count:
        return None
    topic = partitioning_topic(application)
    until = {TopicPartition(topic, 0): count}
    records = stretch(where, admin.beginnings([topic]), until, frame_bytes_max=_RECORD_BYTES_MAX)
    return newest(map(stored, records))


def stored(record: Record) -> Partitioning:
    """Decodes a record of the topic. Raises LogError that names a damaged one."""
    try:
        return Partitioning.decode(record.value)
    except LogError as error:
        raise LogError(
            f"{record.topic}, offset {record.offset}: {error}. No service starts until the topic is made anew with its"
            " other records, in their order"
        ) from None


def partitions_in_use(admin: LogAdmin, where: KafkaConnection, application: str, topic: str) -> Partitioning:
    """The partitions in use of a topic of the application, also during a change. Blocks; raises LogError."""
    kept = kept_partitioning(admin, where, application)
    return kept if kept is not None else Partitioning(0, max(1, admin.partition_counts([topic])[topic]))


def keep_partitioning(
    admin: LogAdmin, where: KafkaConnection, application: str, partitioning: Partitioning, *, alike: str
) -> None:
    """Appends a record. Blocks until it is durable.

    Creates the topic if needed, with the replication factor of topic `alike`: it must not be less durable than the
    others.
    """
    topic = partitioning_topic(application)
    if not admin.partition_counts([topic])[topic]:
        admin.create_topics(
            [topic], partitions=1, replication=admin.copies(alike), frame_bytes_max=_RECORD_BYTES_MAX
        )
    append_durably(
        where, {TopicPartition(topic, 0): partitioning.encode()}, frame_bytes_max=_RECORD_BYTES_MAX
    )


def append_durably(
    where: KafkaConnection, values: Mapping[TopicPartition, bytes], *, frame_bytes_max: int
) -> None:
    """Appends one record to each log and blocks until all are durable. Raises LogError."""
    answers: list[Future[int | LogError]] = [Future() for _ in values]
    with LogWriter(where, frame_bytes_max=frame_bytes_max, buffer_bytes_max=2 * _RECORD_BYTES_MAX) as writer:
        for (log, value), answer in zip(values.items(), answers, strict=True):
            writer.append(log, value, answer.set_result)
        writer.flush(_ANSWER_S_MAX)
        found = [answer.result(_ANSWER_S_MAX) for answer in answers]
    for each in found:
        if isinstance(each, LogError):
            raise each
