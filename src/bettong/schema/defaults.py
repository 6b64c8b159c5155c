"""Defaults of fields: the values that a message gets for fields that the input lacks, from its class.

The Arrow field carries them, as JSON, to programs that read files for a source; they are no part of a fingerprint.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from bettong.errors import SchemaError
from bettong.schema.fields import DEFAULT, Field
from bettong.schema.json_values import json_value
from bettong.schema.values import column_of_values
from bettong.user_errors import ANY_ERROR


def with_default(field: Field, defaults: Mapping[str, Any]) -> Field:
    """The field with its class's default, if that fits the field."""
    if field.name not in defaults:
        return field
    value = defaults[field.name]
    try:
        column_of_values(field, [value])
        text = json.dumps(json_value(field, value), ensure_ascii=False, allow_nan=False)
    except ANY_ERROR:  # users' objects may raise anything
        return field
    return replace(field, default=text.encode())


def has_default(field: pa.Field) -> bool:
    """Whether the field has a default: then its whole column may be missing."""
    return DEFAULT in (field.metadata or {})


def json_default(field: pa.Field) -> Any:
    """The default of a field as a JSON value; None where it has none."""
    return stated_default((field.metadata or {}).get(DEFAULT))


def stated_default(text: bytes | None) -> Any:
    """The same from a field's JSON text. Raises SchemaError for invalid JSON."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise SchemaError(f"its default is no JSON: {error}") from None
