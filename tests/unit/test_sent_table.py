"""The numbers of what leaves a stage, and what consumers make of them."""

from bettong.delivery import ORIGIN_TTL_NS, DeliveryTable, Verdict
from bettong.worker.exits import PARTS_MAX, SentTable


def test_a_replay_of_an_offset_gives_the_same_numbers() -> None:
    tables = [SentTable(), SentTable()]
    numbers = [[table.number("s/a/0", 3, offset, now_ns=offset) for offset in (0, 0, 5)] for table in tables]
    assert numbers[0] == numbers[1]
    assert numbers[0] == [(PARTS_MAX, 0), (PARTS_MAX + 1, PARTS_MAX), (6 * PARTS_MAX, PARTS_MAX + 1)]


def test_partitions_and_origins_are_numbered_apart() -> None:
    table = SentTable()
    table.number("s/a/0", 0, 1, now_ns=1)
    assert table.number("s/a/0", 1, 2, now_ns=1)[1] == 0
    assert table.number("s/b/0", 0, 2, now_ns=1)[1] == 0


def test_a_consumer_takes_what_comes_after_any_silence_whether_it_has_forgotten_or_not() -> None:
    for silence_ns in (1, ORIGIN_TTL_NS // 2 - 1, ORIGIN_TTL_NS // 2, ORIGIN_TTL_NS, 3 * ORIGIN_TTL_NS):
        sent, consumer, now_ns = SentTable(), DeliveryTable(), 10**18
        for offset in range(3):
            sequence, previous = sent.number("s/a/0", 0, offset, now_ns=now_ns)
            # Another origin keeps the consumer's clock going, and its sweeps.
            consumer.take("s/b/0", sequence=offset + 1, previous=offset, now_ns=now_ns)
            verdict = consumer.take("s/a/0", sequence=sequence, previous=previous, now_ns=now_ns)
            assert verdict is Verdict.TAKE, f"after a silence of {silence_ns} ns"
            again = consumer.take("s/a/0", sequence=sequence, previous=previous, now_ns=now_ns)
            assert again is Verdict.DUPLICATE
            for step in range(1, 5):
                consumer.open("s/b/0", acknowledged=0, now_ns=now_ns + step * silence_ns // 4)
            now_ns += silence_ns
