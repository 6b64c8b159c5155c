"""Immutable values of which one is made for each frame, or more."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

Value = TypeVar("Value")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def immutable(*, kw_only: bool = False, eq: bool = True) -> Callable[[type[Value]], type[Value]]:
    """To a type checker `dataclass(frozen=True, slots=True)`: it rejects assignments to its fields.

    At run time assignments succeed: a frozen dataclass would set each field by a call of `object.__setattr__`, which is
    slow. A value that equals others by its fields has no hash.
    """
    return dataclass(slots=True, kw_only=kw_only, eq=eq)
