"""How many partitions an application has, as the records of its topic for that say: see `snapshots.partitioning`."""

import time
from collections.abc import Mapping
from concurrent.futures import Future

from bettong.config.connection_settings import KafkaConnection
from bettong.edges.kafka_log import LogAdmin, LogReader, LogWriter
from bettong.errors import LogError, LogUnavailableError
from bettong.identifiers import TopicPartition
from bettong.snapshots.partitioning import Partitioning, fault_of, newest
from bettong.topics import partitioning_topic

# Of 4,096 partitions of a hundred stages, with where each log ended.
_RECORD_BYTES_MAX = 4 * 1024 * 1024
_ANSWER_S_MAX = 30.0
_POLL_MS = 200
_RECORDS_MAX = 1000


def prepare_topics(
    admin: LogAdmin,
    where: KafkaConnection,
    application: str,
    topics: tuple[str, ...],
    *,
    partitions: int,
    replication: int,
    frame_bytes_max: int,
) -> tuple[str, ...]:
    """What a service does before it runs: is it told the right number of partitions, and have the topics got them?

    Creates those that do not exist, and returns their names. Raises LogError that says what to do,
    LogUnavailableError without a broker.
    """
    kept = kept_partitioning(admin, where, application)
    fault = fault_of(kept, application, partitions)
    if fault is not None:
        raise LogError(fault)
    created = admin.create_topics(
        topics, partitions=partitions, replication=replication, frame_bytes_max=frame_bytes_max
    )
    admin.check_topics(
        topics, partitions=partitions, frame_bytes_max=frame_bytes_max, or_more=kept is not None
    )
    return created


def kept_partitioning(admin: LogAdmin, where: KafkaConnection, application: str) -> Partitioning | None:
    """The newest record that counts; None of an application that was never repartitioned. Blocks; raises LogError."""
    topic = partitioning_topic(application)
    if not admin.partition_counts([topic])[topic]:
        return None
    log = TopicPartition(topic, 0)
    span = (admin.beginnings([topic])[log], admin.ends([topic])[log])
    found = read_spans(where, {log: span}, frame_bytes_max=_RECORD_BYTES_MAX)
    return newest(map(Partitioning.decode, found[log]))


def partitions_in_use(admin: LogAdmin, where: KafkaConnection, application: str, topic: str) -> Partitioning:
    """How many partitions of a topic of the application are in use, also while that is changed. Blocks; LogError."""
    kept = kept_partitioning(admin, where, application)
    return kept if kept is not None else Partitioning(0, max(1, admin.partition_counts([topic])[topic]))


def keep_partitioning(
    admin: LogAdmin, where: KafkaConnection, application: str, partitioning: Partitioning, *, replication: int
) -> None:
    """Appends a record; makes the topic, with so many copies, where there is none. Blocks until it is durable."""
    topic = partitioning_topic(application)
    admin.create_topics([topic], partitions=1, replication=replication, frame_bytes_max=_RECORD_BYTES_MAX)
    append_durably(where, TopicPartition(topic, 0), partitioning.encode(), frame_bytes_max=_RECORD_BYTES_MAX)


def append_durably(
    where: KafkaConnection, log: TopicPartition, value: bytes, *, frame_bytes_max: int
) -> None:
    """Appends one record and blocks until it is durable. Raises LogError."""
    done: Future[int | LogError] = Future()
    with LogWriter(where, frame_bytes_max=frame_bytes_max, buffer_bytes_max=2 * _RECORD_BYTES_MAX) as writer:
        writer.append(log, value, done.set_result)
        writer.flush(_ANSWER_S_MAX)
        answer = done.result(_ANSWER_S_MAX)
    if isinstance(answer, LogError):
        raise answer


def read_spans(
    where: KafkaConnection, spans: Mapping[TopicPartition, tuple[int, int]], *, frame_bytes_max: int
) -> dict[TopicPartition, list[bytes]]:
    """The records of each log from an offset on and below another one, which the log has reached.

    Blocks; raises LogError.
    """
    found: dict[TopicPartition, list[bytes]] = {log: [] for log in spans}
    missing = {log: end - begin for log, (begin, end) in spans.items() if end > begin}
    if not missing:
        return found
    deadline_s = time.monotonic() + _ANSWER_S_MAX
    with LogReader(where, {log: spans[log][0] for log in missing}, frame_bytes_max=frame_bytes_max) as reader:
        while missing and time.monotonic() < deadline_s:
            for record in reader.poll(_POLL_MS, _RECORDS_MAX):
                log = TopicPartition(record.topic, record.partition)
                if log not in missing:
                    continue
                found[log].append(record.value)
                missing[log] -= 1
                if not missing[log]:
                    del missing[log]
                    reader.remove(log)
                deadline_s = time.monotonic() + _ANSWER_S_MAX
    if missing:
        log, count = next(iter(missing.items()))
        raise LogUnavailableError(
            f"{log}: {count} records below offset {spans[log][1]} were not read, none came for {_ANSWER_S_MAX:.0f} s;"
            f" is Kafka at {where.bootstrap} running and reachable?"
        )
    return found
