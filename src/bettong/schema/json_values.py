"""Values of fields as JSON has them, and back.

Floats that JSON has no number for are the texts "NaN", "Infinity" and "-Infinity", as in protobuf's JSON; bytes are
text when they are printable UTF-8, else "base64:...". A form converts its own values.
"""

import base64
import contextlib
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from bettong.schema.fields import Field, Kind
from bettong.schema.form import UnfitValueError, shown

Reader: TypeAlias = Callable[[Any], Any]

BASE64 = "base64:"
_NO_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
# Kinds whose values are text in JSON.
JSON_TEXTS = frozenset({Kind.TEXT, Kind.BYTES})


def json_value(field: Field, value: Any) -> Any:
    """The JSON value of a field's value, as `json.dumps` takes it without NaN."""
    if field.form is not None:
        return field.form.to_json(value)
    if field.kind is Kind.BYTES:
        return text_of(value)
    return float_word(value) if isinstance(value, float) and not math.isfinite(value) else value


def reader_of(field: Field, *, bools: bool = False) -> Reader:
    """A function that reads a field's value from a JSON value. It raises UnfitValueError for an invalid one.

    `bools`: also accepts true as the whole number 1.
    """
    if field.form is not None:
        return field.form.from_json
    if field.kind is Kind.BOOL:
        return _bool
    if field.kind is Kind.FLOAT:
        return float_of
    if field.kind is Kind.INT:
        return _whole(field, bools=bools)
    return _bytes if field.kind is Kind.BYTES else _text


def text_of(data: bytes) -> str:
    """Bytes as text that `bytes_of` reads back: printable UTF-8 as it is, else `base64:` and the encoded bytes."""
    with contextlib.suppress(UnicodeDecodeError):
        text = data.decode()
        if text.isprintable() and not text.startswith(BASE64):
            return text
    return BASE64 + base64.b64encode(data).decode()


def bytes_of(text: str) -> bytes:
    """The inverse of `text_of`. Raises ValueError for `base64:` with invalid base64 after it."""
    if not text.startswith(BASE64):
        return text.encode()
    return base64.b64decode(text.removeprefix(BASE64), validate=True)


def float_word(value: float) -> str:
    """The text for a float that JSON has no number for."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def float_of_word(value: str) -> float | None:
    """The inverse of `float_word`; None for any other text."""
    return _NO_NUMBERS.get(value)


def float_of(value: object) -> float:
    """The float of a JSON value: a number, or the text for one that JSON does not have. Raises UnfitValueError."""
    if isinstance(value, str) and value in _NO_NUMBERS:
        return _NO_NUMBERS[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnfitValueError(f"expected a number, got {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        raise UnfitValueError("a whole number that is too large for a float") from None


def _whole(field: Field, *, bools: bool) -> Reader:
    limits = np.iinfo(field.arrow.to_pandas_dtype())
    least, most = int(limits.min), int(limits.max)

    def read(value: object) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if (isinstance(value, bool) and not bools) or not isinstance(value, int):
            raise UnfitValueError(f"expected a whole number, got {_named(value)}")
        if not least <= value <= most:
            raise UnfitValueError(
                f"{_named(value)} does not fit {field.arrow}, which holds {least} to {most}"
            )
        return int(value)

    return read


def _bool(value: object) -> int:
    if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise UnfitValueError(f"expected true, false, 1 or 0, got {_named(value)}")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise UnfitValueError(f"expected text, got {_named(value)}")
    return value


def _bytes(value: object) -> bytes:
    try:
        return bytes_of(_text(value))
    except UnfitValueError:
        raise
    except ValueError as error:
        raise UnfitValueError(f"no base64: {error}") from None


def _named(value: object) -> str:
    """A value as errors show it: a number, or the type of another value."""
    return shown(value) if isinstance(value, int | float | None) else type(value).__name__
