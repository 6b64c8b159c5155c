"""Rows become frames: encoders, keys, numbers, and frames that are never too large."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong import Application
from bettong.application.plan import plan
from bettong.frames.frame import decode
from bettong.routing import partition_of
from bettong.worker.output.framing import OutputRecord
from bettong.worker.output.numbering import PARTS_MAX
from bettong.worker.stage_program import StageProgram, program
from tests.samples.worker import data, dead_letters, fold, frames, python, results, worker


@dataclass
class Word:
    word: str


OUT = "meters.sink.out"
BY = "meters.stage.by"
LIMIT = 16 * 1024


def encoder(word: Word) -> bytes:
    if word.word == "odd":
        raise ValueError("cannot be encoded")
    if word.word == "none":
        return None  # type: ignore[return-value]
    return word.word.encode()


def encoded(words: list[str], **options: int) -> list[OutputRecord]:
    app = Application("meters")
    app.source("in", schema=Word).sink("out", encoder=encoder)
    return fold(worker(python(app), **options), [data("in/a", 1, [Word(each) for each in words])])


def rows(records: list[OutputRecord]) -> list[bytes]:
    return [row for frame in frames(records, OUT) for row in frame.rows or ()]


def test_an_encoder_gives_the_bytes_of_each_message() -> None:
    records = encoded(["a", "", "ä"])
    assert rows(records) == [b"a", b"", "ä".encode()]
    (frame,) = frames(records, OUT)
    assert (frame.count, frame.schema, frame.columns) == (3, 0, None)


def test_an_encoder_that_raises_or_gives_no_bytes_makes_dead_letters() -> None:
    records = encoded(["a", "odd", "b", "none"])
    assert rows(records) == [b"a", b"b"]
    assert [(each.computation, each.index, each.reason) for each in dead_letters(records)] == [
        ("out", 1, "ValueError: cannot be encoded"),
        ("out", 3, "SchemaError: the encoder returned NoneType, not bytes"),
    ]


def test_results_that_could_not_leave_are_not_counted_as_results() -> None:
    app = Application("meters")
    app.source("in", schema=Word).sink("out", encoder=encoder)
    one = worker(python(app))
    fold(one, [data("in/a", 1, [Word("a"), Word("odd"), Word("none")])])
    assert (one.counters.results, one.counters.dead_letters) == (1, 2)


def check_numbers(records: list[OutputRecord], topic: str, offset: int) -> None:
    """Each frame follows the one before, and all carry the number of the offset."""
    found = list(frames(records, topic))
    assert all(left.sequence == right.previous for left, right in pairwise(found))
    assert [each.sequence for each in found] == [
        (offset + 1) * PARTS_MAX + part for part in range(len(found))
    ]


@given(st.lists(st.integers(0, LIMIT), min_size=1, max_size=12))
def test_rows_are_spread_over_frames_that_fit(sizes: list[int]) -> None:
    words = ["x" * min(size, LIMIT - 2000) for size in sizes]
    records = encoded(words, frame_bytes_max=LIMIT)
    assert [row.decode() for row in rows(records)] == words
    assert all(len(record.value) <= LIMIT for record in records)
    check_numbers(records, OUT, 0)


def columns_of(words: list[str], limit: int) -> tuple[StageProgram, list[OutputRecord]]:
    app = Application("meters")
    app.source("in", schema=Word).sink("out")
    of = python(app)
    values = [data("in/a", 1, [Word(each) for each in words])]
    return of, fold(worker(of, frame_bytes_max=limit), values)


@given(st.lists(st.integers(0, LIMIT - 3000), min_size=1, max_size=12))
def test_columns_are_halved_until_they_fit(sizes: list[int]) -> None:
    words = ["x" * size for size in sizes]
    _, records = columns_of(words, LIMIT)
    assert [each.word for each in results(records, OUT, Word)] == words
    assert all(len(record.value) <= LIMIT for record in records)
    check_numbers(records, OUT, 0)


def test_the_next_frame_follows_the_last_part() -> None:
    of, _ = columns_of(["x"], LIMIT)
    one = worker(of, frame_bytes_max=LIMIT)
    values = [data("in/a", number, [Word("x" * 9000)] * 4) for number in (1, 2)]
    found = list(frames(fold(one, values), OUT))
    assert [each.sequence - PARTS_MAX for each in found[:4]] == [0, 1, 2, 3]
    assert [each.previous for each in found[4:]] == [each.sequence for each in found[3:-1]]
    assert found[4].sequence == 2 * PARTS_MAX


@pytest.mark.parametrize("emits", ["columns", "rows", "key"])
def test_a_result_that_no_frame_can_hold_is_a_dead_letter(emits: str) -> None:
    app = Application("meters")
    source = app.source("in", schema=Word)
    if emits == "key":
        source.key_by("word", name="out").sink("end")
        topic = "meters.stage.out"
    else:
        source.sink("out", encoder=encoder if emits == "rows" else None)
        topic = OUT
    of = program(plan(app).stages[0], compiled=False)
    words = ["a", "x" * 2 * LIMIT, "b"]
    records = fold(worker(of, frame_bytes_max=LIMIT), [data("in/a", 1, [Word(each) for each in words])])
    assert sum(frame.count for frame in frames(records, topic)) == 2
    (dead_letter,) = dead_letters(records)
    assert (dead_letter.computation, dead_letter.index) == ("out", 1)
    assert "a frame holds at most 15360 (BETTONG_FRAME_BYTES_MAX)" in dead_letter.reason
    assert all(len(record.value) <= LIMIT for record in records)


def test_dead_letters_are_spread_over_frames_that_fit_and_keep_the_start_of_a_message() -> None:
    records = encoded(["odd"] * 300 + ["x" * 20 * 1024] * 3, frame_bytes_max=LIMIT)
    found = dead_letters(records)
    assert len(found) == 303
    assert len({each.index for each in found}) == 303
    assert found[-1].message.startswith(b'{"word":"xxx')
    assert all(len(record.value) <= LIMIT for record in records)
    check_numbers(records, "meters.dead-letters", 0)
    assert next(frames(records, "meters.dead-letters")).origin == "dead-letters/in/0"


def keyed(key: Any, words: list[str], partitions: int = 4) -> list[OutputRecord]:
    app = Application("meters")
    app.source("in", schema=Word).key_by(key, name="by").sink("out")
    of = program(plan(app).stages[0], compiled=False)
    return fold(worker(of, partitions=partitions), [data("in/a", 1, [Word(each) for each in words])])


@given(st.lists(st.sampled_from(["", "a", "b", "ä", "long enough to differ"]), min_size=1), st.integers(1, 9))
def test_each_row_goes_to_the_partition_of_its_key_in_order(words: list[str], partitions: int) -> None:
    for key in ("word", lambda word: word.word):
        records = (
            keyed(key, words, partitions) if isinstance(key, str) else keyed(named(key), words, partitions)
        )
        assert {record.topic for record in records} == {BY}
        for record in records:
            expected = [each for each in words if partition_of(each, partitions) == record.partition]
            assert [each.word for each in results([record], BY, Word)] == expected
            assert decode(record.value).origin == "by/in/0"
        assert sum(record.count for record in records) == len(words)


def named(function: Any) -> Any:
    function.__name__ = "named"
    return function


def choosy(word: Word) -> Any:
    if word.word == "raise":
        raise LookupError("no key")
    return {"float": 1.5, "none": None, "large": 2**70, "list": []}.get(word.word, word.word)


def test_a_key_function_that_raises_or_gives_no_key_makes_dead_letters() -> None:
    words = ["a", "raise", "b", "float", "none", "large", "list", "c"]
    records = keyed(choosy, words)
    assert sorted(each.word for each in results(records, BY, Word)) == ["a", "b", "c"]
    found = dead_letters(records)
    assert [each.index for each in found] == [1, 3, 4, 5, 6]
    assert [each.computation for each in found] == ["by"] * 5
    assert [each.reason.split(":")[0] for each in found] == [
        "LookupError", "TypeError", "TypeError", "OverflowError", "TypeError"
    ]  # fmt: skip


def test_a_key_function_that_always_raises_leaves_only_dead_letters() -> None:
    records = keyed(choosy, ["raise", "raise"])
    assert len(dead_letters(records)) == 2
    assert {record.topic for record in records} == {"meters.dead-letters"}
