"""States as users see them."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.worker.jsonable import to_jsonable


@dataclass
class Inner:
    seen: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Outer:
    name: str
    inner: Inner
    by_symbol: dict[Any, Any]


class Own:
    def __init__(self) -> None:
        self.count = 3


class Side(StrEnum):
    BUY = "buy"


class Level(IntEnum):
    HIGH = 2


class Colour(Enum):
    RED = (1, 2)
    BLUE = (3, 4)


class Rights(Flag):
    READ = 1
    WRITE = 2


class Slotted:
    __slots__ = ("here", "missing")

    def __init__(self) -> None:
        self.here = 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (1.5, 1.5),
        (True, True),
        (b"text", "text"),
        (b"\xff", "base64:/w=="),
        ((1, [2, (3,)]), [1, [2, [3]]]),
        ({3, 1, 2}, [1, 2, 3]),
        (deque([1, 2], maxlen=5), [1, 2]),
        (defaultdict(list, {1: [b"a"]}), {"1": ["a"]}),
        (np.int32(4), 4),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (Outer("a", Inner([1]), {b"k": {1}}), {"name": "a", "inner": {"seen": [1]}, "by_symbol": {"k": [1]}}),
        (Own(), {"count": 3}),
        (Slotted(), {"here": 1}),
        (3 + 4j, "(3+4j)"),
        (
            [Side.BUY, Level.HIGH, Colour.BLUE, Rights.READ, Rights.READ | Rights.WRITE],
            ["buy", "HIGH", "BLUE", "READ", "Rights.READ|WRITE"],
        ),
        ({Colour.RED: UUID(int=1)}, {"RED": "00000000-0000-0000-0000-000000000001"}),
        (datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=1))), "2026-01-02T02:00:00Z"),
        (datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05"),  # noqa: DTZ001 - a state may hold one
        ([date(2026, 1, 2), time(3, 4), timedelta(seconds=-90.5)], ["2026-01-02", "03:04:00", "-90.5s"]),
        ([Decimal("12.50"), Decimal("NaN")], ["12.50", "NaN"]),
    ],
)
def test_what_a_state_holds_becomes_json(value: object, expected: object) -> None:
    assert to_jsonable(value) == expected
    json.dumps(to_jsonable(value))


def test_a_copy_does_not_follow_later_changes() -> None:
    inner = Inner([1])
    before = to_jsonable(inner)
    inner.seen.append(2)
    assert (before, to_jsonable(inner)) == ({"seen": [1]}, {"seen": [1, 2]})


def test_a_state_that_holds_itself_ends() -> None:
    own: list[Any] = []
    own.append(own)
    assert len(json.dumps(to_jsonable(own))) < 200


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=10,
    )
)
def test_what_is_json_already_stays_as_it_is(value: object) -> None:
    assert to_jsonable(value) == value
