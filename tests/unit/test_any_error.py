"""Whatever a user's function raises is its message's failure: interrupts and cancellations too."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import bettong
from bettong import Application
from bettong.application.decoders import each
from bettong.application.plan import plan
from bettong.schema.schema import schema_of
from bettong.worker.stage_program import program
from tests.samples.worker import data, dead_letters, fold, worker


class Odd(BaseException):
    """Of nobody's tree."""


RAISED: list[type[BaseException]] = [
    KeyboardInterrupt,
    asyncio.CancelledError,
    GeneratorExit,
    SystemExit,
    Odd,
]


@dataclass(slots=True)
class Number:
    """What comes in."""

    name: str
    value: int


@dataclass(slots=True)
class Sum:
    """What is kept."""

    total: int = 0


def builds(kind: type[BaseException]) -> dict[str, Callable[[Application], Any]]:
    """Applications whose functions raise `kind` for 0."""

    def check(number: Number) -> None:
        if number.value == 0:
            raise kind("why")

    def same(number: Number) -> Number:
        check(number)
        return number

    def keep(number: Number) -> bool:
        check(number)
        return True

    def several(number: Number) -> list[Number]:
        check(number)
        return [number]

    def name(number: Number) -> str:
        check(number)
        return number.name

    def add(number: Number, kept: Sum) -> Number:
        check(number)
        kept.total += number.value
        return Number(number.name, kept.total)

    def encoded(number: Number) -> bytes:
        check(number)
        return str(number.value).encode()

    def source(app: Application) -> bettong.Stream[Any]:
        return app.source("in", schema=Number, key="name")

    return {
        "map": lambda app: source(app).map(same).sink("out"),
        "filter": lambda app: source(app).filter(keep).sink("out"),
        "flat_map": lambda app: source(app).flat_map(several).sink("out"),
        "key_by": lambda app: source(app).key_by(name).sink("out"),
        "stateful": lambda app: source(app).stateful(add, state=Sum).sink("out"),
        "sink": lambda app: source(app).sink("out", encoder=encoded),
    }


@pytest.mark.parametrize("build", builds(Odd))
@pytest.mark.parametrize("kind", RAISED)
def test_it_is_a_dead_letter_and_the_next_message_goes_on(kind: type[BaseException], build: str) -> None:
    app = Application("meters")
    builds(kind)[build](app)
    messages = [Number("a", 1), Number("a", 0), Number("a", 2)]
    records = fold(worker(program(plan(app).stages[0], compiled=False)), [data("in/a", 1, messages)])
    (dead_letter,) = dead_letters(records)
    assert (dead_letter.index, dead_letter.reason) == (1, f"{kind.__name__}: why")
    assert sum(record.count for record in records if not record.topic.endswith("dead-letters")) == 2


@pytest.mark.parametrize("kind", RAISED)
def test_of_a_decoder_it_refuses_the_message(kind: type[BaseException]) -> None:
    def decode(row: bytes) -> Number:
        if row == b"0":
            raise kind("why")
        return Number("a", int(row))

    found = each(decode).decode(schema_of(Number), [b"1", b"0", b"2"])
    assert found.messages == [Number("a", 1), Number("a", 2)]
    assert found.refused == {1: f"{kind.__name__}: why"}
