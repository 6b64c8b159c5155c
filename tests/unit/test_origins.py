"""Frames from a stage to one target have one origin, whatever computations lead there: also after a change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from bettong import Application, Stream
from bettong.application.plan import plan
from bettong.delivery import DeliveryTable, Verdict
from bettong.frames.frame import decode
from bettong.worker.output.framing import OutputRecord
from bettong.worker.output.numbering import PARTS_MAX
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import program
from tests.samples.worker import data, fold, frames, python, results, worker

OUT = "meters.sink.out"


@dataclass
class Word:
    word: str


@dataclass
class Number:
    number: int


def left(word: Word) -> Word:
    return Word("left " + word.word)


def right(word: Word) -> Word:
    return Word("right " + word.word)


def length(word: Word) -> Number:
    return Number(len(word.word))


def renamed() -> type[Any]:
    """Another class of the same name, with other fields."""

    @dataclass
    class Word:
        text: str

    return Word


OTHER_WORD = renamed()


def retyped(word: Word) -> Any:
    return OTHER_WORD(word.word)


retyped.__annotations__["return"] = OTHER_WORD

Build = Callable[[Stream[Any]], Stream[Any]]
BRANCHES: dict[str, Build] = {
    "the source": lambda source: source,
    "one": lambda source: source.map(left),
    "another": lambda source: source.map(right),
    "two": lambda source: source.map(left).merge(source.map(right)),
    "two, the other way round": lambda source: source.map(right).merge(source.map(left)),
    "the source and two": lambda source: source.merge(source.map(left), source.map(right)),
    "two schemas": lambda source: source.map(left).merge(source.map(length)),
    "two schemas of one name": lambda source: source.map(left).merge(source.map(retyped)),
    "three schemas": lambda source: source.map(length).merge(source.map(left), source.map(retyped)),
}


def of(build: Build) -> PartitionWorker:
    app = Application("meters")
    build(app.source("in", schema=Word)).sink("out")
    return worker(python(app))


LOG = [data("in/a", number, [Word("x"), Word("y")]) for number in (1, 2, 3)]


@pytest.mark.parametrize("build", BRANCHES.values(), ids=BRANCHES)
def test_an_origin_depends_on_no_branch_and_no_schema_and_its_numbers_are_unique(build: Build) -> None:
    found = list(frames(fold(of(build), LOG), OUT))
    assert {each.origin for each in found} == {"out/in/0"}
    numbers = [each.sequence for each in found]
    assert numbers == sorted(set(numbers))
    assert [each.previous for each in found] == [0, *numbers[:-1]]
    assert {each // PARTS_MAX for each in numbers} == {1, 2, 3}


def taken(table: DeliveryTable, records: list[OutputRecord]) -> list[OutputRecord]:
    """What a receiver takes."""
    read = [(each, decode(each.value)) for each in records]
    return [
        record
        for record, frame in read
        if table.take(frame.origin, sequence=frame.sequence, previous=frame.previous, now_ns=0)
        is Verdict.TAKE
    ]


SAME_SCHEMA = [name for name in BRANCHES if "schemas" not in name]


@pytest.mark.parametrize("after", SAME_SCHEMA)
@pytest.mark.parametrize("before", SAME_SCHEMA)
def test_after_an_unclean_stop_an_application_with_other_branches_doubles_nothing(
    before: str, after: str
) -> None:
    old, changed, table = of(BRANCHES[before]), of(BRANCHES[after]), DeliveryTable()
    given = taken(table, fold(old, LOG[:1]))
    kept = old.snapshot()
    given += taken(table, fold(old, LOG[1:2]))
    changed.restore(kept)
    again = fold(changed, LOG[1:2])
    assert again
    assert taken(table, again) == []
    assert taken(table, fold(changed, LOG[2:])), "what was not folded before is taken"
    assert table.gap is None
    words = results(given, OUT, Word)
    assert len(words) == 4 * len(next(iter(plan_of(before).outputs)).streams)


def plan_of(name: str) -> Any:
    app = Application("meters")
    BRANCHES[name](app.source("in", schema=Word)).sink("out")
    return plan(app).stages[0]


@pytest.mark.parametrize("name", [each for each in BRANCHES if "schemas" in each])
def test_results_of_several_schemas_count_once_after_a_crash_between_their_frames(name: str) -> None:
    whole = fold(of(BRANCHES[name]), LOG)
    for written in range(len(whole)):
        table, again = DeliveryTable(), of(BRANCHES[name])
        found = taken(table, whole[:written]) + taken(table, fold(again, LOG))
        assert found == whole


def test_two_streams_of_one_schema_leave_for_a_sink_as_one() -> None:
    records = fold(of(BRANCHES["two"]), LOG[:2])
    by_origin: dict[str, list[tuple[int, int]]] = {}
    for frame in frames(records, OUT):
        by_origin.setdefault(frame.origin, []).append((frame.sequence, frame.previous))
    assert by_origin == {"out/in/0": [(1 << 20, 0), (2 << 20, 1 << 20)]}
    words = [f"{side} {word}" for _ in LOG[:2] for word in "xy" for side in ("left", "right")]
    assert [each.word for each in results(records, OUT, Word)] == words


def test_stages_that_lead_to_one_sink_are_told_apart_and_so_are_targets_of_one_stage() -> None:
    app = Application("meters")
    first, second = app.source("first", schema=Word), app.source("second", schema=Word)
    first.merge(second).sink("out")
    first.key_by("word", name="by").sink("also")
    origins = []
    for stage in plan(app).stages[:2]:
        one = worker(program(stage, compiled=False))
        records = fold(one, [data(f"{stage.name}/a", 1, [Word("x")])])
        origins.append([decode(each.value).origin for each in records])
    assert origins == [["out/first/0", "by/first/0"], ["out/second/0"]]


def test_many_branches_with_long_names_lead_to_frames_that_can_be_read() -> None:
    def branch(source: Stream[Any], number: int) -> Stream[Any]:
        def same(word: Word) -> Word:
            return word

        return source.map(same, name=f"{'b' * 95}{number}")

    def many(source: Stream[Any]) -> Stream[Any]:
        return source.merge(*(branch(source, number) for number in range(20)))

    app = Application("meters")
    many(app.source("s" * 100, schema=Word)).sink("t" * 100)
    (record,) = fold(worker(python(app)), [data(f"{'s' * 100}/a", 1, [Word("x")])])
    assert decode(record.value).origin == f"{'t' * 100}/{'s' * 100}/0"
    assert decode(record.value).count == 21
