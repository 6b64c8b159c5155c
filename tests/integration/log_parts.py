"""Writers and readers as the tests of the log use them, and what they do with them again and again."""

from collections.abc import Callable
from pathlib import Path

import kafka
from kafka import KafkaAdminClient

from bettong.edges.kafka_log import LogAdmin, LogReader, LogWriter, Record
from bettong.errors import LogError
from bettong.identifiers import TopicPartition
from bettong.local.broker import KafkaBroker
from tests.waiting import eventually

FRAME_BYTES_MAX = 1024 * 1024
NOBODY = "127.0.0.1:1"

Outcome = int | LogError


def created(admin: LogAdmin, topic: str) -> str:
    """A new topic of two partitions."""
    admin.create_topics([topic], partitions=2, replication=1, frame_bytes_max=FRAME_BYTES_MAX)
    return topic


def writer(
    broker: KafkaBroker,
    *,
    delivery_timeout_ms: int = 120_000,
    frame_bytes_max: int = FRAME_BYTES_MAX,
    buffer_bytes_max: int = 64 * FRAME_BYTES_MAX,
) -> LogWriter:
    """With room for 64 frames."""
    return LogWriter(
        broker.bootstrap,
        frame_bytes_max=frame_bytes_max,
        buffer_bytes_max=buffer_bytes_max,
        delivery_timeout_ms=delivery_timeout_ms,
    )


def reader(
    broker: KafkaBroker,
    starts: dict[tuple[str, int], int],
    *,
    on_wait: Callable[[str], None] | None = None,
    fetch_bytes_max: int = FRAME_BYTES_MAX,
    counts_ahead: bool = False,
) -> LogReader:
    """With fetches so small that there are several."""
    return LogReader(
        broker.bootstrap,
        {TopicPartition(*at): offset for at, offset in starts.items()},
        frame_bytes_max=FRAME_BYTES_MAX,
        fetch_bytes_max=fetch_bytes_max,
        counts_ahead=counts_ahead,
        on_wait=on_wait,
    )


def append_all(broker: KafkaBroker, topic: str, partition: int, values: list[bytes]) -> list[Outcome]:
    """With a writer of its own; what it was answered."""
    outcomes: list[Outcome] = []
    with writer(broker) as log:
        for value in values:
            log.append(TopicPartition(topic, partition), value, outcomes.append)
    return outcomes


def read_all(log: LogReader, count: int) -> list[Record]:
    """The next `count` records."""
    records: list[Record] = []

    def enough() -> bool:
        records.extend(log.poll(200, count - len(records)))
        return len(records) >= count

    eventually(enough, seconds=30, what=f"{count} records")
    return records


def lose_last_batch(broker: KafkaBroker, topic: str, partition: int) -> None:
    """Cuts the log of a broker that does not run, and all that it could know of it from elsewhere."""
    segment = _segment(broker, topic, partition)
    for snapshot in segment.parent.glob("*.snapshot"):
        snapshot.unlink()
    segment.write_bytes(segment.read_bytes()[: batches(broker, topic, partition)[-1]])


def damage_batch(broker: KafkaBroker, topic: str, partition: int, number: int) -> None:
    """Changes the last byte of a batch, as a bad disk does."""
    at = batches(broker, topic, partition)[number + 1] - 1
    with _segment(broker, topic, partition).open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 0xFF]))


def batches(broker: KafkaBroker, topic: str, partition: int) -> list[int]:
    """Where each batch begins in the one segment of a log."""
    content = _segment(broker, topic, partition).read_bytes()
    # A batch: 8 bytes of offset, 4 of the length of what follows.
    found, offset = [], 0
    while offset + 12 <= len(content) and (
        length := int.from_bytes(content[offset + 8 : offset + 12], "big")
    ):
        found.append(offset)
        offset += 12 + length
    return found


def _segment(broker: KafkaBroker, topic: str, partition: int) -> Path:
    (folder,) = broker.directory.rglob(f"{topic}-{partition}")
    (segment,) = folder.glob("*.log")
    return segment


def delete_below(broker: KafkaBroker, topic: str, partition: int, offset: int) -> None:
    """As retention would."""
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    client.delete_records({kafka.TopicPartition(topic, partition): offset})
    client.close()
