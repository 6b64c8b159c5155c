"""Cases that hypothesis draws: messages of each source, made from its schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bettong.application.application import Application
from bettong.errors import CaseError
from bettong.schema.fields import Field, Kind
from bettong.schema.schema import Schema
from bettong.testing.smallest import require_hypothesis

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

# Few values, so that messages share keys, and times are close to each other.
_TEXTS = ("a", "b", "c", "")
_SMALL_MAX = 5
INPUTS_MAX = 12


def cases(
    app: Application, *, fields: Mapping[str, SearchStrategy[Any]] | None = None, inputs_max: int = INPUTS_MAX
) -> SearchStrategy[list[Any]]:
    """A strategy for `check`: lists of up to `inputs_max` messages of an application's sources.

    Values are drawn by the fields of a source's schema, small ones often; `fields` has strategies by name to use
    instead, which fields other than numbers, text and bytes need. Raises CaseError where hypothesis is not installed.
    """
    require_hypothesis()
    from hypothesis import strategies as st

    given = fields or {}
    messages = [_messages(source.schema, given).map(_of_source(source.name)) for source in app.sources]
    return st.lists(st.one_of(messages), min_size=1, max_size=inputs_max)


def _of_source(name: str) -> Any:
    return lambda message: (name, message)


def _messages(schema: Schema, given: Mapping[str, SearchStrategy[Any]]) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    return st.builds(
        schema.make,
        *(given[each.name] if each.name in given else _values(schema, each) for each in schema.fields),
    )


def _values(schema: Schema, field: Field) -> SearchStrategy[Any]:
    """Values that fit a field."""
    from hypothesis import strategies as st

    width = field.dtype.itemsize if field.dtype is not None else None
    if field.kind is Kind.BOOL:
        return st.booleans()
    if field.kind is Kind.INT and field.dtype is not None:
        bounds = np.iinfo(field.dtype)
        return st.integers(0, _SMALL_MAX) | st.integers(int(bounds.min), int(bounds.max))
    if field.kind is Kind.FLOAT:
        floats: SearchStrategy[Any] = st.integers(-_SMALL_MAX, _SMALL_MAX).map(float)
        return floats | st.floats(width=32 if width == 4 else 64)
    if field.kind is Kind.TEXT:
        texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=width)
        return st.sampled_from(_TEXTS) | texts.filter(
            lambda text: width is None or len(text.encode()) <= width
        )
    if field.kind is Kind.BYTES:
        return st.binary(min_size=width or 0, max_size=width)
    raise CaseError(
        f"{schema.name}.{field.name}: give a strategy for a field of {field.kind_name}:"
        f" cases(app, fields={{{field.name!r}: ...}})"
    )
