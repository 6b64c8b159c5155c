"""Hot keys: the sample of a partition, what is reported of it, and when a key is too hot."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pytest

import bettong
from bettong import Width
from bettong.application.plan import StageInput
from bettong.frames.columns import Columns
from bettong.hot_keys import HotKey, HotKeys
from bettong.identifiers import PartitionId
from bettong.inspection.hot_keys import hot_keys_of, skews
from bettong.inspection.overview import PartitionRow, overview, partition_rows
from bettong.schema.schema import schema_of
from bettong.worker.batch import FrameKeys
from bettong.worker.hot_keys import KeySample
from bettong.worker.stage_program import program
from bettong_processor.reporting import metrics_of
from tests.samples.worker import Reading, data, meters, worker


@dataclass(frozen=True)
class Trade:
    """With keys of each kind."""

    symbol: str
    short: Annotated[str, Width(6)]
    number: bettong.i32
    raw: bytes


@dataclass(frozen=True)
class Number:
    """A key alone."""

    number: bettong.i32


SCHEMA = schema_of(Trade)
KINDS: dict[str, Any] = {
    "text": "symbol",
    "text of a fixed width": "short",
    "a number": "number",
    "bytes": "raw",
    "two fields": ("symbol", "number"),
}


def frame(key: Any, numbers: Sequence[int]) -> FrameKeys:
    """A frame of trades: number n has symbol `kn`."""
    trades = [Trade(f"k{number}", f"k{number}", number, b"k%d" % number) for number in numbers]
    return FrameKeys(StageInput("trades", SCHEMA, key), Columns.of_messages(SCHEMA, trades))


def plain(numbers: npt.ArrayLike) -> FrameKeys:
    """A frame of numbers, made quickly."""
    column = np.array(numbers, np.int32)
    columns = Columns(schema_of(Number), len(column), (column,))
    return FrameKeys(StageInput("numbers", columns.schema, "number"), columns)


def sampled(key: Any, numbers: Sequence[int], messages: int, into: KeySample | None = None) -> KeySample:
    """What a sample finds in frames of that many messages."""
    sample = into or KeySample()
    for start in range(0, len(numbers), messages):
        part = numbers[start : start + messages]
        sample.note(frame(key, part), len(part))
    return sample


def drawn(seed: int, hot: float, messages: int, keys: int = 10_000) -> list[int]:
    """Random keys, with a share for key 7."""
    draw = np.random.default_rng(seed)
    return [int(each) for each in np.where(draw.random(messages) < hot, 7, draw.integers(8, keys, messages))]


@pytest.mark.parametrize("key", KINDS.values(), ids=KINDS)
def test_a_hot_key_is_found_by_its_text_whatever_its_kind(key: Any) -> None:
    found = sampled(key, drawn(1, 0.5, 60_000), 100).found()
    expected = {"number": "7", ("symbol", "number"): '["k7",7]'}.get(key, "k7")
    assert found.keys[0].key == expected
    assert found.keys[0].share == pytest.approx(0.5, abs=0.12)


@pytest.mark.parametrize("messages", [1, 32, 1000, 8192])
def test_its_share_is_right_however_messages_are_cut_into_frames(messages: int) -> None:
    numbers = drawn(messages, 0.4, 40 * messages + 40_000)
    frames = [plain(numbers[at : at + messages]) for at in range(0, len(numbers) - messages + 1, messages)]
    sample = KeySample()
    for at in range(500_000 // min(messages, 64)):
        sample.note(frames[at % len(frames)], messages)
    found = sample.found()
    first, second, *_ = found.keys
    assert (first.key, second.key != "7") == ("7", True)
    assert first.least <= 0.4 + 0.1
    assert first.share == pytest.approx(0.4, abs=0.1)
    assert second.share < 0.06, "none of the others is hot"


@pytest.mark.parametrize("period", [2, 16, 64, 128, 255, 256, 257, 512])
def test_messages_that_come_in_turns_do_not_deceive_it(period: int) -> None:
    sample = KeySample()
    for start in range(0, 150_000, 64):
        sample.note(plain(np.arange(start, start + 64) % period), 64)
    assert sample.found().keys[0].least <= 1 / period + 0.12


def test_what_was_hot_is_forgotten() -> None:
    sample = KeySample()
    for number in (1, 2, 3):
        keys = frame("number", [number] * 64)
        for _ in range(2 * 32 * 512):
            sample.note(keys, 64)
        assert sample.found().keys[0].key == str(number)
    assert "1" not in {each.key for each in sample.found().keys}


def test_between_two_rounds_something_is_known() -> None:
    sample = KeySample()
    asked = []
    keys = frame("number", [5] * 256)
    for _ in range(3 * 32 * 512):
        sample.note(keys, 256)
        asked.append(sample.found().keys[:1])
    known = [each for each in asked if each]
    assert asked == [()] * (len(asked) - len(known)) + known, "from some time on always"
    assert len(asked) - len(known) < 200
    assert set(known) == {(HotKey("5", 1.0, 1.0),)}


def test_before_the_first_sample_nothing_is_hot() -> None:
    assert KeySample().found() == HotKeys(0)


def by_function(trade: Trade) -> str:
    return trade.symbol


def returns_lists(_trade: Trade) -> Any:
    return [1]


def fails(_trade: Trade) -> str:
    raise ValueError("no key")


@pytest.mark.parametrize("key", [None, by_function], ids=["no key", "a function that nobody has asked"])
def test_a_stream_whose_keys_nobody_knows_has_no_hot_ones(key: Callable[[Trade], str] | None) -> None:
    assert sampled(key, [7] * 60_000, 100).found().keys == ()


@pytest.mark.parametrize(
    ("key", "expected"),
    [(by_function, ["k7"]), (returns_lists, []), (fails, [])],
    ids=["a key", "no key", "an exception"],
)
def test_what_a_function_has_given_is_taken_where_it_is_a_key(key: Any, expected: list[str]) -> None:
    sample, keys = KeySample(), frame(key, [7] * 100)
    keys.values()
    for _ in range(1000):
        sample.note(keys, 100)
    assert [each.key for each in sample.found().keys] == expected


def test_a_long_key_is_cut_and_keys_are_bounded() -> None:
    sample = KeySample()
    trades = [Trade("x" * 5000 + str(number), "", number, b"") for number in range(300)]
    keys = FrameKeys(StageInput("trades", SCHEMA, ("symbol", "number")), Columns.of_messages(SCHEMA, trades))
    for _ in range(1000):
        sample.note(keys, len(trades))
    assert [each.key for each in sample.found().keys] == ['["' + "x" * 198]
    many = KeySample()
    for start in range(0, 200_000, 64):
        many.note(plain(range(start, start + 64)), 64)
    assert len(many._newest.heaviest(10_000)) == 50


def test_a_workers_record_has_them_and_a_replay_the_same() -> None:
    def folded() -> dict[str, Any]:
        own = worker(program(meters().stages[0], compiled=False))
        for number in range(200):
            readings = [Reading("hot" if each % 4 else f"m{each}", 1) for each in range(64)]
            own.fold(number, data("readings/feed", number + 1, readings))
        return metrics_of(own)

    found = folded()
    (hottest, *_) = hot_keys_of(found)
    assert hottest.key == "hot"
    assert found["hot_key_share"] == hottest.share > 0.5
    assert folded() == found


def test_a_worker_that_has_folded_little_says_nothing() -> None:
    own = worker(program(meters().stages[0], compiled=False))
    own.fold(0, data("readings/feed", 1, [Reading("m", 1)]))
    assert (metrics_of(own)["hot_keys"], metrics_of(own)["hot_key_share"]) == ("", "")


@pytest.mark.parametrize("key", ["ACME", "é\n[x]\x1b", ""])
def test_they_travel_as_text(key: str) -> None:
    found = HotKeys(4096, (HotKey(key, 0.625, 0.5), HotKey("b", 0.1, 0.0)))
    assert HotKeys.parse(found.to_text()) == found


@pytest.mark.parametrize(
    "text",
    ["", "7", "[]", "{}", '{"messages":1}', '{"messages":1,"keys":[[1,0.5,0.5]]}', "[" * 100_000]
    + [
        f'{{"messages":{count},"keys":[["a",{shares}]]}}'
        for count, shares in ((1, "0.5"), (1, "2,1"), (-1, "1,1"))
    ]
    + [
        '{"messages":1,"keys":[["a",NaN,0]]}',
        '{"messages":1e999,"keys":[]}',
        '{"messages":1,"keys":[["a",0.1,0.2]]}',
    ],
)
def test_what_is_none_in_a_record_is_left_out(text: str) -> None:
    with pytest.raises(ValueError, match=r"hot keys|Expecting|values to unpack"):
        HotKeys.parse(text)
    assert hot_keys_of({"hot_keys": text}) == ()


def row(partition: int, messages: int, *keys: HotKey, rate: float | None = None) -> PartitionRow:
    return PartitionRow("spreads", partition, 0, None, messages, 0, rate, None, None, hot_keys=keys)


ACME = HotKey("ACME", 0.9, 0.8)


def test_a_key_with_twice_what_a_partition_would_have_is_named_with_what_to_do() -> None:
    rows = [row(0, 900_000, ACME), *(row(number, 33_333) for number in range(1, 4))]
    (found,) = skews(rows)
    assert (found.id, found.key, found.fair) == (PartitionId("spreads", 0), "ACME", 0.25)
    assert found.share == pytest.approx(0.72, abs=0.001)
    assert found.text.startswith(
        "spreads/0: key 'ACME' has 72% of the messages of its stage, an even share per partition is 25%; a key is"
    )
    assert "`local`" in found.text


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [row(0, 900_000, ACME)],
        [row(0, 300_000, ACME), *(row(number, 300_000) for number in range(1, 4))],
        [row(0, 900_000, HotKey("A", 0.9, 0.4)), *(row(number, 33_333) for number in range(1, 4))],
    ],
    ids=["nothing", "one partition", "an even load", "not surely so hot"],
)
def test_no_skew_is_named_where_a_partition_can_bear_it(rows: list[PartitionRow]) -> None:
    assert skews(rows) == []


def test_the_load_of_late_counts_where_it_is_known() -> None:
    then, now = row(0, 900_000, ACME, rate=10.0), row(1, 100_000, HotKey("B", 1.0, 1.0), rate=9_000.0)
    rest = [row(2, 50_000, rate=10.0), row(3, 0)]
    assert [(each.key, round(each.share, 2)) for each in skews([then, now, *rest])] == [("B", 1.0)]
    quiet = [row(0, 900_000, ACME, rate=0.0), row(1, 10, rate=0.0), row(2, 0), row(3, 0)]
    assert [each.key for each in skews(quiet)] == ["ACME"], "since the beginning, when nothing comes"


def test_an_overview_has_skews_while_somebody_folds() -> None:
    hot = HotKeys(9000, (ACME,)).to_text()
    partitions = {
        PartitionId("spreads", 0): {"offset": "9", "messages": "90000", "hot_keys": hot},
        **{PartitionId("spreads", each): {"offset": "9", "messages": "10"} for each in (1, 2, 3)},
    }
    live = {"processor": {"service": "processor", "lag": "0"}}
    rows = partition_rows(live, partitions)
    assert [row.hot_keys for row in rows] == [(ACME,), (), (), ()]
    (text,) = overview(live, partitions, rows).skews
    assert "'ACME'" in text
    assert [row.hot_keys for row in partition_rows({}, partitions)] == [()] * 4
    assert overview({}, partitions, partition_rows({}, partitions)).skews == ()
