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

Fixed-width fields are viewed by numpy in place and may be used in compiled computations. All other kinds (datetimes,
Decimals, lists, ...) have a `Form` each, in `bettong.schema.forms`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from bettong.errors import SchemaError
from bettong.schema.form import KIND, Copier, Form

# The key in a field's Arrow metadata for its default, as JSON.
DEFAULT = b"bettong.default"

# A field wider than this belongs in a variable-width one: padding would outgrow the content.
WIDTH_BYTES_MAX = 4096
# The greatest bound of a list: a longer one does not belong in one message or state.
ITEMS_MAX = 65_536


@dataclass(frozen=True, slots=True)
class Scalar:
    """Marks an annotated `int` or `float` with its numpy type."""

    dtype: str


@dataclass(frozen=True, slots=True)
class Width:
    """Marks an annotated `str` or `bytes` with its width in bytes, 1 to `WIDTH_BYTES_MAX`."""

    size_bytes: int

    def __post_init__(self) -> None:
        if type(self.size_bytes) is not int or not 1 <= self.size_bytes <= WIDTH_BYTES_MAX:
            raise SchemaError(f"Width({self.size_bytes!r}): expected 1 to {WIDTH_BYTES_MAX} bytes")


@dataclass(frozen=True, slots=True)
class AtMost:
    """Marks an annotated `list` with its bound: how many items it holds at most, 1 to `ITEMS_MAX`."""

    items: int

    def __post_init__(self) -> None:
        if type(self.items) is not int or not 1 <= self.items <= ITEMS_MAX:
            raise SchemaError(f"AtMost({self.items!r}): expected 1 to {ITEMS_MAX} items")


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
    """What a field holds in Python. `FORM`: its form determines it."""

    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    TEXT = "text"
    BYTES = "bytes"
    FORM = "form"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a schema. `dtype` is None when the width varies. `form`: None for a plain kind.

    `default`: its default as JSON; None where it must not be left out.
    """

    name: str
    kind: Kind
    dtype: np.dtype[Any] | None
    arrow: pa.DataType
    form: Form | None = None
    default: bytes | None = None

    @property
    def kind_name(self) -> str:
        """The name of its kind in messages."""
        return self.kind.value if self.form is None else self.form.name

    @property
    def nullable(self) -> bool:
        """Whether it may be None."""
        return self.form is not None and self.form.nullable

    def copier(self) -> Copier | None:
        """See Form."""
        return None if self.form is None else self.form.copier()

    @property
    def token(self) -> str:
        """Its part of a schema's fingerprint."""
        if self.form is not None:
            return f"{self.name}:{self.form.token}"
        return f"{self.name}:{self.kind.value}:{self.dtype.str if self.dtype is not None else 'variable'}"

    @property
    def arrow_field(self) -> pa.Field:
        """The Arrow field, with its kind and its default as metadata."""
        if self.form is not None:
            found = self.form.arrow_field(self.name)
        else:
            found = pa.field(self.name, self.arrow, nullable=False, metadata={KIND: self.kind.value})
        return (
            found if self.default is None else found.with_metadata({**found.metadata, DEFAULT: self.default})
        )


def field_with(name: str, form: Form) -> Field:
    """The field of a form."""
    return Field(name, Kind.FORM, None, form.arrow, form)


def kind_of(field: pa.Field) -> Kind:
    """The kind of an Arrow field as its sender named it; by its type if it did not."""
    name = kind_name_of(field)
    if name in set(Kind):
        return Kind(name)
    if pa.types.is_floating(field.type):
        return Kind.FLOAT
    if pa.types.is_integer(field.type):
        return Kind.INT
    return Kind.BYTES if pa.types.is_binary(field.type) else Kind.TEXT


def kind_name_of(field: pa.Field) -> str:
    """The kind of an Arrow field as its sender named it; empty if it did not."""
    return str((field.metadata or {}).get(KIND, b""), "ascii", "replace")


def may_be_left_out(field: pa.Field) -> bool:
    """Whether a sender's Arrow field is optional: None in a message without it."""
    return bool(field.nullable and kind_name_of(field))


def not_utf8(column: np.ndarray[Any, Any]) -> list[int]:
    """The rows of a column of fixed-width text that are not UTF-8."""
    if column.tobytes().isascii():
        return []
    return [row for row, value in enumerate(column.tolist()) if not is_utf8(value)]


def is_utf8(data: bytes) -> bool:
    """Whether these bytes are valid UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
