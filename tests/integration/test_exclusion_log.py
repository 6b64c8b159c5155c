"""Exclusions in a real log: the first decision counts, and workers know it before they process the record."""

from collections.abc import Callable, Iterator

import pytest

from bettong import metrics
from bettong.edges.exclusion_log import ExclusionLog
from bettong.edges.kafka_log import LogAdmin, LogWriter
from bettong.errors import LogError
from bettong.frames.frame import decode
from bettong.identifiers import PartitionId, TopicPartition
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.topics import dead_letter_topic, exclusions_topic
from bettong.v1.frame_pb2 import DeadLetter
from bettong.worker.exclusions import Excluded, Exclusion
from tests.integration.log_parts import FRAME_BYTES_MAX, read_all, reader
from tests.integration.resident_slots import World
from tests.waiting import eventually

CHECK = PartitionId("check", 0)
WHY = "killed the worker: signal 11 (SIGSEGV)"


def exclusion(offset: int, reason: str = WHY) -> Exclusion:
    return Exclusion(offset, (Excluded(0, 1, "add", reason),))


@pytest.fixture
def name(kafka: KafkaBroker, unique_name: Callable[..., str]) -> str:
    name = unique_name("exclusions")
    with LogAdmin(kafka.bootstrap) as admin:
        topics = [exclusions_topic(name)]
        admin.create_topics(topics, partitions=2, replication=1, frame_bytes_max=FRAME_BYTES_MAX)
    return name


@pytest.fixture
def logs(kafka: KafkaBroker, name: str) -> Iterator[list[ExclusionLog]]:
    """The exclusion logs of two processes."""
    found = [ExclusionLog(kafka.bootstrap, name, frame_bytes_max=FRAME_BYTES_MAX) for _ in range(2)]
    yield found
    for each in found:
        each.close()


def test_of_two_who_decide_at_a_time_the_first_one_in_the_log_counts(logs: list[ExclusionLog]) -> None:
    first, second = logs
    second.refresh()
    known = second.known(PartitionId("check", 1))
    assert known == {}
    counts = first.append(PartitionId("check", 1), exclusion(7, "first"))
    assert counts == Exclusion(7, exclusion(7, "first").rows, is_logged=True)
    assert second.append(PartitionId("check", 1), exclusion(7, "second")) == counts
    assert known == {7: counts}
    second.append(PartitionId("check", 1), exclusion(9))
    first.refresh()
    assert set(first.known(PartitionId("check", 1))) == {7, 9}
    assert first.known(CHECK) == first.known(PartitionId("other", 1)) == {}


def test_a_question_that_was_asked_since_is_not_asked_again(logs: list[ExclusionLog]) -> None:
    first, second = logs
    first.refresh(0.0)
    second.append(PartitionId("check", 0), exclusion(1))
    first.refresh(0.0)
    assert first.known(CHECK) == {}
    first.refresh(float("inf"))
    assert set(first.known(CHECK)) == {1}


def test_what_somebody_else_has_written_there_is_no_exclusion(
    kafka: KafkaBroker, name: str, logs: list[ExclusionLog]
) -> None:
    with LogWriter(kafka.bootstrap, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=1 << 20) as writer:
        writer.append(TopicPartition(exclusions_topic(name), 0), b"\xff garbage", lambda _: None)
        writer.flush(30)
    with pytest.raises(LogError, match=r"\.exclusions/0: offset 0 is no exclusion .* Restore the topic"):
        logs[0].refresh()


def test_a_slot_leaves_out_what_was_decided_before_it_held_the_partition(
    kafka: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str]
) -> None:
    world = World(unique_name("resident"), kafka.bootstrap, redis_server.url)
    log = ExclusionLog(kafka.bootstrap, world.name, frame_bytes_max=FRAME_BYTES_MAX)
    try:
        log.append(PartitionId(world.stage.name, 2), exclusion(1))
        world.feed(2, 3)
        world.start(0)
        world.group.assign({0: [2]})
        eventually(lambda: world.offset(2) == 3, what="all is folded")
        record = world.metrics.partitions()[PartitionId(world.stage.name, 2)]
        assert (record[metrics.RESULTS.name], record[metrics.DEAD_LETTERS.name]) == ("2", "1")
        with reader(kafka, {(dead_letter_topic(world.name), 2): 0}) as dead_letters:
            (value,) = [each.value for each in read_all(dead_letters, 1)]
        (dead_letter,) = [DeadLetter.FromString(row) for row in decode(value).rows or ()]
        assert (dead_letter.computation, dead_letter.reason, dead_letter.sequence) == ("add", WHY, 2)
    finally:
        log.close()
        world.close()
