"""What a message is to those that pass it on: a copy of its own, its key, and whether it fits its schema."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import asdict
from typing import Any

import numpy as np

from bettong.schema.fields import Kind
from bettong.schema.schema import schema_of
from tests.simulation.graphs import Node
from tests.simulation.messages import Note


def own(message: Any) -> Any:
    """A copy that shares nothing."""
    found = copy(message)
    if isinstance(found, Note):
        found.marks = list(found.marks)
    return found


def key_of(source: Node, message: Any) -> Any:
    """The key of a message that enters; None without one. Raises what a function of the user's raises."""
    if source.key is None:
        return None
    if isinstance(source.key, tuple):
        return tuple(getattr(message, part) for part in source.key)
    return getattr(message, source.key) if isinstance(source.key, str) else source.key(own(message))


def schema_violation(result: Any, message: type[Any]) -> str | None:
    """Why a result is none of its class: the field, or what it is instead."""
    if not isinstance(result, message):
        return f"{type(result).__name__} is no {message.__name__}"
    for each in schema_of(message).fields:
        value = getattr(result, each.name)
        if each.kind is Kind.FORM:  # the list of a Note, which holds numbers alone
            fits = True
        elif each.kind is Kind.TEXT:
            encoded = value.encode(errors="ignore") if isinstance(value, str) else None
            fits = encoded is not None and encoded.decode() == value
            fits = fits and (each.dtype is None or len(encoded or b"") <= each.dtype.itemsize)
        else:
            limits = np.iinfo(each.dtype) if each.dtype is not None else None
            fits = limits is not None and limits.min <= value <= limits.max
        if not fits:
            return f"field {each.name!r}"
    return None


def text_of(message: Any) -> str:
    """A message as dead letters hold it."""
    return json.dumps(asdict(message), ensure_ascii=False, separators=(",", ":"))
