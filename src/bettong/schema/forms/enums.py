"""Members of an Enum: Arrow's `string`, and text in JSON.

The text of a member is its value if the values of all members are text (a StrEnum), else its name. The members are no
part of a schema's fingerprint: a member may be added at any time, and removed when the log holds none.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, Flag
from functools import lru_cache
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from bettong.errors import SchemaError
from bettong.schema.form import Describe, Form, StatedType, UnfitValueError, each, shown, without_nulls

_MEMBERS = b"bettong.members"
_SHOWN_MEMBERS = 20


@dataclass(frozen=True, slots=True)
class EnumForm(Form):
    """An Enum. `texts`: of all its members; a form `of_arrow` has no class, and each member is its text."""

    name = "enum"
    sql = ("text", "varchar")
    enum: type[Enum] | None
    texts: tuple[str, ...]

    @classmethod
    def of_annotation(cls, stated: StatedType) -> Self | None:
        """See Form."""
        annotation = stated.plain
        if not isinstance(annotation, type) or not issubclass(annotation, Enum):
            return None
        if issubclass(annotation, Flag):
            raise SchemaError(
                f"{annotation.__name__} is a Flag, whose members combine; use an int, and {annotation.__name__}(number)"
            )
        if not len(annotation):
            raise SchemaError(f"{annotation.__name__} has no members")
        return cls(annotation, tuple(_texts(annotation).values()))

    @classmethod
    def of_arrow(cls, field: pa.Field, describe: Describe) -> Self:  # noqa: ARG003 - it holds none
        """See Form."""
        texts = json.loads((field.metadata or {}).get(_MEMBERS, b"[]"))
        return cls(None, tuple(map(str, texts)))

    @property
    def arrow(self) -> pa.DataType:
        """See Form."""
        return pa.string()

    @property
    def metadata(self) -> Mapping[bytes, bytes]:
        """See Form."""
        return {_MEMBERS: json.dumps(self.texts).encode()}

    def array(self, values: Sequence[Any]) -> pa.Array:
        """See Form."""
        return pa.array(each(self._text, values), self.arrow)

    def values(self, array: pa.Array) -> list[Any]:
        """See Form."""
        members = _members(self)
        return [members[text] for text in array.to_pylist()]

    def check(self, array: pa.Array) -> None:
        """See Form."""
        without_nulls(array, self.name)
        known = pc.is_in(array, pa.array(self.texts, pa.string()))
        if (row := known.index(False).as_py()) >= 0:
            raise UnfitValueError(self._unknown(array[row].as_py()), row)

    def to_json(self, value: Any) -> str:
        """See Form."""
        return self._text(value)

    def from_json(self, value: Any) -> Any:
        """See Form."""
        members = _members(self)
        if not isinstance(value, str) or value not in members:
            raise UnfitValueError(self._unknown(value))
        return members[value]

    def to_sql(self, value: Any) -> str:
        """See Form."""
        return self._text(value)

    def _text(self, value: Any) -> str:
        if self.enum is None:
            return str(value)
        if not isinstance(value, self.enum):
            first = next(iter(self.enum))
            raise UnfitValueError(
                f"{shown(value)} is no {self.enum.__name__}; give a member, such as {first!s}"
            )
        return text_of_member(value)

    def _unknown(self, value: object) -> str:
        more = ", ..." if len(self.texts) > _SHOWN_MEMBERS else ""
        name = self.enum.__name__ if self.enum is not None else "member"
        return f"{shown(value)} is no {name}; expected {', '.join(self.texts[:_SHOWN_MEMBERS])}{more}"


def text_of_member(member: Enum) -> str:
    """The text of a member, or of several of a Flag."""
    found = _texts(type(member)).get(member)
    return str(member) if found is None else found


@lru_cache(maxsize=1024)
def _texts(enum: type[Enum]) -> Mapping[Enum, str]:
    by_value = all(isinstance(member.value, str) for member in enum)
    return {member: str(member.value) if by_value else member.name for member in enum}


@lru_cache(maxsize=1024)
def _members(form: EnumForm) -> Mapping[str, Any]:
    """The members by text."""
    return dict(zip(form.texts, form.enum or form.texts, strict=True))
