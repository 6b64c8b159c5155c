"""A topic of an external cluster, as a program of the user's reads it."""

from collections.abc import Iterable

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.waiting import eventually


def committed(bootstrap: str, topic: str) -> list[tuple[int, bytes | None, bytes]]:
    """(partition, key, value) of all committed records, partition by partition, in order."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        allow_auto_create_topics=False,
    )
    try:
        partitions = [
            TopicPartition(topic, each) for each in sorted(consumer.partitions_for_topic(topic) or ())
        ]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        found: dict[int, list[tuple[int, bytes | None, bytes]]] = {
            partition.partition: [] for partition in partitions
        }

        def complete() -> bool:
            for partition, records in consumer.poll(timeout_ms=200).items():
                found[partition.partition] += [
                    (partition.partition, each.key, each.value) for each in records
                ]
            return all((consumer.position(partition) or 0) >= end for partition, end in ends.items())

        eventually(complete, seconds=40, what=f"all of {topic}")
    finally:
        consumer.close(autocommit=False)
    return [record for records in found.values() for record in records]


class Producer:
    """A program of the user's that writes to topics."""

    def __init__(self, bootstrap: str, *, transactional_id: str | None = None) -> None:
        options = {"transactional_id": transactional_id} if transactional_id else {}
        self._producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", **options)
        if transactional_id:
            self._producer.init_transactions()

    def send(self, topic: str, partition: int, values: Iterable[bytes | None], *, key: bytes = b"k") -> None:
        """Appends values, None for tombstones, and waits until they are there."""
        sent = [self._producer.send(topic, value, key=key, partition=partition) for value in values]
        self._producer.flush(timeout=60)
        for each in sent:
            each.get(timeout=0)

    def transaction(self, topic: str, partition: int, values: Iterable[bytes], *, commit: bool) -> None:
        """The same in a transaction, which is committed or aborted."""
        self._producer.begin_transaction()
        self.send(topic, partition, values)
        if commit:
            self._producer.commit_transaction()
        else:
            self._producer.abort_transaction()

    def close(self) -> None:
        """Lets go of the connection."""
        self._producer.close(timeout=10)
