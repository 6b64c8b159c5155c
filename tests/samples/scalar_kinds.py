"""Kinds of fields that hold one value: their types, values at their edges, JSON, and what is refused."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any
from uuid import UUID

import pyarrow as pa
from hypothesis import strategies as st

import bettong
from bettong import Precision, Width
from tests.samples.kind_cases import KindCase


class Side(StrEnum):
    """Its values are text."""

    BUY = "buy"
    SELL = "sell ä"


class Level(IntEnum):
    """Its values are none."""

    LOW = 1
    HIGH = 2
    TOP = 2  # another name of HIGH


class Odd(Enum):
    """One value is text, and the name of another member."""

    ONE = "TWO"
    TWO = 2


_INSTANT = pa.timestamp("us", "UTC")
_NOON = datetime(2026, 11, 24, 12, 0, 0, 5, tzinfo=UTC)
_EAST = timezone(timedelta(hours=5, minutes=45))
_ID = UUID("123e4567-e89b-12d3-a456-426614174000")
_MANY = {"a": [1, 2.5, None, {"b": "ä"}], "c": True}
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_DATETIMES = st.datetimes(timezones=st.just(UTC))
_DECIMALS = st.decimals(-(10**14) + 1, 10**14 - 1, places=4)
_JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda held: st.lists(held, max_size=3) | st.dictionaries(_TEXT, held, max_size=3),
    max_leaves=10,
)


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


SCALAR_KINDS: dict[str, KindCase] = {
    "datetime": KindCase(
        datetime,
        _INSTANT,
        "timestamptz",
        [
            (_NOON, "2026-11-24T12:00:00.000005Z"),
            (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00Z"),
            (datetime(2026, 1, 1, 5, 45, tzinfo=_EAST), "2026-01-01T00:00:00Z"),
            (datetime.min.replace(tzinfo=UTC), "0001-01-01T00:00:00Z"),
            (datetime.max.replace(tzinfo=UTC), "9999-12-31T23:59:59.999999Z"),
        ],
        _DATETIMES,
        [
            (datetime(2026, 1, 1), "has no time zone, so it names no instant; give it one"),  # noqa: DTZ001
            (date(2026, 1, 1), "is no datetime"),
            (1, "1 is no datetime"),
            (None, "None is no datetime"),
            (datetime.min.replace(tzinfo=_EAST), "not within the years 1 to 9999"),
        ],
        [
            ("2026-01-01T00:00:00", "has no time zone; write Z"),
            ("2026-12-31T23:59:60Z", "a leap second has no datetime"),
            ("2026-02-30T00:00:00Z", "is no datetime"),
            ("2026-01-01T00:00:00.1234567Z", "with microseconds at most"),
            ("0001-01-01T00:00:00+05:00", "is no datetime"),
            ("now", "is no datetime; expected one like"),
            (1.5, "expected the text of a datetime, got 1.5"),
        ],
    ),
    "date": KindCase(
        date,
        pa.date32(),
        "date",
        [(date(2026, 2, 28), "2026-02-28"), (date.min, "0001-01-01"), (date.max, "9999-12-31")],
        st.dates(),
        [
            (_NOON, "is a datetime, and no date; give its .date()"),
            ("2026-01-01", "is no date"),
            (None, "no date"),
        ],
        [
            ("2026-02-29", "is no date"),
            ("20260228", "expected one like 2026-11-24"),
            (7, "expected the text"),
        ],
    ),
    "timedelta": KindCase(
        timedelta,
        pa.duration("us"),
        "interval",
        [
            (timedelta(0), "0s"),
            (timedelta(seconds=90, milliseconds=500), "90.5s"),
            (timedelta(microseconds=-1), "-0.000001s"),
            (timedelta(microseconds=2**63 - 1), "9223372036854.775807s"),
        ],
        st.timedeltas(timedelta(microseconds=-(2**63) + 1), timedelta(microseconds=2**63 - 1)),
        [
            (timedelta.max, "longer than 64 bits of microseconds"),
            (1, "1 is no timedelta"),
            (None, "None is no"),
        ],
        [
            ("90", "expected seconds"),
            ("1.1234567s", "expected seconds"),
            ("99999999999999s", "longer than"),
            (1, "got 1"),
        ],
    ),
    "decimal": KindCase(
        Annotated[Decimal, Precision(18, 4)],
        pa.decimal128(18, 4),
        "numeric(18,4)",
        [
            (Decimal("12.5"), "12.5000"),
            (Decimal("-0"), "0.0000"),
            (Decimal("99999999999999.9999"), "99999999999999.9999"),
            (Decimal("-99999999999999.9999"), "-99999999999999.9999"),
            (Decimal("1E+3"), "1000.0000"),
        ],
        _DECIMALS,
        [
            (
                Decimal("0.00001"),
                "does not fit Precision.18, 4.: at most 14 digits before the point and 4 behind",
            ),
            (Decimal(10**14), "does not fit Precision"),
            (Decimal("1E+999999"), "does not fit Precision"),
            (Decimal("1E-999999"), "does not fit Precision"),
            (Decimal("NaN"), "is no number"),
            (Decimal("-Infinity"), "is no number"),
            (0.5, "0.5 is no Decimal; give Decimal"),
            (None, "None is no Decimal"),
        ],
        [
            ("1,5", "is no decimal"),
            ("NaN", "is no decimal"),
            ("9" * 1000, "is no decimal"),
            (0.1 + 0.2, "more digits than a JSON number keeps; write it as text"),
            ("1e99", "does not fit"),
            (True, "expected the text of a decimal"),
        ],
    ),
    "large_decimal": KindCase(
        Annotated[Decimal, Precision(76, 40)],
        pa.decimal256(76, 40),
        "numeric(76,40)",
        [
            (Decimal("-1." + "0" * 39 + "7"), "-1." + "0" * 39 + "7"),
            (Decimal(10**36 - 1), "9" * 36 + "." + "0" * 40),
        ],
        st.decimals(-(10**30), 10**30, places=40),
        [(Decimal(10**36), "does not fit")],
        [("1e37", "does not fit")],
    ),
    "text_enum": KindCase(
        Side,
        pa.string(),
        "text",
        [(Side.BUY, "buy"), (Side.SELL, "sell ä")],
        st.sampled_from(Side),
        [("buy", "'buy' is no Side; give a member"), (None, "None is no Side")],
        [("BUY", "'BUY' is no .*; expected buy, sell"), (1, "1 is no")],
    ),
    "named_enum": KindCase(
        Level,
        pa.string(),
        "text",
        [(Level.LOW, "LOW"), (Level.TOP, "HIGH")],
        st.sampled_from(Level),
        [(1, "1 is no Level"), (Side.BUY, "is no Level")],
        [(1, "1 is no"), ("TOP", "'TOP' is no")],
    ),
    "odd_enum": KindCase(
        Odd, pa.string(), "text", [(Odd.ONE, "ONE"), (Odd.TWO, "TWO")], st.sampled_from(Odd), [], []
    ),
    "uuid": KindCase(
        UUID,
        pa.binary(16),
        "uuid",
        [(_ID, str(_ID)), (UUID(int=0), "00000000-0000-0000-0000-000000000000")],
        st.uuids(),
        [(str(_ID), "is no UUID; give UUID"), (None, "None is no UUID")],
        [("123", "is no UUID; expected one like"), (f"{{{_ID}}}", "is no UUID")],
    ),
    "json": KindCase(
        bettong.Json,
        pa.string(),
        "jsonb",
        [(_MANY, _MANY), (None, None), ("a\nb", "a\nb"), (10**40, 10**40), (_deep(64), _deep(64))],
        _JSON_VALUES,
        [
            (float("nan"), "JSON has no number nan"),
            ({1: 2}, "1 is no key of a JSON object"),
            (_deep(65), "more than 64 levels"),
            ([object], "is no JSON value"),
            (["\ud800"], "half of a surrogate pair"),
            (10**5000, "no JSON"),
        ],
        [(_deep(65), "more than 64 levels"), ("\udfff", "half of a surrogate pair")],
    ),
    "optional_int": KindCase(
        int | None,
        pa.int64(),
        "bigint",
        [(None, None), (-(2**63), -(2**63)), (2**63 - 1, 2**63 - 1)],
        st.none() | st.integers(-(2**63), 2**63 - 1),
        [("1", "str"), (2**63, "int"), (1.5, "float")],
        [("1", "expected a whole number, got str"), (2**63, "does not fit int64")],
        nullable=True,
    ),
    "optional_bool": KindCase(
        bool | None,
        pa.uint8(),
        "boolean",
        [(None, None), (True, True), (False, False)],
        st.none() | st.booleans(),
        [(2, "")],
        [(2, "expected true, false, 1 or 0")],
        nullable=True,
    ),
    "optional_width": KindCase(
        Annotated[str | None, Width(4)],
        pa.binary(4),
        "text",
        [(None, None), ("", ""), ("abcd", "abcd")],
        st.none() | st.text("abcd", max_size=4),
        [("abcde", "longer than 4 bytes")],
        [(1, "expected text")],
        nullable=True,
    ),
    "optional_datetime": KindCase(
        datetime | None,
        _INSTANT,
        "timestamptz",
        [(None, None), (_NOON, "2026-11-24T12:00:00.000005Z")],
        st.none() | _DATETIMES,
        [(datetime(2026, 1, 1), "has no time zone")],  # noqa: DTZ001
        [("", "is no datetime")],
        nullable=True,
    ),
}
