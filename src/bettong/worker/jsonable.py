"""Any value as what JSON can hold: how states look to people."""

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

# A state that holds itself ends here.
_DEPTH_MAX = 20


def to_jsonable(value: Any, depth: int = 0) -> Any:
    """Objects become dicts of what they hold, sequences and sets lists, bytes text (`json_values.text_of`).

    What fields of messages may be has the text that it has there: datetimes, members of an Enum, Decimals, UUIDs.
    A copy: later changes of the value do not show. What cannot be taken apart becomes its `repr`.
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
    held = _held(value)
    if held is None and _is_sequence(value):
        return [to_jsonable(each, depth + 1) for each in value]
    return (
        repr(value) if held is None else {name: to_jsonable(each, depth + 1) for name, each in held.items()}
    )


def _scalar_text(value: date | time | timedelta | Decimal | UUID) -> str:
    """As of a field; a state may hold a datetime without a zone, and Decimals of any size, too."""
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


def _held(value: object) -> dict[str, Any] | None:
    """What an object holds, by name; None when it is not known."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in fields(value)}
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return dict(vars(value))
    slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
    return {name: getattr(value, name) for name in slots if hasattr(value, name)} if slots else None


def _slots(kind: type) -> tuple[str, ...]:
    found = vars(kind).get("__slots__", ())
    return (found,) if isinstance(found, str) else tuple(found)
