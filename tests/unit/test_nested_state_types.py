"""States of compiled functions: what an annotation is, on each Python and numpy, and in compiled code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

import bettong
from bettong import Application
from bettong.testing import run

Scalar = TypeVar("Scalar", bound=np.generic)
# As numpy from 2.5 on makes its own.
Alias: Any = TypeAliasType("Alias", NDArray[Scalar], type_params=(Scalar,))
Alias_of_alias: Any = TypeAliasType("Alias_of_alias", Alias[np.int64])


@dataclass
class Item:
    key: int
    value: float


@dataclass
class Arrays:
    own: NDArray[np.int64] = field(default_factory=lambda: np.zeros(3, np.int64))
    alias: Alias[np.int64] = field(default_factory=lambda: np.zeros(3, np.int64))
    again: Alias_of_alias = field(default_factory=lambda: np.zeros(3, np.int64))


@bettong.compiled
def counted(item: Item, state: Arrays) -> Item:
    state.own[0] += 1
    state.alias[1] += 2
    state.again[2] += 3
    return Item(item.key, 100.0 * state.own[0] + 10 * state.alias[1] + state.again[2])


def application(function: Any, state: Any, **more: Any) -> Application:
    app = Application("meters")
    app.source("in", schema=Item, key="key").stateful(function, state=state, name="fold", **more).sink("out")
    return app


def test_an_array_is_one_by_whatever_alias_it_is_annotated() -> None:
    for compiled in (False, True):
        outcome = run(application(counted, Arrays), [("in", Item(1, 0.0))] * 2, compiled=compiled)
        assert [each.value for each in outcome.outputs["out"]] == [123.0, 246.0]
