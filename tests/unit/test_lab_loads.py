"""The loads of benchmarks/lab: what they expect is what the applications give, and no other."""

from __future__ import annotations

import csv
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import implied_volatility, odd_numbers
from benchmarks.lab import (
    implied_volatility_load,
    json_orders,
    json_orders_load,
    keyed_numbers,
    market_spread,
    market_spread_2926,
    market_spread_topic,
    numbers_of_350_keys,
    numbers_often,
    word_count,
    word_count_load,
)
from benchmarks.peers import market
from benchmarks.workload import SEED
from bettong.application.plan import plan
from bettong.edges.application_file import load as load_application
from bettong.lab.load import PARTITION, VALUE, LabLoad, LoadPart, SinkResults, TopicLoad
from bettong.lab.spec import read
from bettong.lab.table_load import load_of
from examples.market_spread_load import instruments, more_instruments, rounds

ROOT = Path(__file__).parents[2]
MESSAGES = 500


def counts(values: list[bytes]) -> list[bytes]:
    """What the word count puts out."""
    states: defaultdict[str, word_count.Count] = defaultdict(word_count.Count)
    words = map(word_count.read, values)
    return [word_count.write(word_count.count(word, states[word.word])) for word in words]


def totals(values: list[bytes]) -> list[bytes]:
    """What the application of orders puts out, as JSON."""
    states: defaultdict[int, json_orders.AccountTotal] = defaultdict(json_orders.AccountTotal)
    orders = (json_orders.JsonOrder(**json.loads(value)) for value in values)
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
    assert load.wrong({sink: SinkResults.of(results)}) == ""
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
        assert load.wrong({sink: SinkResults.of(wrong)})


def test_the_same_seed_gives_the_same_records() -> None:
    for make in (word_count_load.load, json_orders_load.load, market_spread_topic.load):
        assert fed(make(MESSAGES, 3)) == fed(make(MESSAGES, 3)) != fed(make(MESSAGES, 4))


def parts_of(load: LabLoad) -> Iterator[LoadPart]:
    """All parts, in the order of sending."""
    yield from load.first()
    for each in load.rounds():
        yield from each


def rows_of(part: LoadPart) -> Iterator[tuple[Any, ...]]:
    """As plain Python values."""
    return zip(*(column.tolist() for column in part.columns.values()), strict=True)


def sums(load: LabLoad) -> list[bytes]:
    """What odd_numbers.py puts out, as JSON."""
    states: defaultdict[object, odd_numbers.Sum] = defaultdict(odd_numbers.Sum)
    rows = itertools.chain.from_iterable(map(rows_of, parts_of(load)))
    found = [odd_numbers.add(odd_numbers.Number(*row), states[row[0]]) for row in rows]
    return [f'{{"key":{each.key},"total":{each.total}}}'.encode() for each in found if each is not None]


def volatilities(load: LabLoad) -> list[bytes]:
    """What implied_volatility.py puts out, as JSON."""
    states: defaultdict[object, implied_volatility.Guess] = defaultdict(implied_volatility.Guess)
    rows = itertools.chain.from_iterable(map(rows_of, parts_of(load)))
    found = [implied_volatility.imply(implied_volatility.Number(*row), states[row[0]]) for row in rows]
    return [f'{{"key":{each.key},"total":{each.total}}}'.encode() for each in found if each is not None]


def rejected(load: LabLoad) -> list[bytes]:
    """What the peers' rule rejects of quotes and orders that come by clients, or by a topic."""
    markets: defaultdict[bytes, market.Market] = defaultdict(lambda: market.NEW)
    results = []
    for part in parts_of(load):
        for row in rows_of(part):
            if VALUE in part.columns:
                symbol = market.symbol_of(row[0])
                markets[symbol], result = market.step(row[0], markets[symbol])
            else:
                symbol = row[list(part.columns).index("symbol")]
                markets[symbol], result = market.step_row(row, markets[symbol])
            results += [result] if result is not None else []
    return results


@pytest.mark.parametrize(
    ("make", "run", "sink"),
    [
        pytest.param(numbers_of_350_keys.load, sums, "totals", id="350 keys"),
        pytest.param(numbers_often.load, sums, "totals", id="often"),
        pytest.param(implied_volatility_load.load, volatilities, "volatilities", id="volatility"),
        pytest.param(market_spread.load, rejected, market_spread.SINK, id="350 symbols"),
        pytest.param(market_spread_2926.load, rejected, market_spread.SINK, id="2926 symbols"),
        pytest.param(market_spread_topic.load, rejected, market_spread_topic.SINK, id="topic"),
    ],
)
def test_what_goes_as_fast_as_it_goes_is_right_to_the_byte(
    make: Callable[[int, int], LabLoad], run: Callable[[LabLoad], list[bytes]], sink: str
) -> None:
    load = make(4_000, 1)
    results = run(load)
    assert len(results) > 1
    assert load.result_bytes() == {sink: sum(map(len, results))}
    assert load.wrong({sink: SinkResults.of(results)}) == ""
    for wrong in (results[:-1], [*results, results[-1]], [*results[:-1], results[0]]):
        assert load.wrong({sink: SinkResults.of(wrong)})


def test_a_load_of_numbers_is_made_of_its_seed() -> None:
    def keys(seed: int) -> list[int]:
        (part,) = next(numbers_of_350_keys.load(MESSAGES, seed).rounds())
        return [int(key) for key in part.columns["key"]]

    assert keys(0) == keys(0) != keys(1)
    assert isinstance(numbers_of_350_keys.load(MESSAGES, 0), keyed_numbers.NumberLoad)


def test_market_spread_is_made_of_its_seed_and_0_is_the_load_of_make_bench() -> None:
    def fed_by(seed: int) -> list[dict[str, list[object]]]:
        parts = itertools.chain.from_iterable(market_spread.load(MESSAGES, seed).rounds())
        return [{name: column.tolist() for name, column in part.columns.items()} for part in parts]

    (bench,) = rounds(MESSAGES, seed=SEED)
    columns = [
        {name: column.tolist() for name, column in each.items()} for each in (bench.quotes, bench.orders)
    ]
    assert fed_by(0) == columns
    assert fed_by(1) != columns


def test_of_350_symbols_the_instruments_are_those_of_the_files_and_of_2926_each_is_quoted_first() -> None:
    usual, same, more = instruments(rejecting=True), more_instruments(350), more_instruments(2926)
    for name in ("symbols", "prices", "rejecting"):
        assert np.array_equal(getattr(usual, name), getattr(same, name))
    assert len(set(more.symbols.tolist())) == 2926
    assert set(usual.symbols.tolist()) < set(more.symbols.tolist())
    assert more.rejecting.sum() == 8 * 15  # of eight times 350, and no further 335
    first = market_spread_2926.load(0, 0).first()
    quoted = np.concatenate([part.columns["symbol"] for part in first]).tolist()
    assert sorted(quoted) == sorted(more.symbols.tolist())
    with pytest.raises(ValueError, match="349 symbols: expected 350 to 10000"):
        more_instruments(349)


def test_a_symbols_records_are_in_one_partition() -> None:
    partitions = defaultdict(set)
    for part in parts_of(market_spread_topic.load(MESSAGES, 0)):
        for value, partition in zip(
            *(part.columns[name].tolist() for name in (VALUE, PARTITION)), strict=True
        ):
            partitions[market.symbol_of(value)].add(partition)
    assert len(partitions) == 350
    assert all(len(each) == 1 for each in partitions.values())


def test_replayed_votes_come_again_and_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    spec = read(ROOT / "benchmarks" / "lab" / "running_totals_replayed.toml")
    load = load_of(spec.model_copy(update={"steps": [], "messages": 100}))
    with (ROOT / "examples/data/running_totals/votes.csv").open() as file:
        votes = [(row["letter"].encode(), int(row["votes"])) for row in csv.DictReader(file)]
    replayed = list(itertools.islice(itertools.cycle(votes), 100))
    (part,) = parts_of(load)
    columns = (part.columns[name].tolist() for name in ("letter", "votes"))
    assert list(zip(*columns, strict=True)) == replayed
    totals: defaultdict[bytes, int] = defaultdict(int)
    expected = []
    for letter, number in replayed:
        totals[letter] += number
        expected.append(b'{"letter":"%s","total":%d}' % (letter, totals[letter]))
    assert load.wrong({"totals": SinkResults.of(expected)}) == ""
    assert "1 are missing" in load.wrong({"totals": SinkResults.of(expected[1:])})


@pytest.mark.parametrize(
    "file", sorted((ROOT / "benchmarks" / "lab").glob("*.toml")), ids=lambda each: each.stem
)
def test_a_run_file_of_the_tree_has_a_load_that_its_application_takes(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    spec = read(file)
    fed = spec.model_copy(update={"steps": [], "messages": 200})
    load, planned = load_of(fed), plan(load_application(spec.application))
    assert sum(part.messages for each in load.rounds() for part in each) == 200
    assert {part.source for part in parts_of(load)} <= {each.name for each in planned.sources}
    assert load.result_bytes().keys() <= {each.name for each in planned.sinks}
    for part in parts_of(load):
        (source,) = (each for each in planned.sources if each.name == part.source)
        assert set(part.columns) in ({VALUE, PARTITION}, {each.name for each in source.schema.fields})
