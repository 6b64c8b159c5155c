"""Kinds of fields that hold others: their types, values, JSON, and what is refused."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, TypedDict

import pyarrow as pa
import pydantic
from hypothesis import strategies as st

import bettong
from bettong import Precision, Width
from tests.samples.kind_cases import KindCase


@dataclass
class Line:
    """In an order."""

    item: Annotated[str, Width(6)]
    count: bettong.u8
    price: Annotated[Decimal, Precision(9, 2)]
    gift: bool = False


@dataclass
class Order:
    """Lines in a list in an object."""

    lines: list[Line]
    note: str | None


class Place(TypedDict):
    """A dict with these keys."""

    city: str
    at: datetime | None


class Model(pydantic.BaseModel):
    """A description that pydantic reads, too."""

    name: str
    total: Annotated[Decimal, pydantic.Field(max_digits=8, decimal_places=3)]
    when: datetime | None = None


def _nn(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


_LINE = pa.struct(
    [
        _nn("item", pa.binary(6)),
        _nn("count", pa.uint8()),
        _nn("price", pa.decimal128(9, 2)),
        _nn("gift", pa.uint8()),
    ]
)
_INSTANT = pa.timestamp("us", "UTC")
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_ITEM = st.text("abcdef", max_size=6)
_DATETIMES = st.datetimes(timezones=st.just(UTC))
_LINES = st.builds(
    Line,
    item=_ITEM,
    count=st.integers(0, 255),
    price=st.decimals(-9999999, 9999999, places=2),
    gift=st.booleans(),
)


NESTED_KINDS: dict[str, KindCase] = {
    "floats": KindCase(
        list[float],
        pa.list_(_nn("item", pa.float64())),
        "jsonb",
        [([], []), ([1.5, float("inf")], [1.5, "Infinity"])],
        st.lists(st.floats(allow_nan=False), max_size=4),
        [([1.0, "x"], r"\[1\]"), ([None], r"\[0\]"), (1.0, "1.0 is no list"), (None, "None is no list")],
        [([1, "x"], r"\[1\]: expected a number"), ({}, "expected a list")],
    ),
    "tuple": KindCase(
        tuple[bytes, ...],
        pa.list_(_nn("item", pa.binary())),
        "jsonb",
        [((), []), ((b"a", b"\xff"), ["a", "base64:/w=="])],
        st.lists(st.binary(max_size=4), max_size=4).map(tuple),
        [(("a",), r"\[0\]"), (b"ab", "is no list")],
        [(["base64:!"], r"\[0\]: no base64"), ("a", "expected a list")],
    ),
    "lists_of_lists": KindCase(
        list[list[date | None]],
        pa.list_(_nn("item", pa.list_(pa.field("item", pa.date32())))),
        "jsonb",
        [([], []), ([[], [None, date(2026, 1, 2)], [None]], [[], [None, "2026-01-02"], [None]])],
        st.lists(st.lists(st.none() | st.dates(), max_size=3), max_size=3),
        [([[None], [date.min, 7]], r"\[1\]\[1\]': 7 is no date"), ([None], r"\[0\]': None is no list")],
        [([["2026-13-01"]], r"\[0\]\[0\]: .* is no date")],
    ),
    "dict": KindCase(
        dict[str, Annotated[Decimal, Precision(9, 2)]],
        pa.map_(pa.string(), _nn("value", pa.decimal128(9, 2))),
        "jsonb",
        [({}, {}), ({"b": Decimal("1.5"), "ä": Decimal(2)}, {"b": "1.50", "ä": "2.00"})],
        st.dictionaries(_TEXT, st.decimals(-9999999, 9999999, places=2), max_size=3),
        [({1: Decimal(1)}, r"\[1\]"), ({"a": 1}, r"\['a'\]"), ([], r"\[\] is no dict")],
        [({"a": None}, r"\['a'\]: expected the text of a decimal, got None"), ([], "expected an object")],
    ),
    "object": KindCase(
        Order,
        pa.struct([_nn("lines", pa.list_(_nn("item", _LINE))), pa.field("note", pa.string())]),
        "jsonb",
        [
            (Order([], None), {"lines": [], "note": None}),
            (
                Order([Line("ä", 255, Decimal("1.5"), gift=True)], ""),
                {"lines": [{"item": "ä", "count": 255, "price": "1.50", "gift": True}], "note": ""},
            ),
        ],
        st.builds(Order, st.lists(_LINES, max_size=3), st.none() | _TEXT),
        [
            (Order([Line("a", 1, Decimal(1)), Line("a", 256, Decimal(1))], None), r"lines\[1\]\.count"),
            (Order([Line("a", 1, 1.5)], None), r"lines\[0\]\.price': 1.5 is no Decimal"),  # type: ignore[arg-type]
            (Order([None], None), r"lines\[0\]': None is no Line"),  # type: ignore[list-item]
            (None, "None is no Order"),
            ({"lines": [], "note": None}, "is no Order"),
        ],
        [
            ({"lines": [{}]}, r"\.lines\[0\]: no field 'item'"),
            ({"note": "a"}, "no field 'lines'"),
            ([], "expected an object"),
        ],
    ),
    "optional_objects": KindCase(
        list[Line | None] | None,
        pa.list_(pa.field("item", _LINE)),
        "jsonb",
        [
            (None, None),
            (
                [None, Line("a", 1, Decimal(2)), None],
                [None, {"item": "a", "count": 1, "price": "2.00", "gift": False}, None],
            ),
        ],
        st.none() | st.lists(st.none() | _LINES, max_size=4),
        [([None, Line("a", -1, Decimal(2))], r"\[1\]\.count")],
        [([None, 1], r"\[1\]: expected an object")],
        nullable=True,
    ),
    "typed_dict": KindCase(
        Place,
        pa.struct([_nn("city", pa.string()), pa.field("at", _INSTANT)]),
        "jsonb",
        [({"city": "Köln", "at": None}, {"city": "Köln", "at": None})],
        st.fixed_dictionaries({"city": _TEXT, "at": st.none() | _DATETIMES}),
        [({"city": "a"}, "a Place without 'at'"), ({"city": 1, "at": None}, r"\.city"), ("a", "is no Place")],
        [({"at": None}, "no field 'city'")],
    ),
    "model": KindCase(
        Model,
        pa.struct([_nn("name", pa.string()), _nn("total", pa.decimal128(8, 3)), pa.field("when", _INSTANT)]),
        "jsonb",
        [(Model(name="a", total=Decimal("1.5")), {"name": "a", "total": "1.500", "when": None})],
        st.builds(Model, name=_TEXT, total=st.decimals(-9999, 9999, places=3), when=st.none() | _DATETIMES),
        [
            (Model.model_construct(name=1, total=Decimal(1), when=None), r"\.name"),
            ({"name": "a"}, "is no Model"),
        ],
        [({"name": "a", "total": "x"}, r"\.total: 'x' is no decimal")],
        in_states=False,
    ),
}
