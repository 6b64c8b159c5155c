"""States as bytes: whatever the class, they come back equal; plain dataclasses in little time."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from bettong.worker.packing import pack, unpack


@dataclass
class Plain:
    total: int = 0
    names: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Slots:
    total: int = 0
    text: str = ""


@dataclass(slots=True, frozen=True)
class Frozen:
    total: int = 0


@dataclass
class Derived:
    total: int = 0
    double: int = field(init=False, default=7)


@dataclass
class Checked:
    total: int = 0

    def __post_init__(self) -> None:
        self.total += 1


@dataclass
class OwnWay:
    total: int = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"total": -self.total}


@dataclass(kw_only=True)
class ByName:
    total: int = 0


class NoDataclass:
    def __init__(self) -> None:
        self.total = 5

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


def stored(states: list[Any]) -> Any:
    return pickle.loads(pack(states))  # noqa: S301 - packed a moment ago


def again(states: list[Any]) -> list[Any]:
    return unpack(stored(states))


def derived() -> Derived:
    made = Derived(3)
    made.double = 9
    return made


@pytest.mark.parametrize(
    "make",
    [
        lambda n: Plain(n, ["a"]),
        lambda n: Slots(n, "t"),
        Frozen,
        lambda _: derived(),
        Checked,
        lambda n: ByName(total=n),
        lambda _: NoDataclass(),
        lambda n: [n],
        lambda n: {"n": n},
        lambda n: Counter(a=n),
        lambda n: n,
        lambda n: Plain(n) if n % 2 else Slots(n),
        lambda _: None,
    ],
)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_states_come_back_equal(make: Callable[[int], Any], count: int) -> None:
    states = [make(number) for number in range(count)]
    found = again(states)
    assert found == states
    assert list(map(type, found)) == list(map(type, states))


def test_a_class_that_says_how_it_is_pickled_is_pickled_so() -> None:
    assert again([OwnWay(3)]) == [OwnWay(-3)]


def test_attributes_besides_the_fields_are_kept() -> None:
    states = [Plain(1), Plain(2)]
    states[1].more = 9  # type: ignore[attr-defined]
    assert [vars(each) for each in again(states)] == [vars(each) for each in states]


def test_plain_dataclasses_are_taken_by_their_fields() -> None:
    """Their class is named once, and not once a state."""
    assert stored([Slots(1, "a"), Slots(2, "b")]) == (
        Slots,
        ("total", "text"),
        [[1, 2], ["a", "b"]],
    )
    assert stored([Frozen(1)])[0] is Frozen
    assert stored([Checked(1)])[0] is None
