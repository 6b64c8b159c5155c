"""When a processor has stalled: while records wait, or while it says nothing; not while Kafka or Redis is away."""

import pytest

from bettong.identifiers import TopicPartition
from bettong.inspection.health import Facts, Seen, facts_of, has_started, observed

PARTITIONS = [TopicPartition("t", 0), TopicPartition("t", 1)]


def test_what_waits_is_what_lies_behind_the_offsets() -> None:
    ends = dict(zip(PARTITIONS, (10, 20), strict=True))
    assert facts_of(speaks=True, ends=ends, offsets={PARTITIONS[0]: 4, PARTITIONS[1]: 20}) == Facts(
        speaks=True, lag=6, folded=24
    )


def test_a_partition_without_an_offset_counts_only_while_there_is_none() -> None:
    ends = dict(zip(PARTITIONS, (10, 20), strict=True))
    assert facts_of(speaks=True, ends=ends, offsets={}).lag == 30
    assert facts_of(speaks=True, ends=ends, offsets={PARTITIONS[0]: 10}).lag == 0


def test_an_offset_beyond_the_end_that_was_read_before_is_not_counted() -> None:
    assert facts_of(speaks=True, ends={PARTITIONS[0]: 3}, offsets={PARTITIONS[0]: 5}).lag == 0


def test_what_came_since_the_last_report_waits_only_for_all_that_is_known() -> None:
    ends, offsets = {PARTITIONS[0]: 10}, {PARTITIONS[0]: 4}
    assert facts_of(speaks=True, ends=ends, offsets=offsets).waiting == 6
    kept_up = facts_of(speaks=True, ends=ends, offsets=offsets, reported=0)
    assert (kept_up.waiting, kept_up.lag) == (0, 6)


def test_nothing_moves_while_records_wait_and_nothing_is_folded() -> None:
    first = observed(Facts(speaks=True, lag=5, folded=7), None, 100.0)
    assert first == Seen(7, 100.0)
    assert observed(Facts(speaks=True, lag=9, folded=7), first, 160.0) == first
    assert observed(Facts(speaks=True, lag=9, folded=8), first, 160.0) == Seen(8, 160.0)
    assert observed(Facts(speaks=True, lag=0, folded=7), first, 160.0) == Seen(7, 160.0)


def test_one_that_says_nothing_does_not_go_on_whatever_others_report() -> None:
    seen = Seen(7, 100.0)
    assert observed(Facts(speaks=False, lag=0, folded=9), seen, 160.0) == Seen(9, 100.0)


def test_a_kafka_or_redis_that_is_away_is_no_stall() -> None:
    assert observed(None, Seen(7, 100.0), 160.0) == Seen(7, 160.0)
    assert observed(None, None, 160.0) == Seen(0, 160.0)


@pytest.mark.parametrize(
    ("record", "started"),
    [
        ({"state": "running"}, True),  # a look at Kafka comes after the first word
        ({"state": "running", "lag": "3"}, True),
        ({"state": "waiting", "detail": "numbers/2 is held up", "lag": "3"}, True),
        ({"state": "waiting", "lag": "0"}, True),
        ({"state": "waiting", "detail": "Kafka does not answer"}, False),
        ({"state": "standby", "detail": "other is at work"}, True),
        ({"state": "stopping"}, False),
        ({}, False),
    ],
)
def test_it_has_started_when_it_runs_or_stands_by_also_where_a_partition_is_held_up(
    record: dict[str, str], *, started: bool
) -> None:
    assert has_started(record) is started
