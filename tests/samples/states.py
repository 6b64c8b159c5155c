"""Classes that states are made of, and a computation that keeps such states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, Flag, IntEnum
from functools import cache
from typing import Any, NamedTuple

from bettong import Application
from bettong.application.nodes.stateful import Stateful
from bettong.worker.state.classes import Classes
from bettong.worker.state.objects import ObjectTable
from bettong.worker.state.table import SavedStates


@dataclass
class Item:
    key: str


@dataclass
class Sum:
    key: str
    total: int


class Colour(Enum):
    RED = 1
    BLUE = "blue"


class Level(IntEnum):
    LOW = 0
    HIGH = 1


class Rights(Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: int
    y: Any = None


class Nothing(NamedTuple):
    pass


@dataclass
class Empty:
    pass


@dataclass
class Kept:
    total: int = 0
    held: Any = None


@dataclass(slots=True)
class Slots:
    total: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class Frozen:
    total: Any = 0


@dataclass
class Derived:
    total: int = 0
    double: int = field(init=False, default=7)


@dataclass
class Checked:
    total: int = 0

    def __post_init__(self) -> None:
        self.total += 1


@dataclass(kw_only=True)
class ByName:
    total: int = 0


@dataclass
class OwnWay:
    total: int = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"total": -self.total}


class NoDataclass:
    pass


def use(item: Item, kept: Any) -> Sum:
    return Sum(item.key, 0)


def fold(state: Callable[[], Any] = Kept) -> ObjectTable:
    app = Application("meters")
    node = app.source("in", schema=Item, key="key").stateful(use, state=state, name="fold").node
    assert isinstance(node, Stateful)
    return ObjectTable(node)


@cache
def classes_of(what: str) -> Classes:
    """Of all tables that write, or that read: each would search the modules of the test tool anew."""
    return fold()._codec._classes  # type: ignore[attr-defined,no-any-return]


def table_that(what: str) -> ObjectTable:
    one = fold()
    one._codec._classes = classes_of(what)  # type: ignore[attr-defined]
    return one


def written(*states: Any) -> bytes:
    one = table_that("writes")
    one._states = dict(enumerate(states))
    return one.dump().states


def read(data: bytes) -> list[Any]:
    one = table_that("reads")
    one.load(SavedStates(data), log_ns=0, begins=True)
    return [one._states[slot] for slot in range(len(one._states))]


def again(*states: Any) -> list[Any]:
    return read(written(*states))
