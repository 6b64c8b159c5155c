"""Schemas: what classes can be messages, and fingerprints that are the same everywhere."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import InitVar, dataclass, field, make_dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bettong
from bettong import Width
from bettong.errors import SchemaError
from bettong.schema.annotations import field_of
from bettong.schema.fields import WIDTH_BYTES_MAX, Kind
from bettong.schema.schema import schema_of

TYPES: dict[str, Any] = {
    "u8": bettong.u8, "u16": bettong.u16, "u32": bettong.u32, "u64": bettong.u64,
    "i8": bettong.i8, "i16": bettong.i16, "i32": bettong.i32, "i64": bettong.i64,
    "f32": bettong.f32, "f64": bettong.f64, "bool": bool, "str": str, "bytes": bytes,
    "text4": Annotated[str, Width(4)], "text5": Annotated[str, Width(5)],
    "bytes4": Annotated[bytes, Width(4)], "bytes5": Annotated[bytes, Width(5)],
}  # fmt: skip


def fingerprint(*fields: tuple[str, str], name: str = "Message") -> int:
    return schema_of(make_dataclass(name, [(each, TYPES[kind]) for each, kind in fields])).fingerprint


@pytest.mark.parametrize(
    ("annotation", "kind", "dtype", "arrow"),
    [
        (int, Kind.INT, "<i8", pa.int64()),
        (bettong.u16, Kind.INT, "<u2", pa.uint16()),
        (float, Kind.FLOAT, "<f8", pa.float64()),
        (bettong.f32, Kind.FLOAT, "<f4", pa.float32()),
        (bool, Kind.BOOL, "|u1", pa.uint8()),
        (TYPES["text4"], Kind.TEXT, "|S4", pa.binary(4)),
        (TYPES["bytes4"], Kind.BYTES, "|S4", pa.binary(4)),
        (str, Kind.TEXT, None, pa.string()),
        (bytes, Kind.BYTES, None, pa.binary()),
    ],
)
def test_an_annotation_gives_a_field(
    annotation: Any, kind: Kind, dtype: str | None, arrow: pa.DataType
) -> None:
    found = field_of("x", annotation)
    assert (found.kind, found.arrow) == (kind, arrow)
    assert found.dtype == (np.dtype(dtype) if dtype else None)


@pytest.mark.parametrize("annotation", [set[int], complex, None, Any, "int", object])
def test_other_annotations_are_refused_by_the_name_of_the_field(annotation: Any) -> None:
    with pytest.raises(SchemaError, match=r"field 'x': .* is no field type; expected int, float"):
        field_of("x", annotation)


@pytest.mark.parametrize("size", [0, -1, WIDTH_BYTES_MAX + 1, "8", 8.0, True, None])
def test_a_width_is_bounded(size: Any) -> None:
    with pytest.raises(SchemaError, match=f"expected 1 to {WIDTH_BYTES_MAX} bytes"):
        Width(size)


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    program = """if True:
        from dataclasses import dataclass
        from typing import Annotated
        from bettong import Width, f32, u8
        from bettong.schema.schema import schema_of

        @dataclass
        class Named:
            a: u8
            b: Annotated[str, Width(7)]
            c: str
            d: f32
            e: bool
        print(schema_of(Named).fingerprint)
    """
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            text=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    # A constant: frames in the log of a running application carry it.
    assert runs == ["8821144173363051381\n"] * 2


def test_a_fingerprint_tells_names_types_widths_and_order_apart() -> None:
    layouts = [
        (("a", "u8"), ("b", "i64")),
        (("b", "i64"), ("a", "u8")),
        (("a", "u8"), ("c", "i64")),
        (("a", "u8"), ("b", "u64")),
        (("a", "u8"),),
        (("a", "u8"), ("b", "i64"), ("c", "i64")),
        *((("a", kind),) for kind in TYPES if kind != "u8"),
    ]
    assert len({fingerprint(*layout) for layout in layouts}) == len(layouts)


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from(sorted(TYPES))),
        min_size=1,
        unique_by=lambda x: x[0],
    )
)
def test_a_fingerprint_is_64_bits_and_does_not_depend_on_the_class(fields: list[tuple[str, str]]) -> None:
    assert 0 < fingerprint(*fields) < 2**64
    assert fingerprint(*fields) == fingerprint(*fields, name="Other")
    assert (fingerprint(*fields) == fingerprint(*reversed(fields))) == (len(fields) == 1)


@dataclass
class Plain:
    a: int
    shared: ClassVar[int] = 3
    b: str = "x"


def test_class_variables_are_no_fields_and_defaults_do_not_matter() -> None:
    assert [each.name for each in schema_of(Plain).fields] == ["a", "b"]


def test_a_field_that_is_not_there_is_named_with_those_that_are() -> None:
    assert schema_of(Plain).position("b") == 1
    with pytest.raises(SchemaError, match="Plain has no field 'c'; it has a, b"):
        schema_of(Plain).position("c")


@pytest.mark.parametrize("thing", [dict, int, Plain(1), "Plain", None, {}])
def test_what_is_no_dataclass_is_no_schema(thing: object) -> None:
    with pytest.raises(SchemaError, match="expected a class decorated with @dataclass"):
        schema_of(thing)


def test_a_class_without_fields_is_no_schema() -> None:
    with pytest.raises(SchemaError, match="Empty is no schema: it has no fields"):
        schema_of(make_dataclass("Empty", []))


def test_an_annotation_that_is_not_defined_is_named() -> None:
    with pytest.raises(SchemaError, match=r"Odd: an annotation cannot be resolved: name 'Nowhere'"):
        schema_of(make_dataclass("Odd", [("a", "Nowhere")]))


@dataclass
class Checked:
    a: int

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError


@dataclass(kw_only=True)
class KeywordOnly:
    a: int


@dataclass
class Derived:
    a: int
    b: int = field(init=False, default=0)


@dataclass
class Passing:
    a: int
    b: InitVar[int]


@dataclass(init=False)
class Handmade:
    a: int

    def __init__(self, text: str) -> None:
        self.a = int(text)


@pytest.mark.parametrize("message", [Checked, KeywordOnly, Derived, Passing, Handmade])
def test_a_class_that_cannot_be_made_from_its_values_alone_is_refused(message: type[Any]) -> None:
    with pytest.raises(SchemaError, match=f"{message.__name__}"):
        schema_of(message)


@dataclass(frozen=True, slots=True)
class Frozen:
    a: int


@dataclass
class Extended(Plain):
    c: float = 0.0


def test_frozen_slotted_and_derived_classes_serve() -> None:
    assert schema_of(Frozen).fixed
    assert [each.name for each in schema_of(Extended).fields] == ["a", "b", "c"]
    assert not schema_of(Extended).fixed


def test_a_schema_is_made_once() -> None:
    assert schema_of(Plain) is schema_of(Plain)
