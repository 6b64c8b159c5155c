"""One run: records into a topic, a contestant between, results out of another topic, checked and timed.

    opening records ─> their results are there: the clock starts ─> timed records ─> all results are there: the clock
    stops ─> every result is compared with the right one

Broker and topics are new for each run. The feeder is a librdkafka producer in this process; it runs while the
contestant does, as a feed would.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import psutil
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.measuring import Sample, cpu_s
from benchmarks.peers.awaited import Awaited
from benchmarks.peers.footprint import BYTES_OF_MB, memory_mb
from benchmarks.peers.load import OUTPUT, Load, Record
from bettong.closing import Closing
from bettong.local.broker import KafkaBroker
from examples.market_spread_oracle import Results

# The part of a speed's CPU that is not the contestant's.
FEEDING = "feeder, reader and their broker"

_WAIT_S_MAX = 30.0
_POLL_S = 0.02
_BATCH = 10_000


class RaceError(Exception):
    """A run that gave no measurement: the contestant died, was too slow, or wrong."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Where a contestant runs: the broker with both topics, a folder of its own, how wide it may be."""

    bootstrap: str
    folder: Path
    partitions: int
    processes: int

    @property
    def stored(self) -> Path:
        """The folder for what it stores of its state, and nothing else."""
        return self.folder / "stored"


class Running(Protocol):
    """A contestant that has been started."""

    def pids(self) -> list[int]:
        """Its processes; those below them are its own too."""

    def check(self) -> None:
        """Raises RaceError when it has died."""

    def stored_bytes(self) -> int:
        """What it has stored of its state, as it is now. Raises BettongError."""


Start = Callable[[Trial], AbstractContextManager[Running]]


def run(start: Start, load: Load, *, partitions: int, processes: int, s_max: float) -> list[Sample]:
    """Messages a second between opening and end, with the CPU of the contestant's processes; then `footprint.METRICS`.

    Its parts have the CPU of what feeds and reads, the topics' broker included. Memory is that when the clock starts,
    and when it stops. Raises RaceError, BettongError.
    """
    with (
        trial_of(load.topics, partitions=partitions, processes=processes) as trial,
        start(trial) as running,
        _Output(trial.bootstrap, partitions) as output,
    ):
        deadline = time.monotonic() + s_max
        feed(trial.bootstrap, load.opening)
        output.read(load.awaited_at_start, running, deadline)
        before_mb = memory_mb(running.pids())
        spent_s, feeding_s, begun = cpu_s_of(running), feeding_cpu_s(running), time.perf_counter()
        feed(trial.bootstrap, load.timed)
        output.read(load.awaited, running, deadline)
        seconds = time.perf_counter() - begun
        spent_s, feeding_s = cpu_s_of(running) - spent_s, feeding_cpu_s(running) - feeding_s
        after_mb = memory_mb(running.pids())
        check(load.split(output.read_on()), load.expected)
        stored_mb = running.stored_bytes() / BYTES_OF_MB
    millions = load.timed_messages / 1e6
    speed = Sample(load.timed_messages / seconds, spent_s / millions, {FEEDING: feeding_s / millions})
    return [speed, Sample(before_mb), Sample(after_mb), Sample(stored_mb)]


@contextmanager
def trial_of(topics: Sequence[str], *, partitions: int, processes: int) -> Iterator[Trial]:
    """A broker with empty topics, and an empty folder, until it is left."""
    with TemporaryDirectory(prefix="bettong-peers-") as made:
        folder = Path(made)
        with KafkaBroker(folder / "kafka") as broker:
            _create_topics(broker.bootstrap, topics, partitions)
            trial = Trial(broker.bootstrap, folder / "contestant", partitions, processes)
            trial.stored.mkdir(parents=True)
            yield trial


def check(found: Results, expected: Results) -> None:
    """Raises RaceError, which says what is wrong, unless each result is there once and in its key's order."""
    for key in sorted(found.keys() | expected.keys()):
        have, want = found.get(key, []), expected.get(key, [])
        if have != want:
            kind = "in another order" if sorted(have) == sorted(want) else "not the right ones"
            name = key.decode(errors="replace")
            raise RaceError(f"wrong: {len(have)} results of {name!r} for {len(want)}, {kind}")


def feed(bootstrap: str, records: Iterable[Record]) -> None:
    """Appends records; returns when all are durable."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    for number, record in enumerate(records):
        if number % _BATCH == 0:
            producer.poll(0)
        while True:
            try:
                producer.produce(
                    record.topic, record.value, record.key, record.partition, timestamp=record.time_ms
                )
                break
            except BufferError:
                producer.poll(_POLL_S)
    if producer.flush(_WAIT_S_MAX):
        raise RaceError(f"the feeder's records are not durable after {_WAIT_S_MAX:g} s")


def reader_of_results(bootstrap: str, partitions: int) -> Consumer:
    """A client that reads all that was committed to the output topic."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(OUTPUT, each, 0) for each in range(partitions)])
    return consumer


def checked_value(record: Message) -> bytes:
    """What a record holds. Raises KafkaException where the client has an error in its place."""
    if record.error() is not None:
        raise KafkaException(record.error())
    return record.value() or b""


def cpu_s_of(running: Running) -> float:
    """CPU seconds of a contestant so far."""
    return sum(cpu_s(psutil.Process(pid)) for pid in running.pids())


def feeding_cpu_s(running: Running) -> float:
    """CPU seconds so far of this process, which feeds and reads, and of all below it but the contestant."""
    this, pids = psutil.Process(), set(running.pids())
    others = [each for each in this.children() if each.pid not in pids]
    return sum(this.cpu_times()[:2]) + sum(map(cpu_s, others))


class _Output(Closing):
    """All that was committed to the output topic. A context manager."""

    def __init__(self, bootstrap: str, partitions: int) -> None:
        self._values: list[bytes] = []
        self._consumer = reader_of_results(bootstrap, partitions)

    def close(self) -> None:
        """Closes the connection."""
        self._consumer.close()

    def read(self, awaited: Awaited, running: Running, deadline: float) -> None:
        """Reads until all are there. Raises RaceError when the contestant dies, or at the deadline."""
        awaited.note(self._values)
        while awaited.left:
            awaited.note(self._take(_POLL_S))
            running.check()
            if time.monotonic() > deadline:
                raise RaceError(f"too slow: {awaited.left} results are not there in time")

    def read_on(self) -> list[bytes]:
        """Everything, with what should not have come: results that were repeated."""
        self._take(1.0)
        return self._values

    def _take(self, wait_s: float) -> list[bytes]:
        values = [checked_value(record) for record in self._consumer.consume(_BATCH, wait_s)]
        self._values += values
        return values


def _create_topics(bootstrap: str, inputs: Sequence[str], partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new_topics = [NewTopic(name, partitions, 1) for name in (*inputs, OUTPUT)]
    for made in admin.create_topics(new_topics, operation_timeout=_WAIT_S_MAX).values():
        made.result(_WAIT_S_MAX)
