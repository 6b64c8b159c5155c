"""Immutable values that are created for each frame or more often, cheaper than frozen dataclasses."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

Value = TypeVar("Value")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def immutable(*, kw_only: bool = False, eq: bool = True) -> Callable[[type[Value]], type[Value]]:
    """For a type checker `dataclass(frozen=True, slots=True)`: it rejects assignments to fields.

    At run time assignments succeed: a frozen dataclass would set each field by `object.__setattr__`, which is slow.
    With `eq`, a value has no hash.
    """
    return dataclass(slots=True, kw_only=kw_only, eq=eq)
