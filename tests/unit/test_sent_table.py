"""The numbers of what leaves a stage, and what consumers make of them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.delivery import ORIGIN_TTL_NS, DeliveryTable, Verdict
from bettong.identifiers import Origin, SequenceNumber
from bettong.worker.output.numbering import PARTS_MAX, SentTable


def test_a_replay_of_an_offset_gives_the_same_numbers() -> None:
    tables = [SentTable(), SentTable()]
    numbers = [[table.number(Origin("s/a/0"), 3, offset) for offset in (0, 0, 5)] for table in tables]
    assert numbers[0] == numbers[1]
    assert numbers[0] == [(PARTS_MAX, 0), (PARTS_MAX + 1, PARTS_MAX), (6 * PARTS_MAX, PARTS_MAX + 1)]


def test_partitions_and_origins_are_numbered_apart() -> None:
    table = SentTable()
    table.number(Origin("s/a/0"), 0, 1)
    assert table.number(Origin("s/a/0"), 1, 2)[1] == 0
    assert table.number(Origin("s/b/0"), 0, 2)[1] == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=30))
def test_numbers_grow_and_each_names_the_one_before(steps: list[tuple[int, int]]) -> None:
    table = SentTable()
    sent: dict[int, list[tuple[int, int]]] = {0: [], 1: [], 2: []}
    offset = 0
    for forward, partition in steps:
        offset += forward
        sent[partition].append(table.number(Origin("s/a/0"), partition, offset))
    for numbers in sent.values():
        assert all(sequence > previous for sequence, previous in numbers)
        assert all(left[0] == right[1] for left, right in pairwise([(0, 0), *numbers]))


SILENCES_NS = [1, ORIGIN_TTL_NS // 2, ORIGIN_TTL_NS, 3 * ORIGIN_TTL_NS]


@pytest.mark.parametrize("silence_ns", SILENCES_NS)
def test_a_consumer_takes_what_comes_after_any_silence(silence_ns: int) -> None:
    sent, consumer, now_ns = SentTable(), DeliveryTable(), 10**18
    for offset in range(3):
        sequence, previous = sent.number(Origin("s/a/0"), 0, offset)
        # Another origin keeps the consumer's clock going, and its sweeps.
        consumer.take(
            Origin("s/b/0"),
            sequence=SequenceNumber(offset + 1),
            previous=SequenceNumber(offset),
            now_ns=now_ns,
        )
        for expected in (Verdict.TAKE, Verdict.DUPLICATE):
            verdict = consumer.take(Origin("s/a/0"), sequence=sequence, previous=previous, now_ns=now_ns)
            assert verdict is expected
        for step in range(1, 5):
            consumer.open(
                Origin("s/b/0"), acknowledged=SequenceNumber(0), now_ns=now_ns + step * silence_ns // 4
            )
        now_ns += silence_ns


@pytest.mark.parametrize("silence_ns", SILENCES_NS)
def test_no_silence_lets_a_frame_pass_one_that_was_lost(silence_ns: int) -> None:
    """Else the lost one, sent again, would look like a duplicate."""
    sent, consumer, start_ns = SentTable(), DeliveryTable(), 10**18
    first, lost, after = (sent.number(Origin("s/a/0"), 0, offset) for offset in range(3))
    verdicts = [
        consumer.take(Origin("s/a/0"), sequence=sequence, previous=previous, now_ns=start_ns + since_ns)
        for (sequence, previous), since_ns in [
            (first, 0), (after, silence_ns), (lost, silence_ns), (after, silence_ns)
        ]
    ]  # fmt: skip
    assert verdicts == [Verdict.TAKE, Verdict.GAP, Verdict.TAKE, Verdict.TAKE]
