"""The types that a field of a schema can have.

| annotation                    | numpy    | Arrow                | in Python |
| ----------------------------- | -------- | -------------------- | --------- |
| `u8` ... `u64`, `i8` ... `i64`, `int` (= `i64`) | `<u1` ... | `uint8` ... | int |
| `f32`, `f64`, `float` (= `f64`) | `<f4`, `<f8` | `float`, `double` | float  |
| `bool`                        | `u1`     | `uint8` (0 or 1)     | bool      |
| `Annotated[str, Width(n)]`    | `S{n}`   | `fixed_size_binary(n)` | str, UTF-8 in n bytes, padded with NUL |
| `Annotated[bytes, Width(n)]`  | `S{n}`   | `fixed_size_binary(n)` | bytes, n of them, padded with NUL |
| `str`                         | -        | `string`             | str       |
| `bytes`                       | -        | `binary`             | bytes     |

Fixed-width fields are viewed by numpy in place and may be used in compiled computations.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, get_args, get_origin

import numpy as np
import pyarrow as pa

from bettong.errors import SchemaError

# A field wider than this belongs in a variable-width one: padding would outgrow the content.
WIDTH_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True)
class Scalar:
    """Marks an annotated `int` or `float` with its numpy type."""

    dtype: str


@dataclass(frozen=True, slots=True)
class Width:
    """Marks an annotated `str` or `bytes` with its width in bytes, 1 to `WIDTH_BYTES_MAX`."""

    size_bytes: int

    def __post_init__(self) -> None:
        if not 1 <= self.size_bytes <= WIDTH_BYTES_MAX:
            raise SchemaError(f"Width({self.size_bytes}): expected 1 to {WIDTH_BYTES_MAX} bytes")


u8 = Annotated[int, Scalar("<u1")]
u16 = Annotated[int, Scalar("<u2")]
u32 = Annotated[int, Scalar("<u4")]
u64 = Annotated[int, Scalar("<u8")]
i8 = Annotated[int, Scalar("<i1")]
i16 = Annotated[int, Scalar("<i2")]
i32 = Annotated[int, Scalar("<i4")]
i64 = Annotated[int, Scalar("<i8")]
f32 = Annotated[float, Scalar("<f4")]
f64 = Annotated[float, Scalar("<f8")]


class Kind(StrEnum):
    """What a field holds, seen from Python."""

    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    TEXT = "text"
    BYTES = "bytes"


# Of a field's Arrow metadata: its kind, which Arrow's type alone does not say.
KIND = b"bettong.kind"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a schema. `dtype` is None when the width varies."""

    name: str
    kind: Kind
    dtype: np.dtype[Any] | None
    arrow: pa.DataType

    @property
    def token(self) -> str:
        """The part of a schema's fingerprint that stands for this field."""
        return f"{self.name}:{self.kind.value}:{self.dtype.str if self.dtype is not None else 'variable'}"


def field_of(name: str, annotation: object) -> Field:
    """The field that `annotation` describes. Raises SchemaError for a type that no field can have."""
    plain: object = annotation
    marks: list[object] = []
    if get_origin(annotation) is Annotated:
        plain, *marks = get_args(annotation)
    width = next((mark.size_bytes for mark in marks if isinstance(mark, Width)), None)
    scalar = next((mark.dtype for mark in marks if isinstance(mark, Scalar)), None)
    if plain is bool:
        return Field(name, Kind.BOOL, np.dtype("u1"), pa.uint8())
    if plain is int:
        return _number(name, Kind.INT, scalar or "<i8")
    if plain is float:
        return _number(name, Kind.FLOAT, scalar or "<f8")
    if plain is str or plain is bytes:
        kind = Kind.TEXT if plain is str else Kind.BYTES
        if width is not None:
            return Field(name, kind, np.dtype(f"S{width}"), pa.binary(width))
        return Field(name, kind, None, pa.string() if plain is str else pa.binary())
    raise SchemaError(
        f"field {name!r}: {annotation!r} is no field type; expected int, float, bool, str, bytes,"
        " one of bettong.u8 ... bettong.f64, or Annotated[str, Width(n)]"
    )


def kind_of(field: pa.Field) -> Kind:
    """The kind of a field of an Arrow schema as a sender named it; by its type when it did not."""
    name = (field.metadata or {}).get(KIND, b"").decode("ascii", "replace")
    if name in set(Kind):
        return Kind(name)
    if pa.types.is_floating(field.type):
        return Kind.FLOAT
    if pa.types.is_integer(field.type):
        return Kind.INT
    return Kind.BYTES if pa.types.is_binary(field.type) else Kind.TEXT


def not_utf8(column: np.ndarray[Any, Any]) -> list[int]:
    """The rows of a column of fixed-width text that are not UTF-8."""
    if not (column.view(np.uint8) >= 0x80).any():
        return []
    return [row for row, value in enumerate(column.tolist()) if _is_not_utf8(value)]


def _is_not_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return True
    return False


def _number(name: str, kind: Kind, code: str) -> Field:
    dtype = np.dtype(code)
    return Field(name, kind, dtype, pa.from_numpy_dtype(dtype))
