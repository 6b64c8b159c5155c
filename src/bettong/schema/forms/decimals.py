"""Decimal numbers of a given precision: `Annotated[Decimal, bettong.Precision(18, 4)]`, Arrow's `decimal128(18, 4)`.

In JSON they are text, `"12.5000"`: readers of JSON numbers round. Nothing is ever rounded here: a number with more
digits than the field is refused. The sign of zero is not kept.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import lru_cache
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from bettong.errors import SchemaError
from bettong.schema.form import Describe, Form, StatedType, UnfitValueError, each, shown, without_nulls

# Arrow's limits: 38 digits in 128 bits, 76 in 256.
DIGITS_MAX = 76
_DIGITS_MAX_128 = 38
# Significant digits that every float preserves.
_DIGITS_OF_FLOAT = 15
_TEXT_CHARACTERS_MAX = 200
_TEXT = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Precision:
    """Marks an annotated `Decimal`: at most `digits` in all, 1 to 76, of them `scale` behind the point."""

    digits: int
    scale: int = 0

    def __post_init__(self) -> None:
        are_counts = type(self.digits) is int and type(self.scale) is int
        if not are_counts or not 1 <= self.digits <= DIGITS_MAX or not 0 <= self.scale <= self.digits:
            raise SchemaError(
                f"Precision({self.digits!r}, {self.scale!r}): expected 1 to {DIGITS_MAX} digits, of them 0 to all"
                " behind the point"
            )


@lru_cache(maxsize=1024)
def _unit(digits: int, scale: int) -> tuple[Decimal, None, Context]:
    """Arguments of `quantize`: the unit of a field's last digit, and a context that refuses to round."""
    return Decimal((0, (1,), -scale)), None, Context(prec=digits, traps=[Inexact, InvalidOperation])


@dataclass(frozen=True, slots=True)
class DecimalForm(Form):
    """`Decimal`, with its Precision."""

    name = "decimal"
    precision: Precision

    @classmethod
    def of_annotation(cls, stated: StatedType) -> Self | None:
        """See Form. Also accepts pydantic's `condecimal(max_digits=, decimal_places=)`."""
        if stated.plain is not Decimal:
            return None
        for mark in stated.marks:
            if isinstance(mark, Precision):
                return cls(mark)
        digits = next((found for mark in stated.marks if (found := getattr(mark, "max_digits", None))), None)
        scale = next((found for mark in stated.marks if (found := getattr(mark, "decimal_places", None))), 0)
        if digits is None:
            raise SchemaError(
                "a Decimal needs its precision: Annotated[Decimal, bettong.Precision(18, 4)] has 18 digits, 4 of them"
                " behind the point"
            )
        return cls(Precision(digits, scale))

    @classmethod
    def of_arrow(cls, field: pa.Field, describe: Describe) -> Self:  # noqa: ARG003 - it holds none
        """See Form."""
        return cls(Precision(field.type.precision, field.type.scale))

    @property
    def sql(self) -> Sequence[str]:  # type: ignore[override]
        """See Form."""
        return (f"numeric({self.precision.digits},{self.precision.scale})", "numeric")

    @property
    def arrow(self) -> pa.DataType:
        """See Form."""
        digits, scale = self.precision.digits, self.precision.scale
        return pa.decimal128(digits, scale) if digits <= _DIGITS_MAX_128 else pa.decimal256(digits, scale)

    @property
    def token(self) -> str:
        """See Form."""
        return f"{self.name}({self.precision.digits},{self.precision.scale})"

    def array(self, values: Sequence[Any]) -> pa.Array:
        """See Form."""
        return pa.array(each(self._exact, values), self.arrow)

    def values(self, array: pa.Array) -> list[Any]:
        """See Form."""
        return list(array.to_pylist())

    def check(self, array: pa.Array) -> None:
        """See Form. Arrow has checked the digits, but considers the lowest 128-bit number to have none."""
        without_nulls(array, self.name)
        if not len(array):
            return
        found = pc.min_max(array).as_py()
        if max(found["min"].copy_abs(), found["max"].copy_abs()) >= Decimal(10) ** (
            self.precision.digits - self.precision.scale
        ):
            raise UnfitValueError(f"{self.token} holds a number of more digits", 0)

    def to_json(self, value: Any) -> str:
        """See Form."""
        exact = self._exact(value)
        return format(exact.copy_abs() if exact.is_zero() else exact, "f")

    def from_json(self, value: Any) -> Decimal:
        """See Form. Also accepts JSON numbers with few enough digits that no float has rounded them."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise UnfitValueError(f"expected the text of a decimal, got {shown(value)}")
        text = shown(value) if isinstance(value, int) else repr(value) if isinstance(value, float) else value
        if len(text) > _TEXT_CHARACTERS_MAX or not _TEXT.fullmatch(text):
            raise UnfitValueError(f'{shown(value)} is no decimal; expected one like "12.5000"')
        read = Decimal(text)
        if isinstance(value, float) and len(read.normalize().as_tuple().digits) > _DIGITS_OF_FLOAT:
            raise UnfitValueError(
                f'{shown(value)} has more digits than a JSON number keeps; write it as text, "{text}"'
            )
        return self._exact(read)

    def _exact(self, value: Any) -> Decimal:
        """The value with the scale of the field. Raises UnfitValueError for more digits."""
        if not isinstance(value, Decimal):
            raise UnfitValueError(f"{shown(value)} is no Decimal; give Decimal(str(value))")
        digits, scale = self.precision.digits, self.precision.scale
        if not value.is_finite():
            raise UnfitValueError(f"{shown(value)} is no number that a decimal field holds")
        try:
            return value.quantize(*_unit(digits, scale))
        except (Inexact, InvalidOperation):
            raise UnfitValueError(
                f"{shown(value)} does not fit Precision({digits}, {scale}): at most {digits - scale} digits before the"
                f" point and {scale} behind it; round it, value.quantize(Decimal('1e-{scale}')), or give the field more"
            ) from None
