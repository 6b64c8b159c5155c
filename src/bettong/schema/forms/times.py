"""Points and lengths of time: `datetime`, `date`, `timedelta`.

| Python      | Arrow                  | JSON                            | Postgres                   |
| ----------- | ---------------------- | ------------------------------- | -------------------------- |
| `datetime`  | `timestamp[us, UTC]`   | `"2026-11-24T01:31:09.123456Z"` | `timestamp with time zone` |
| `date`      | `date32`               | `"2026-11-24"`                  | `date`                     |
| `timedelta` | `duration[us]`         | `"90.5s"`                       | `interval`                 |

All have microsecond precision, as in Python. A datetime is an instant: it is read back in UTC, whatever zone it had.
"""

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bettong.schema.form import ScalarForm, UnfitValueError, each, shown, without_nulls

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = date(1970, 1, 1).toordinal()
_US = timedelta(microseconds=1)
_US_MIN = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _US
_US_MAX = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _US
_DAY_MIN, _DAY_MAX = date.min.toordinal() - _FIRST_DAY, date.max.toordinal() - _FIRST_DAY
_LENGTH_MIN, _LENGTH_MAX = -(2**63) + 1, 2**63 - 1

# RFC 3339; digits after the sixth must be zeros. A zone is required.
_DATETIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,6})(0{0,12}))?(?:([Zz])|([+-]\d\d:\d\d))", re.ASCII
)
_NO_ZONE = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_SECONDS = re.compile(r"(-?)(\d{1,14})(?:\.(\d{1,6})0{0,12})?s", re.ASCII)


class _Counted(ScalarForm):
    """Base of values that Arrow counts in a unit from an origin."""

    # The least and the greatest valid number.
    limits: tuple[int, int]

    @abstractmethod
    def number(self, value: Any) -> int:
        """How many units a value is from the origin. Raises UnfitValueError."""

    def array(self, values: Sequence[Any]) -> pa.Array:
        """See Form."""
        return pa.array(each(self.number, values), self.arrow)

    def check(self, array: pa.Array) -> None:
        """See Form."""
        without_nulls(array, self.name)
        if not len(array):
            return
        numbers = array.view(pa.int32() if pa.types.is_date32(array.type) else pa.int64())
        found = pc.min_max(numbers).as_py()
        if found["min"] < self.limits[0] or found["max"] > self.limits[1]:
            least, most = self.limits
            wrong = pc.or_(pc.less(numbers, least), pc.greater(numbers, most))
            row = wrong.index(True).as_py()
            raise UnfitValueError(
                f"{numbers[row].as_py()} in {array.type} is beyond the {self.name}s of Python", row
            )


@dataclass(frozen=True, slots=True)
class DatetimeForm(_Counted):
    """`datetime`, with a time zone."""

    name = "datetime"
    python = datetime
    sql = ("timestamptz",)
    limits = (_US_MIN, _US_MAX)

    @property
    def arrow(self) -> pa.DataType:
        """See Form."""
        return pa.timestamp("us", "UTC")

    def number(self, value: Any) -> int:
        """Microseconds from 1970 on."""
        if not isinstance(value, datetime):
            raise UnfitValueError(f"{shown(value)} is no datetime")
        if value.utcoffset() is None:
            raise UnfitValueError(
                f"{shown(value)} has no time zone, so it names no instant; give it one: .replace(tzinfo=timezone.utc)"
                " for UTC, datetime.now(timezone.utc) for now"
            )
        # Subclasses, such as that of pandas, may have nanoseconds.
        if getattr(value, "nanosecond", 0):
            raise UnfitValueError(
                f"{shown(value)} has nanoseconds, and a datetime has microseconds; round it, or use an int"
            )
        found: int = (value - _EPOCH) // _US
        if not _US_MIN <= found <= _US_MAX:
            raise UnfitValueError(f"{shown(value)} is not within the years 1 to 9999 of UTC")
        return found

    def values(self, array: pa.Array) -> list[Any]:
        """See Form."""
        naive = array.view(pa.int64()).to_numpy().view("<M8[us]").tolist()
        return [value.replace(tzinfo=UTC) for value in naive]

    def to_json(self, value: Any) -> str:
        """See Form."""
        text: str = value.astimezone(UTC).replace(tzinfo=None).isoformat()
        return f"{text}Z"

    def from_json(self, value: Any) -> datetime:
        """See Form."""
        text = _text(value, self.name)
        found = _DATETIME.fullmatch(text)
        if found is None:
            raise UnfitValueError(
                f"{shown(value)} has no time zone; write Z behind it for UTC"
                if _NO_ZONE.fullmatch(text)
                else f"{shown(value)} is no datetime; expected one like 2026-11-24T01:31:09.123456Z, with microseconds"
                " at most"
            )
        day, time, fraction, _, _, offset = found.groups()
        try:
            read = datetime.fromisoformat(
                f"{day}T{time}.{(fraction or '0').ljust(6, '0')}{offset or '+00:00'}"
            )
            return read.astimezone(UTC)
        except (ValueError, OverflowError) as error:
            leap = "; a leap second has no datetime, write the second before it" if time[6:] == "60" else ""
            raise UnfitValueError(f"{shown(value)} is no datetime: {error}{leap}") from None


@dataclass(frozen=True, slots=True)
class DateForm(_Counted):
    """`date`."""

    name = "date"
    python = date
    sql = ("date",)
    limits = (_DAY_MIN, _DAY_MAX)

    @property
    def arrow(self) -> pa.DataType:
        """See Form."""
        return pa.date32()

    def number(self, value: Any) -> int:
        """Days from 1970 on."""
        if isinstance(value, datetime):
            raise UnfitValueError(f"{shown(value)} is a datetime, and no date; give its .date()")
        if not isinstance(value, date):
            raise UnfitValueError(f"{shown(value)} is no date")
        return value.toordinal() - _FIRST_DAY

    def values(self, array: pa.Array) -> list[Any]:
        """See Form."""
        days: np.ndarray[Any, Any] = array.view(pa.int32()).to_numpy()
        return list(days.astype("<M8[D]").tolist())

    def to_json(self, value: Any) -> str:
        """See Form."""
        text: str = value.isoformat()
        return text

    def from_json(self, value: Any) -> date:
        """See Form."""
        text = _text(value, self.name)
        try:
            if _DATE.fullmatch(text):
                return date.fromisoformat(text)
        except ValueError as error:
            raise UnfitValueError(f"{shown(value)} is no date: {error}") from None
        raise UnfitValueError(f"{shown(value)} is no date; expected one like 2026-11-24")


@dataclass(frozen=True, slots=True)
class TimedeltaForm(_Counted):
    """`timedelta`."""

    name = "timedelta"
    python = timedelta
    sql = ("interval",)
    limits = (_LENGTH_MIN, _LENGTH_MAX)

    @property
    def arrow(self) -> pa.DataType:
        """See Form."""
        return pa.duration("us")

    def number(self, value: Any) -> int:
        """Microseconds."""
        if not isinstance(value, timedelta):
            raise UnfitValueError(f"{shown(value)} is no timedelta")
        if getattr(value, "nanoseconds", 0):
            raise UnfitValueError(
                f"{shown(value)} has nanoseconds, and a timedelta has microseconds; round it"
            )
        found: int = value // _US
        if not _LENGTH_MIN <= found <= _LENGTH_MAX:
            raise _too_long(value)
        return found

    def values(self, array: pa.Array) -> list[Any]:
        """See Form."""
        return [timedelta(microseconds=number) for number in array.view(pa.int64()).to_numpy().tolist()]

    def to_json(self, value: Any) -> str:
        """See Form."""
        number: int = value // _US
        whole, rest = divmod(abs(number), 1_000_000)
        fraction = f".{rest:06}".rstrip("0") if rest else ""
        return f"{'-' * (number < 0)}{whole}{fraction}s"

    def from_json(self, value: Any) -> timedelta:
        """See Form."""
        found = _SECONDS.fullmatch(_text(value, self.name))
        if found is None:
            raise UnfitValueError(f'{shown(value)} is no timedelta; expected seconds, such as "90.5s"')
        sign, whole, fraction = found.groups()
        number = int(whole) * 1_000_000 + int((fraction or "0").ljust(6, "0"))
        if number > _LENGTH_MAX:
            raise _too_long(value)
        return timedelta(microseconds=-number if sign else number)


def _too_long(value: object) -> UnfitValueError:
    return UnfitValueError(f"{shown(value)} is longer than 64 bits of microseconds (292,000 years)")


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise UnfitValueError(f"expected the text of a {name}, got {shown(value)}")
    return value
