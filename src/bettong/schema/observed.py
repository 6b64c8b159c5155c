"""Counts of the values in the fields of example data, from which a type is inferred in the end."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from bettong.schema.annotations import FORMS
from bettong.schema.form import Form, UnfitValueError
from bettong.schema.forms.json_documents import JsonForm
from bettong.schema.json_values import float_of_word

# The most different fields of one object: one with more is a mapping, or no message.
FIELDS_MAX = 200
# Nested objects and lists that become types; fields may be nested 16 deep, and being optional counts as a level.
_LEVELS_MAX = 6
# Kinds that are text in JSON and can be recognized by it, and their names in Python.
TEXT_KINDS = {"datetime": "datetime", "date": "date", "uuid": "UUID"}
TEXT_FORMS: tuple[Form, ...] = tuple(each() for each in FORMS if each.name in TEXT_KINDS)


# A date and time without a zone.
_NO_ZONE = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?", re.ASCII)


class WholeRange(NamedTuple):
    """The least and the largest of the whole numbers."""

    least: int
    most: int


@dataclass(slots=True)
class Observed:
    """The values of one field, or the items of one list.

    `words`: texts that stand for floats, "NaN" and the like. `forms`: those of `TEXT_FORMS` that can read all texts.
    `zoneless`: texts that are dates and times without a zone. `odd`: floats that JSON has no number for. `deep`: lists
    and objects nested too deeply. `unreadable`: values that no field can hold. `members`: of objects, by key; merged
    into `values` once there are more than `FIELDS_MAX`.
    """

    seen: int = 0
    nulls: int = 0
    bools: int = 0
    whole: int = 0
    floats: int = 0
    words: int = 0
    texts: int = 0
    zoneless: int = 0
    lists: int = 0
    objects: int = 0
    odd: int = 0
    deep: int = 0
    unreadable: int = 0
    span: WholeRange | None = None
    forms: tuple[Form, ...] = TEXT_FORMS
    items: Observed | None = None
    members: dict[str, Observed] = field(default_factory=dict)
    values: Observed | None = None

    @property
    def sorts(self) -> list[str]:
        """The sorts of JSON values seen, null aside."""
        counts = {
            "true or false": self.bools,
            "numbers": self.whole + self.floats,
            "texts": self.texts + self.words,
            "lists": self.lists,
            "objects": self.objects,
        }
        return [name for name, count in counts.items() if count]

    @property
    def held(self) -> list[Observed]:
        """The observations of nested values."""
        return [each for each in (self.items, self.values, *self.members.values()) if each is not None]

    @property
    def is_odd(self) -> bool:
        """Whether it, or a nested value, has a float that JSON has no number for."""
        return bool(self.odd) or any(each.is_odd for each in self.held)

    @property
    def is_unreadable(self) -> bool:
        """Whether it, or a nested value, cannot be held by a field."""
        return bool(self.unreadable) or any(each.is_unreadable for each in self.held)

    def add(self, value: Any, level: int = 0) -> None:
        """Counts a value, as `json.loads` returns it, nested in `level` others."""
        self.seen += 1
        if value is None:
            self.nulls += 1
        elif isinstance(value, bool):
            self.bools += 1
        elif isinstance(value, int):
            self._add_whole(value)
        elif isinstance(value, float):
            self.floats += 1
            self.odd += not math.isfinite(value)
        elif isinstance(value, str):
            self._add_text(value)
        elif level >= _LEVELS_MAX:
            self._add_deep(value)
        elif isinstance(value, list):
            self._add_list(value, level)
        else:
            self._add_object(value, level)

    def merged(self, other: Observed) -> Observed:
        """The sum of both observations."""
        both = Observed()
        for name in _COUNTS:
            setattr(both, name, getattr(self, name) + getattr(other, name))
        spans = [each for each in (self.span, other.span) if each is not None]
        if spans:
            both.span = WholeRange(min(each.least for each in spans), max(each.most for each in spans))
        both.forms = tuple(each for each in self.forms if each in other.forms)
        both.items = _merged(self.items, other.items)
        both.values = _merged(self.values, other.values)
        both.members = {
            name: found
            for name in {**self.members, **other.members}
            if (found := _merged(self.members.get(name), other.members.get(name))) is not None
        }
        if len(both.members) > FIELDS_MAX or both.values is not None:
            both.fold_members()
        return both

    def fold_members(self) -> None:
        """Treats objects as mappings from now on: merges their members into `values`."""
        for each in self.members.values():
            self.values = _merged(self.values, each)
        self.members = {}

    def _add_whole(self, value: int) -> None:
        self.whole += 1
        span = self.span or WholeRange(value, value)
        self.span = WholeRange(min(span.least, value), max(span.most, value))

    def _add_text(self, text: str) -> None:
        if float_of_word(text) is not None:
            self.words += 1
        else:
            self.texts += 1
            self.zoneless += _NO_ZONE.fullmatch(text) is not None
        self.unreadable += not _is_unicode(text)
        self.forms = tuple(each for each in self.forms if _reads(each, text))

    def _add_deep(self, value: Any) -> None:
        self.deep += 1
        try:
            JsonForm().from_json(value)
        except UnfitValueError:
            self.unreadable += 1

    def _add_list(self, value: list[Any], level: int) -> None:
        self.lists += 1
        self.items = self.items or Observed()
        for each in value:
            self.items.add(each, level + 1)

    def _add_object(self, value: dict[str, Any], level: int) -> None:
        self.objects += 1
        for name, held in value.items():
            self.unreadable += not _is_unicode(name)
            if self.values is not None:
                self.values.add(held, level + 1)
            else:
                self.members.setdefault(name, Observed()).add(held, level + 1)
                if len(self.members) > FIELDS_MAX:
                    self.fold_members()


_COUNTS = tuple(each.name for each in fields(Observed) if each.default == 0)


def _merged(one: Observed | None, other: Observed | None) -> Observed | None:
    return one.merged(other) if one is not None and other is not None else one or other


def _reads(form: Form, text: str) -> bool:
    try:
        form.from_json(text)
    except UnfitValueError:
        return False
    return True


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
