"""The loads of benchmarks/lab that go by topics: what they expect is what the applications give, and no other."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Callable

import pytest

from benchmarks.lab import json_orders, json_orders_load, word_count, word_count_load
from bettong.lab.load import VALUE, LabLoad, TopicLoad

MESSAGES = 500


def counts(values: list[bytes]) -> list[bytes]:
    """What the word count puts out."""
    states: defaultdict[str, word_count.Count] = defaultdict(word_count.Count)
    words = map(word_count.read, values)
    return [word_count.write(word_count.count(word, states[word.word])) for word in words]


def totals(values: list[bytes]) -> list[bytes]:
    """What the application of orders puts out, as JSON."""
    states: defaultdict[int, json_orders.AccountTotal] = defaultdict(json_orders.AccountTotal)
    orders = map(json_orders.read, values)
    rows = (json_orders.add(order, states[order.account]) for order in orders)
    names = json_orders.TotalledOrder.__slots__
    return [
        json.dumps({name: getattr(row, name) for name in names}, separators=(",", ":")).encode()
        for row in rows
    ]


CASES = [
    pytest.param(word_count_load.load, counts, word_count_load.SINK, id="word count"),
    pytest.param(json_orders_load.load, totals, json_orders_load.SINK, id="JSON"),
]


def fed(load: LabLoad) -> list[bytes]:
    """All records, in the order of sending."""
    parts = itertools.chain(load.first(), *load.rounds())
    return [value for part in parts for value in part.columns[VALUE]]


@pytest.mark.parametrize(("make", "run", "sink"), CASES)
def test_the_applications_results_are_right_and_each_says_which_message_it_is_of(
    make: Callable[[int, int], TopicLoad], run: Callable[[list[bytes]], list[bytes]], sink: str
) -> None:
    load = make(MESSAGES, 1)
    assert isinstance(load, TopicLoad)
    results = run(fed(load))
    assert load.result_bytes() == {sink: sum(map(len, results))}
    assert load.wrong({sink: b"".join(results)}) == ""
    numbers = [load.message_of(result) for result in results]
    first = sum(part.messages for part in load.first())
    assert numbers == [*[-1] * first, *range(MESSAGES)]


@pytest.mark.parametrize(("make", "run", "sink"), CASES)
def test_a_result_that_is_lost_doubled_or_changed_is_seen(
    make: Callable[[int, int], TopicLoad], run: Callable[[list[bytes]], list[bytes]], sink: str
) -> None:
    load = make(MESSAGES, 1)
    results = run(fed(load))
    for wrong in (
        results[:-1],
        [*results, results[-1]],
        [*results[:-1], results[-1].replace(b"1", b"9").replace(b"2", b"8")],
    ):
        assert load.wrong({sink: b"".join(wrong)})


def test_the_same_seed_gives_the_same_records() -> None:
    for make in (word_count_load.load, json_orders_load.load):
        assert fed(make(MESSAGES, 3)) == fed(make(MESSAGES, 3)) != fed(make(MESSAGES, 4))
