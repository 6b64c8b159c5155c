"""Defaults of fields: what a message has in a field that the input lacks, as the class says.

They travel with the Arrow field, as JSON, to whoever reads files for a source; they are no part of a fingerprint.
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
    """The field with its class's default, where that is a value of it: what the field could not hold is none."""
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
    """Whether its class says what a message has that lacks it: then a whole column may be missing."""
    return DEFAULT in (field.metadata or {})


def json_default(field: pa.Field) -> Any:
    """What would stand in JSON for a field that is left out; None where it has no default."""
    return stated_default((field.metadata or {}).get(DEFAULT))


def stated_default(text: bytes | None) -> Any:
    """The same of what a field says. Raises SchemaError for what is no JSON."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise SchemaError(f"its default is no JSON: {error}") from None
