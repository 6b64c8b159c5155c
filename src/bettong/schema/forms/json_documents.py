"""Any JSON value: `bettong.Json`. Its text in Arrow, itself in JSON, `jsonb` in Postgres.

None, bools, ints, finite floats, text, lists, and dicts by text, to a depth of 64. Tuples come back as lists.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Self, TypeAlias

import pyarrow as pa

from bettong.schema.form import Copier, ScalarForm, StatedType, UnfitValueError, each, shown, without_nulls

# Deeper than documents are, and far below the limit of Python's parser.
DEPTH_MAX = 64


@dataclass(frozen=True, slots=True)
class JsonMark:
    """Marks an annotation as any JSON value."""


Json: TypeAlias = Annotated[Any, JsonMark()]


@dataclass(frozen=True, slots=True)
class JsonForm(ScalarForm):
    """`bettong.Json`."""

    name = "json"
    sql = ("jsonb", "json")

    @classmethod
    def of_annotation(cls, stated: StatedType) -> Self | None:
        """See Form."""
        return cls() if any(isinstance(mark, JsonMark) for mark in stated.marks) else None

    @property
    def arrow(self) -> pa.DataType:
        """See Form."""
        return pa.string()

    def copier(self) -> Copier:
        """See Form."""
        return partial(_copied, depth=0)

    def array(self, values: Sequence[Any]) -> pa.Array:
        """See Form."""
        return pa.array(each(_text, values), self.arrow)

    def values(self, array: pa.Array) -> list[Any]:
        """See Form."""
        return list(map(json.loads, array.to_pylist()))

    def check(self, array: pa.Array) -> None:
        """See Form."""
        without_nulls(array, self.name)
        each(_read, array.to_pylist())

    def to_json(self, value: Any) -> Any:
        """See Form."""
        return value

    def from_json(self, value: Any) -> Any:
        """See Form."""
        _check(value, 0)
        return value

    def from_cell(self, text: str) -> Any:
        """See Form."""
        return _read(text)

    def to_sql(self, value: Any) -> str:
        """See Form."""
        return _text(value)


def _text(value: Any) -> str:
    _check(value, 0)
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:  # a number of too many digits for Python to write
        raise UnfitValueError(f"no JSON: {error}") from None


def _copied(value: Any, depth: int) -> Any:
    if depth >= DEPTH_MAX:
        return value
    if isinstance(value, list | tuple):
        return [_copied(held, depth + 1) for held in value]
    if isinstance(value, dict):
        return {key: _copied(held, depth + 1) for key, held in value.items()}
    return value


def _read(text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise UnfitValueError(f"JSON of more than {DEPTH_MAX} levels") from None
    except ValueError as error:  # a number of too many digits for Python, too
        raise UnfitValueError(f"{shown(text)} is no JSON: {error}") from None
    _check(value, 0)
    return value


def _refuse_constant(word: str) -> Any:
    raise UnfitValueError(f"JSON has no number {word}; write null or a text")


def _check(value: Any, depth: int) -> None:
    """Raises UnfitValueError for a value that JSON does not have, or would read back as another one."""
    if value is None or isinstance(value, bool | int):
        return
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise UnfitValueError(f"JSON has no number {value!r}; give None or a text")
    elif depth >= DEPTH_MAX:
        raise UnfitValueError(f"JSON of more than {DEPTH_MAX} levels; keep what lies deeper as text")
    elif isinstance(value, list | tuple):
        for held in value:
            _check(held, depth + 1)
    elif isinstance(value, dict):
        for key, held in value.items():
            if not isinstance(key, str):
                raise UnfitValueError(f"{shown(key)} is no key of a JSON object; give text")
            _check_text(key)
            _check(held, depth + 1)
    else:
        raise UnfitValueError(
            f"{shown(value)} is no JSON value; give None, a bool, an int, a float, text, a list or a dict"
        )


def _check_text(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnfitValueError(f"{shown(text)} is no Unicode text: it has half of a surrogate pair") from None
