"""Values other than containers, as plain parts that say the same: a date is its ordinal, a Decimal its text.

A part may be any value that states can hold. `make` trusts nothing: it is called with whatever parts the bytes held, in
any type, and raises TypeError, ValueError or OverflowError.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal, InvalidOperation
from operator import attrgetter
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
from numpy.lib.format import descr_to_dtype, dtype_to_descr

_PLAIN_DTYPE = re.compile(r"[<>|=]?(?:[biufcSUV][0-9]+|\?|[mM]8(?:\[[0-9]*[a-zA-Z]+\])?)")
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*")
# Fortran order, as numpy calls it.
_BY_COLUMNS = "F"
_OF_DAY = ("hour", "minute", "second", "microsecond", "fold", "tzinfo")


class LargeInt:
    """Stands for the type of an `int` of more than 64 bits."""


class OddText:
    """Stands for the type of a `str` that UTF-8 cannot hold."""


@dataclass(frozen=True, slots=True)
class Parts:
    """How a value is taken apart, and made again. `code` stands for its type in saved bytes, and never changes."""

    code: int
    take: Callable[[Any], tuple[Any, ...]]
    make: Callable[..., Any]


def parts_of(kind: type[Any]) -> Parts | None:
    """The parts of a type's values; None when it has none."""
    found = PARTS.get(kind)
    return _SCALAR if found is None and issubclass(kind, np.generic) else found


def _datetime(
    year: int, month: int, day: int, hour: int, minute: int, second: int, micro: int, fold: int, zone: Any
) -> datetime:
    return datetime(year, month, day, hour, minute, second, micro, zone, fold=fold)


def _time(hour: int, minute: int, second: int, micro: int, fold: int, zone: Any) -> time:
    return time(hour, minute, second, micro, zone, fold=fold)


def _zone(name: str) -> ZoneInfo:
    if not _ZONE.fullmatch(name):
        raise ValueError(f"{name!r} is no time zone")
    return ZoneInfo(name)


def _timezone(offset: timedelta, name: str | None) -> timezone:
    return timezone(offset) if name is None else timezone(offset, name)


def _take_timezone(zone: timezone) -> tuple[timedelta, str | None]:
    offset, name = zone.utcoffset(None), zone.tzname(None)
    return offset, None if name == timezone(offset).tzname(None) else name


def _checked(data: Any) -> bytes:
    # Of a number n, `bytes` would make n zeros.
    if type(data) is not bytes:
        raise TypeError(f"{type(data).__name__}, expected bytes")
    return data


def _decimal(text: str) -> Decimal:
    if type(text) is not str:
        raise TypeError(f"{type(text).__name__}, expected str")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text!r:.40} is no Decimal") from None


def _take_large(number: int) -> tuple[bytes]:
    return (number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True),)


def _take_array(array: Any) -> tuple[Any, ...]:
    """Dtype, shape, and bytes; the shape of an array in Fortran order begins with `_BY_COLUMNS`.

    For numpy adds up in the order of memory: an array that is restored in another order has other last bits.
    """
    if array.dtype.hasobject or not array.dtype.itemsize:
        raise TypeError(f"an array of dtype {array.dtype}")
    if array.flags.c_contiguous:
        return dtype_to_descr(array.dtype), array.shape, array.tobytes()
    if array.flags.f_contiguous:
        return dtype_to_descr(array.dtype), (_BY_COLUMNS, *array.shape), array.tobytes("F")
    raise TypeError(
        "an array whose values are not contiguous, as a part of another array or with its axes moved: sums over it"
        " have other last bits once it is restored; keep a copy of it, array.copy()"
    )


def _array(descr: Any, shape: tuple[Any, ...], data: bytes) -> Any:
    flat = np.frombuffer(_checked(data), _dtype(descr)) if data else np.empty(0, _dtype(descr))
    by_columns = len(shape) > 0 and type(shape[0]) is str and shape[0] == _BY_COLUMNS
    lengths = shape[1:] if by_columns else shape
    # Numpy would take -1 for "the rest".
    if not all(type(each) is int and each >= 0 for each in lengths):
        raise ValueError(f"{shape} is no shape")
    if by_columns:
        return flat.reshape(lengths, order="F").copy("F")
    return flat.reshape(lengths).copy()


def _take_scalar(value: Any) -> tuple[Any, ...]:
    if value.dtype.hasobject:
        raise TypeError(f"a numpy value of dtype {value.dtype}")
    if isinstance(value, np.str_):
        return "U", str(value)
    if isinstance(value, np.bytes_):
        return "S", bytes(value)
    return dtype_to_descr(value.dtype), value.tobytes()


def _scalar(descr: Any, data: Any) -> Any:
    if descr == "U" and type(data) is str:
        return np.str_(data)
    if descr == "S":
        return np.bytes_(_checked(data))
    (value,) = np.frombuffer(_checked(data), _dtype(descr)).copy()
    return value


def _dtype(descr: Any) -> np.dtype[Any]:
    if not _is_plain(descr):
        raise ValueError(f"{descr!r:.60} is no dtype")
    found: np.dtype[Any] = descr_to_dtype(descr)
    if found.hasobject or not found.itemsize:
        raise ValueError(f"dtype {found} cannot be read from bytes")
    return found


def _is_plain(descr: Any) -> bool:
    """Whether numpy would make only a type of records, numbers, texts or times of it."""
    if isinstance(descr, str):
        return _PLAIN_DTYPE.fullmatch(descr) is not None
    if isinstance(descr, tuple):
        return len(descr) == 2 and _is_plain(descr[0]) and isinstance(descr[1], tuple)
    return isinstance(descr, list) and all(
        isinstance(field, tuple) and len(field) in (2, 3) and _is_plain(field[1]) for field in descr
    )


_SCALAR = Parts(32, _take_scalar, _scalar)

PARTS: Mapping[type[Any], Parts] = {
    LargeInt: Parts(16, _take_large, lambda data: int.from_bytes(_checked(data), "little", signed=True)),
    OddText: Parts(
        17,
        lambda text: (text.encode("utf-8", "surrogatepass"),),
        lambda data: _checked(data).decode("utf-8", "surrogatepass"),
    ),
    bytearray: Parts(18, lambda value: (bytes(value),), lambda data: bytearray(_checked(data))),
    complex: Parts(19, attrgetter("real", "imag"), complex),
    date: Parts(20, lambda value: (value.toordinal(),), date.fromordinal),
    datetime: Parts(21, attrgetter("year", "month", "day", *_OF_DAY), _datetime),
    time: Parts(22, attrgetter(*_OF_DAY), _time),
    timedelta: Parts(23, attrgetter("days", "seconds", "microseconds"), timedelta),
    timezone: Parts(24, _take_timezone, _timezone),
    ZoneInfo: Parts(25, lambda zone: (zone.key,), _zone),
    Decimal: Parts(26, lambda value: (str(value),), _decimal),
    UUID: Parts(27, lambda value: (value.bytes,), lambda data: UUID(bytes=_checked(data))),
    np.ndarray: Parts(33, _take_array, _array),
}
MAKERS: Mapping[int, Callable[..., Any]] = {each.code: each.make for each in (*PARTS.values(), _SCALAR)}
