"""Messages as JSON text: what people read in result files, dead letters and on the terminal.

One object a message, fields in the schema's order. Numbers keep every digit (Python's `repr` of a float reads
back as the same float); what JSON has no number for is one of the texts "NaN", "Infinity" and "-Infinity", as in
protobuf's JSON; bytes are their text when they are printable UTF-8, else "base64:...".
"""

import base64
import contextlib
import json
import math
from typing import Any

from bettong.errors import SchemaError
from bettong.schema.fields import Kind
from bettong.schema.schema import Schema
from bettong.v1.frame_pb2 import DeadLetter

_BASE64 = "base64:"
_NO_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def to_json(value: Any, *, indent: int | None = None, separators: tuple[str, str] | None = None) -> str:
    """Any value that `json` takes, as valid JSON; on one line without `indent`."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)
    except ValueError:  # it holds a number that JSON has not
        return json.dumps(_with_words(value), ensure_ascii=False, indent=indent, separators=separators)


def float_text(value: float) -> str:
    """A float as JSON."""
    return float.__repr__(value) if math.isfinite(value) else f'"{_word(value)}"'


def float_of(value: object) -> float:
    """The float that JSON gives: a number, or a text for one that it has not. Raises SchemaError."""
    if isinstance(value, str) and value in _NO_NUMBERS:
        return _NO_NUMBERS[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SchemaError(f"expected a number, got {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        raise SchemaError("a whole number that is too large for a float") from None


def json_line(schema: Schema, message: Any) -> bytes:
    """One message as a JSON object, without a line end."""
    values = {field.name: _plain(getattr(message, field.name)) for field in schema.fields}
    return to_json(values, separators=(",", ":")).encode()


def message_of(schema: Schema, line: bytes) -> Any:
    """The message that `json_line` wrote. Raises SchemaError when it is no JSON object of the schema's fields.

    Whether the values fit their fields is not checked.
    """
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"no message of {schema.name}: no JSON: {error}") from None
    names = [field.name for field in schema.fields]
    if not isinstance(values, dict) or sorted(values) != sorted(names):
        found = ", ".join(sorted(values)) if isinstance(values, dict) else type(values).__name__
        raise SchemaError(f"no message of {schema.name}: expected fields {', '.join(names)}, found {found}")
    for field in schema.fields:
        value = values[field.name]
        if field.kind is Kind.BYTES:
            values[field.name] = _bytes_of(field.name, value)
        elif field.kind is Kind.FLOAT and isinstance(value, str):
            values[field.name] = _NO_NUMBERS.get(value, value)
    return schema.message(**values)


def dead_letter_values(dead_letter: DeadLetter) -> dict[str, Any]:
    """The fields of a dead letter under their names in the proto, in its order; the message as `text_of` writes it."""
    return {
        "computation": dead_letter.computation,
        "reason": dead_letter.reason,
        "origin": dead_letter.origin,
        "sequence": dead_letter.sequence,
        "index": dead_letter.index,
        "message": text_of(dead_letter.message),
    }


def text_of(data: bytes) -> str:
    """Bytes as text that can be turned back: printable UTF-8 as it is, else `base64:` and the encoded bytes."""
    with contextlib.suppress(UnicodeDecodeError):
        text = data.decode()
        if text.isprintable() and not text.startswith(_BASE64):
            return text
    return _BASE64 + base64.b64encode(data).decode()


def bytes_of(text: str) -> bytes:
    """What `text_of` wrote as text. Raises ValueError for `base64:` and something else behind it."""
    if not text.startswith(_BASE64):
        return text.encode()
    return base64.b64decode(text.removeprefix(_BASE64), validate=True)


def _word(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _with_words(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return _word(value)
    if isinstance(value, dict):
        return {_with_words(key): _with_words(each) for key, each in value.items()}
    return list(map(_with_words, value)) if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    return text_of(value) if isinstance(value, bytes) else value


def _bytes_of(name: str, text: object) -> bytes:
    if not isinstance(text, str):
        raise SchemaError(f"field {name!r}: expected text, got {type(text).__name__}")
    try:
        return bytes_of(text)
    except ValueError as error:
        raise SchemaError(f"field {name!r}: {error}") from None
