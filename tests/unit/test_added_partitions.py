"""When a reader connects anew for added partitions: after 20 ms without a record, some times a second at most."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bettong.edges.kafka_log.added_partitions import AddedPartitions
from bettong.identifiers import TopicPartition

FIRST, SECOND, OTHER = (TopicPartition("topic", number) for number in range(3))
BEGIN_S = 100.0


@pytest.fixture
def added() -> AddedPartitions:
    """With one partition, added at BEGIN_S, of which nothing is known."""
    made = AddedPartitions()
    made.add(FIRST, None, BEGIN_S)
    return made


def unknown(_: TopicPartition) -> int | None:
    return None


def test_nothing_that_was_added_needs_no_connection() -> None:
    nothing = AddedPartitions()
    nothing.note_poll([], unknown, BEGIN_S)
    assert not nothing
    assert not nothing.needs_connection(BEGIN_S + 1)


def test_a_partition_without_an_answer_for_20_ms_needs_a_connection(added: AddedPartitions) -> None:
    added.note_poll([], unknown, BEGIN_S + 0.019)
    assert not added.needs_connection(BEGIN_S + 0.019)
    assert added.needs_connection(BEGIN_S + 0.021)


@pytest.mark.parametrize("known", [None, 5])
@pytest.mark.parametrize(("polled", "makes"), [([FIRST], lambda known: known), ([], lambda _: 7)])
def test_an_answer_is_a_record_or_another_lag(
    known: int | None, polled: list[TopicPartition], makes: Callable[[int | None], int | None]
) -> None:
    added = AddedPartitions()
    added.add(FIRST, known, BEGIN_S)
    added.note_poll([], lambda _: known, BEGIN_S)
    assert added, "there was no answer yet"
    added.note_poll(polled, lambda _: makes(known), BEGIN_S)
    assert not added


def test_records_of_others_put_a_connection_off(added: AddedPartitions) -> None:
    added.note_poll([OTHER], unknown, BEGIN_S + 0.015)
    assert not added.needs_connection(BEGIN_S + 0.034)
    assert added.needs_connection(BEGIN_S + 0.036)


def test_connections_lie_a_tenth_of_a_second_apart(added: AddedPartitions) -> None:
    added.note_connection(BEGIN_S + 0.03)
    added.add(SECOND, 3, BEGIN_S + 0.04)
    assert not added.needs_connection(BEGIN_S + 0.12)
    assert added.needs_connection(BEGIN_S + 0.14)
    added.note_connection(BEGIN_S + 0.14)
    added.note_poll([], unknown, BEGIN_S + 0.15)
    assert added, "the lag that was known belongs to the old connection"


def connections_s(added: AddedPartitions, begin_s: float) -> list[float]:
    """When it needs connections, of which none gets an answer: seconds after `begin_s`."""
    found = []
    for ms in range(1, 1_000):
        now_s = begin_s + ms / 1000
        added.note_poll([], unknown, now_s)
        if added.needs_connection(now_s):
            added.note_connection(now_s)
            found.append(ms / 1000)
    return found


def test_each_connection_has_twice_as_long_to_answer_as_the_one_before(added: AddedPartitions) -> None:
    """Where connecting takes 150 ms, one in each tenth of a second would end the one before it."""
    first = connections_s(added, BEGIN_S)
    assert first == pytest.approx([0.02, 0.12, 0.32, 0.72], abs=0.002)
    added.note_poll([FIRST], unknown, BEGIN_S + 1)
    assert not added
    added.add(SECOND, None, BEGIN_S + 5)
    assert connections_s(added, BEGIN_S + 5) == first, "after an answer the intervals are short again"


def test_after_a_second_they_wait_for_the_fetch(added: AddedPartitions) -> None:
    added.note_poll([], unknown, BEGIN_S + 0.99)
    assert added
    added.note_poll([], unknown, BEGIN_S + 1.01)
    assert not added


def test_a_removed_partition_needs_nothing(added: AddedPartitions) -> None:
    added.add(SECOND, None, BEGIN_S)
    added.discard(FIRST)
    added.discard(OTHER)
    assert added.needs_connection(BEGIN_S + 0.03)
    added.discard(SECOND)
    assert not added.needs_connection(BEGIN_S + 0.03)
