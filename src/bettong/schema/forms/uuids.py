"""UUIDs: 16 bytes in Arrow, their text with dashes in JSON, Postgres' `uuid`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pyarrow as pa

from bettong.schema.form import ScalarForm, UnfitValueError, each, shown, without_nulls

_TEXT = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class UuidForm(ScalarForm):
    """`UUID`, of any version."""

    name = "uuid"
    python = UUID
    sql = ("uuid",)

    @property
    def arrow(self) -> pa.DataType:
        """See Form."""
        return pa.binary(16)

    def array(self, values: Sequence[Any]) -> pa.Array:
        """See Form."""
        return pa.array(each(_bytes_of_uuid, values), self.arrow)

    def values(self, array: pa.Array) -> list[Any]:
        """See Form."""
        return [UUID(bytes=each_) for each_ in array.to_pylist()]

    def check(self, array: pa.Array) -> None:
        """See Form."""
        without_nulls(array, self.name)

    def to_json(self, value: Any) -> str:
        """See Form."""
        return str(value)

    def from_json(self, value: Any) -> UUID:
        """See Form."""
        if not isinstance(value, str) or not _TEXT.fullmatch(value):
            raise UnfitValueError(
                f"{shown(value)} is no UUID; expected one like 123e4567-e89b-12d3-a456-426614174000"
            )
        return UUID(value)


def _bytes_of_uuid(value: Any) -> bytes:
    if not isinstance(value, UUID):
        raise UnfitValueError(f"{shown(value)} is no UUID; give UUID(value)")
    return value.bytes
