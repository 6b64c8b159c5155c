"""Making a message may raise, and so may str() of an exception: both are failures of that message alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest

import bettong
from bettong import Application, Stream, Width
from bettong.application.plan import plan
from bettong.errors import PoisonError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, encode
from bettong.identifiers import Origin, SequenceNumber
from bettong.inspection.key_history import KeyHistory
from bettong.schema.schema import schema_of
from bettong.user_errors import reason_of
from bettong.worker.partition import Assignment
from bettong.worker.stage_program import StageProgram, program
from tests.samples.worker import FRAME_BYTES_MAX, dead_letters, fold, worker


@dataclass
class Strict:
    """Does not let itself be made with 13. The log may hold it all the same: an older version wrote it."""

    key: Annotated[str, Width(4)]
    value: bettong.i64

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "value" and isinstance(value, int) and value == 13:
            raise ValueError("no 13")
        object.__setattr__(self, name, value)


@dataclass
class Kept:
    count: int = 0


def frame(*values: int) -> bytes:
    columns = Columns.of_values(schema_of(Strict), [["k"] * len(values), list(values)])
    return encode(
        Frame(
            origin=Origin("in/a"),
            sequence=SequenceNumber(1),
            previous=SequenceNumber(0),
            count=len(values),
            schema=columns.schema.fingerprint,
            columns=columns.payload(),
        )
    )


def same(strict: Strict) -> Strict:
    return strict


def any_of(strict: Strict) -> bool:
    return strict.value != 0


def listed(strict: Strict) -> list[Strict]:
    return [strict]


def counted(strict: Strict, kept: Kept) -> Strict:
    kept.count += 1
    return strict


def text_of(strict: Strict) -> str:
    return strict.key


def encoded(strict: Strict) -> bytes:
    return str(strict.value).encode()


Build = Callable[[Stream[Any], Any], object]
KINDS: dict[str, Build] = {
    "map": lambda source, how: source.map(same, name="f", on_error=how).sink("out"),
    "filter": lambda source, how: source.filter(any_of, name="f", on_error=how).sink("out"),
    "flat_map": lambda source, how: source.flat_map(listed, name="f", on_error=how).sink("out"),
    "stateful": lambda source, how: source.stateful(counted, state=Kept, name="f", on_error=how).sink("out"),
    "key_by": lambda source, how: source.key_by(text_of, name="f", on_error=how).sink("out"),
    "sink": lambda source, how: source.sink("f", encoder=encoded, on_error=how),
}


def stage(build: Build, how: str = "dead-letter", key: Any = "key") -> StageProgram:
    app = Application("meters")
    build(app.source("in", schema=Strict, key=key), how)
    return program(plan(app).stages[0], compiled=False)


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_that_cannot_be_made_is_a_dead_letter_and_the_others_go_on(kind: str) -> None:
    of = worker(stage(KINDS[kind]))
    found = dead_letters(fold(of, [frame(13, 1, 13, 13, 2, 13)]))
    assert [(each.computation, each.index) for each in found] == [("f", index) for index in (0, 2, 3, 5)]
    assert {each.reason for each in found} == {"ValueError: no 13"}
    assert {each.message for each in found} == {b'{"key":"k","value":13}'}
    assert of.counters.results == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_that_cannot_be_made_stops_where_it_must(kind: str) -> None:
    with pytest.raises(PoisonError) as caught:
        fold(worker(stage(KINDS[kind], "stop")), [frame(1, 13, 2, 13)])
    assert (caught.value.computation, caught.value.index) == ("f", 1)


def test_a_message_that_cannot_be_made_has_no_key_either() -> None:
    of = worker(stage(KINDS["stateful"], key=text_of))
    found = dead_letters(fold(of, [frame(1, 13, 2)]))
    assert [(each.index, each.reason) for each in found] == [(1, "ValueError: no 13")]
    assert of.tables["f"].state_of("k") == {"count": 2}


def test_the_history_of_a_key_shows_a_message_that_cannot_be_made() -> None:
    of = KeyHistory(stage(KINDS["map"]), Assignment("meters", 0, 1, FRAME_BYTES_MAX), "k", {})
    good, bad = of.fold(0, frame(1, 13))
    assert good.outputs == (("out", '{"key":"k","value":1}'),)
    assert (bad.message, bad.outputs) == ('{"key":"k","value":13}', ())
    assert bad.failures == (("f", "dead-letter", "ValueError: no 13"),)


class MuteError(Exception):
    """Has no text."""

    def __str__(self) -> str:
        raise KeyError("mute")


MUTE = "MuteError: (to make its text raises, too)"


def mute(strict: Strict) -> Strict:
    raise MuteError


def mute_key(strict: Strict) -> str:
    raise MuteError


def mute_bytes(strict: Strict) -> bytes:
    raise MuteError


@bettong.vectorized
def mute_of_all(strict: Strict) -> Strict:
    if len(np.asarray(strict.value)):
        raise MuteError
    return strict


def test_an_error_without_a_text_is_reported_by_its_class() -> None:
    assert reason_of(MuteError()) == MUTE
    assert reason_of(ValueError("why")) == "ValueError: why"


@pytest.mark.parametrize(
    "build",
    [
        lambda source, how: source.map(mute, name="f", on_error=how).sink("out"),
        lambda source, how: source.map(mute_of_all, name="f", on_error=how).sink("out"),
        lambda source, how: source.key_by(mute_key, name="f", on_error=how).sink("out"),
        lambda source, how: source.sink("f", encoder=mute_bytes, on_error=how),
    ],
    ids=["python", "vectorized", "key_by", "encoder"],
)
def test_what_raises_without_a_text_is_a_dead_letter_like_any_other(build: Build) -> None:
    found = dead_letters(fold(worker(stage(build)), [frame(1, 2)]))
    assert [(each.index, each.reason) for each in found] == [(0, MUTE), (1, MUTE)]
