"""Aggregates that read columns, without messages, have the results of the same ones that read messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bettong
from bettong import Application
from bettong.application.windows.aggregated import Aggregated
from tests.samples.windows import KINDS, OUT
from tests.samples.worker import data, dead_letters, fold, python, results, worker


@dataclass
class Measured:
    """Some have no value."""

    key: bettong.u32
    at: int
    value: int | None


@dataclass
class One:
    key: bettong.u32
    start: int
    end: int
    first: int | None


@dataclass
class Two:
    key: bettong.u32
    start: int
    end: int
    first: int | None
    second: int | None


def value_of(measured: Measured) -> int | None:
    return measured.value


def always(measured: Measured) -> bool:
    return True


# As fields, and as functions of the message.
READS: dict[str, tuple[Any, Any]] = {
    "total": (bettong.Sum("value"), bettong.Sum(value_of)),
    "count": (bettong.Count(), bettong.Count(where=always)),
    "least": (bettong.Min("value"), bettong.Min(value_of)),
    "last": (bettong.Last("value"), bettong.Last(value_of)),
    "first": (bettong.First("value"), bettong.First(value_of)),
}
MESSAGES = st.builds(
    Measured, st.integers(1, 2), st.integers(0, 60), st.one_of(st.none(), st.integers(-9, 9))
)
LATE = {"tumbling": "oldest", "sliding": "fire", "sessions": "oldest"}


def given_by(kind: str, aggregation: Aggregated[Any], frames: list[list[Measured]]) -> Any:
    """The results and the reasons of dead letters. Messages are late where a frame before has later ones."""
    app = Application("meters")
    source = app.source("in", schema=Measured, key="key", event_time="at")
    options: dict[str, Any] = {"late": LATE[kind]} if kind in LATE else {}
    source.window(KINDS[kind], aggregation, **options).sink("out")
    one = worker(python(app))
    highest, values = 0, []
    for number, messages in enumerate([*frames, [Measured(3, 10**6, 1)]], 1):
        highest = max(highest, *(each.at for each in messages))
        values.append(data("in/x", number, messages, ingest_ns=highest, watermark_ns=highest))
    records = fold(one, values)
    # Behind the parenthesis stands how it is read.
    reasons = [
        (each.reason.partition("(")[0], each.reason.partition(")")[2]) for each in dead_letters(records)
    ]
    return results(records, OUT, aggregation.result), reasons, one.counters


@pytest.mark.parametrize("kind", KINDS)
@given(
    frames=st.lists(st.lists(MESSAGES, min_size=1, max_size=6), min_size=1, max_size=4),
    names=st.lists(st.sampled_from(sorted(READS)), min_size=1, max_size=2),
)
def test_what_is_read_from_columns_is_what_messages_say(
    kind: str, frames: list[list[Measured]], names: list[str]
) -> None:
    result: Any = (One, Two)[len(names) - 1]
    columns, messages = (
        bettong.aggregate(
            result, **dict(zip(("first", "second"), (READS[name][form] for name in names), strict=False))
        )
        for form in (0, 1)
    )
    assert columns.added() is not None
    assert messages.added() is None
    assert given_by(kind, columns, frames) == given_by(kind, messages, frames)
