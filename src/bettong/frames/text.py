"""Messages as JSON text, in result files, dead letters and on the terminal.

One object a message, fields in the schema's order. Numbers keep every digit (Python's `repr` of a float reads
back as the same float); floats that JSON has no number for are the texts "NaN", "Infinity" and "-Infinity", as in
protobuf's JSON; bytes are text when they are printable UTF-8, else "base64:...".
"""

import json
import math
from collections.abc import Sequence
from typing import Any

from bettong.errors import SchemaError
from bettong.schema.fields import Field, Kind
from bettong.schema.form import UnfitValueError
from bettong.schema.json_values import bytes_of, float_of_word, float_word, json_value, text_of
from bettong.schema.schema import Schema
from bettong.v1.frame_pb2 import DeadLetter


def to_json(value: Any, *, indent: int | None = None, separators: tuple[str, str] | None = None) -> str:
    """Any value that `json` takes, as valid JSON; on one line without `indent`."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)
    except ValueError:  # it holds a number that JSON does not have
        return json.dumps(_with_float_words(value), ensure_ascii=False, indent=indent, separators=separators)


def float_text(value: float) -> str:
    """A float as JSON."""
    return float.__repr__(value) if math.isfinite(value) else f'"{float_word(value)}"'


def json_line(schema: Schema, message: Any) -> bytes:
    """One message as a JSON object, without a line end."""
    return json_line_of_values(schema, [get(message) for get in schema.getters])


def json_line_of_values(schema: Schema, values: Sequence[Any]) -> bytes:
    """The same for the values of a message's fields, in order."""
    found = {field.name: json_value(field, value) for field, value in zip(schema.fields, values, strict=True)}
    return to_json(found, separators=(",", ":")).encode()


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
    return schema.make(*(_value_of(field, values[field.name]) for field in schema.fields))


def dead_letter_values(dead_letter: DeadLetter) -> dict[str, Any]:
    """Fields of a dead letter under their names in the proto, in its order; the message as `text_of` writes it."""
    return {
        "computation": dead_letter.computation,
        "reason": dead_letter.reason,
        "origin": dead_letter.origin,
        "sequence": dead_letter.sequence,
        "index": dead_letter.index,
        "message": text_of(dead_letter.message),
        "traceback": list(dead_letter.traceback),
    }


def _with_float_words(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return float_word(value)
    if isinstance(value, dict):
        return {_with_float_words(key): _with_float_words(each) for key, each in value.items()}
    return list(map(_with_float_words, value)) if isinstance(value, list | tuple) else value


def _value_of(field: Field, value: Any) -> Any:
    try:
        if field.form is not None:
            return field.form.from_json(value)
        if field.kind is Kind.BYTES:
            if not isinstance(value, str):
                raise SchemaError(f"field {field.name!r}: expected text, got {type(value).__name__}")
            return bytes_of(value)
    except UnfitValueError as error:
        raise SchemaError(f"field {field.name + error.path!r}: {error.reason}") from None
    except ValueError as error:
        raise SchemaError(f"field {field.name!r}: {error}") from None
    if field.kind is Kind.FLOAT and isinstance(value, str) and (number := float_of_word(value)) is not None:
        return number
    return value
