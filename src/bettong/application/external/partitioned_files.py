"""Files in folders named after fields of the messages."""

from dataclasses import dataclass
from typing import ClassVar

from bettong.application.external.destination import Destination
from bettong.errors import ApplicationError
from bettong.schema.fields import Field
from bettong.schema.forms.nullable import NullableForm
from bettong.schema.schema import Schema

# Each is a nested folder: with names of 255 bytes a path has 2 KiB of the 4 that Linux allows.
_FIELDS_MAX = 8
# Kinds whose values are short texts that many messages share.
_KINDS = ("text", "int", "bool", "date", "enum", "uuid")


@dataclass(frozen=True, slots=True)
class PartitionedFiles(Destination):
    """Lays messages out in folders by their fields: `to=PartitionedFiles(by=("day", "hour"))`.

    A message whose `day` is 2026-11-26 and whose `hour` is 03 becomes a line of JSON in a file of the folder
    `day=2026-11-26/hour=03`, below the `folder` that the connection names. Fields hold text, integers, bools, dates,
    Enums or UUIDs. Choose fields with few different values at a time: each folder has a file for each partition.
    """

    kind: ClassVar[str] = "partitioned_files"

    by: str | tuple[str, ...]
    connection: str | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields, the outermost folder's first."""
        return (self.by,) if isinstance(self.by, str) else self.by

    def check_sink(self, sink: str, schema: Schema | None, *, encoded: bool) -> None:
        """See Destination."""
        if encoded or schema is None:
            raise ApplicationError(
                f"sink {sink!r}: PartitionedFiles(by={self.by!r}) needs fields of one schema, and this sink has"
                f" {'an encoder: leave it out' if encoded else 'several: give each stream a sink of its own'}"
            )
        given: object = self.fields
        if not isinstance(given, tuple) or not all(isinstance(name, str) for name in given):
            raise ApplicationError(
                f"sink {sink!r}: by={self.by!r}: expected the name of a field, or a tuple of names"
            )
        names = self.fields
        if not 1 <= len(names) <= _FIELDS_MAX or len(set(names)) < len(names):
            raise ApplicationError(
                f"sink {sink!r}: by={self.by!r}: expected 1 to {_FIELDS_MAX} different fields of {schema.name}"
            )
        known = {field.name: field for field in schema.fields}
        for name in names:
            if name not in known:
                raise ApplicationError(
                    f"sink {sink!r}: by={self.by!r}: {schema.name} has no field {name!r}; it has {', '.join(known)}"
                )
            if (kind := _held(known[name]).kind_name) not in _KINDS:
                raise ApplicationError(
                    f"sink {sink!r}: by={self.by!r}: field {name!r} of {schema.name} is of kind {kind}; folders are"
                    f" named after {', '.join(_KINDS)}: give the message such a field, in a map before the sink"
                )


def _held(field: Field) -> Field:
    """The field that describes a field's values other than None."""
    return field.form.held if isinstance(field.form, NullableForm) else field
