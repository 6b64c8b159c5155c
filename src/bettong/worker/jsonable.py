"""Converts any value to what JSON can hold: how states are shown to people."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import numpy as np

from bettong.schema.forms.enums import text_of_member
from bettong.schema.forms.times import DatetimeForm, TimedeltaForm
from bettong.schema.json_values import text_of

# Ends the recursion of a state that holds itself.
_DEPTH_MAX = 20


def to_jsonable(value: Any, depth: int = 0) -> Any:
    """Objects become dicts of their attributes, sequences and sets lists, bytes text (`json_values.text_of`).

    Types of message fields have the text that they have there: datetimes, members of an Enum, Decimals, UUIDs.
    A copy: later changes of the value do not show. Any other value becomes its `repr`.
    """
    if isinstance(value, Enum):
        return text_of_member(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, date | time | timedelta | Decimal | UUID):
        return _scalar_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return text_of(bytes(value))
    if isinstance(value, np.ndarray | np.generic):
        return to_jsonable(value.tolist(), depth + 1)
    if depth >= _DEPTH_MAX:
        return repr(value)
    if isinstance(value, Mapping):
        return {_name(key): to_jsonable(each, depth + 1) for key, each in value.items()}
    if isinstance(value, AbstractSet):
        return [to_jsonable(each, depth + 1) for each in sorted(value, key=repr)]
    held = _attributes(value)
    if held is None and _is_sequence(value):
        return [to_jsonable(each, depth + 1) for each in value]
    return (
        repr(value) if held is None else {name: to_jsonable(each, depth + 1) for name, each in held.items()}
    )


def _scalar_text(value: date | time | timedelta | Decimal | UUID) -> str:
    """As a message's field; a state may also hold a datetime without a zone, and Decimals of any size."""
    if isinstance(value, datetime) and value.utcoffset() is not None:
        return DatetimeForm().to_json(value)
    if isinstance(value, date | time):
        return value.isoformat()
    return TimedeltaForm().to_json(value) if isinstance(value, timedelta) else str(value)


def _name(key: object) -> str:
    return key if isinstance(key, str) else str(to_jsonable(key))


def _is_sequence(value: object) -> bool:
    """Lists, tuples, deques and the like: what has a length and is read in order."""
    kind = type(value)
    return hasattr(kind, "__len__") and hasattr(kind, "__getitem__") and hasattr(kind, "__iter__")


def _attributes(value: object) -> dict[str, Any] | None:
    """The attributes of an object, by name; None when they cannot be listed."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in fields(value)}
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return dict(vars(value))
    slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
    return {name: getattr(value, name) for name in slots if hasattr(value, name)} if slots else None


def _slots(kind: type) -> tuple[str, ...]:
    found = vars(kind).get("__slots__", ())
    return (found,) if isinstance(found, str) else tuple(found)
