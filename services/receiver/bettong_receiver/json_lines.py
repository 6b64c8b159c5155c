"""Columns as JSON objects, made a column at a time: the bytes of `bettong.frames.text.json_line`, much faster. Pure."""

import json
import math
from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import Any

from bettong.application.fields import Field, Kind
from bettong.frames.columns import Columns
from bettong.frames.text import text_of


def json_lines(columns: Columns) -> list[bytes]:
    """One JSON object a message, without line ends."""
    fields = columns.schema.fields
    template = "{" + ",".join(f"{encode_basestring(field.name)}:%s" for field in fields) + "}"
    texts = [_texts(field, columns.values(place)) for place, field in enumerate(fields)]
    return [(template % row).encode() for row in zip(*texts, strict=True)]


def _texts(field: Field, values: list[Any]) -> Iterable[str]:
    """The values of one field as JSON."""
    if field.kind is Kind.INT:
        return map(int.__repr__, values)
    if field.kind is Kind.FLOAT and all(map(math.isfinite, values)):
        return map(float.__repr__, values)
    if field.kind is Kind.TEXT:
        return map(encode_basestring, values)
    if field.kind is Kind.BYTES:
        return map(encode_basestring, map(text_of, values))
    return map(json.dumps, values)
