"""Decoders: bytes from clients become messages.

A decoder gets all messages of a frame at once and says which of them it cannot read, so that one bad message
never takes its neighbours along. `packed` reads fixed binary layouts a frame at a time with numpy; any function
`bytes -> message` serves through `each`.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from bettong.application.fields import Field, Kind, not_utf8
from bettong.application.schema import Schema
from bettong.application.signatures import check_function
from bettong.errors import ApplicationError

Column = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Decoded:
    """The messages that could be read, as columns in the schema's order or as message objects.

    `refused` maps the place of each unreadable message to the reason.
    """

    columns: Sequence[Column] | None = None
    messages: Sequence[Any] | None = None
    refused: dict[int, str] = field(default_factory=dict)


class Decoder(Protocol):
    """Reads the `rows` of a frame."""

    def check(self, source: str, schema: Schema) -> None:
        """Raises ApplicationError when this decoder cannot give messages of `schema`."""

    def decode(self, schema: Schema, rows: Sequence[bytes]) -> Decoded:
        """Reads all rows; never raises for what a client sent."""


@dataclass(frozen=True, slots=True)
class each:  # noqa: N801 - reads as a function in an application
    """`decoder=each(function)`: one call of `function(bytes) -> message` a message; it raises to refuse."""

    function: Callable[[bytes], Any]

    def check(self, source: str, schema: Schema) -> None:
        """See Decoder."""
        owner = f"decoder of {source!r}"
        check_function(owner, self.function, takes=bytes, returns=(schema.message,))

    def decode(self, schema: Schema, rows: Sequence[bytes]) -> Decoded:
        """See Decoder."""
        messages: list[Any] = []
        refused: dict[int, str] = {}
        for place, row in enumerate(rows):
            try:
                message = self.function(row)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the user's function raises refuses the message
                refused[place] = f"{type(error).__name__}: {error}"
                continue
            if isinstance(message, schema.message):
                messages.append(message)
            else:
                refused[place] = f"the decoder returned {type(message).__name__}, not {schema.name}"
        return Decoded(messages=messages, refused=refused)


@dataclass(frozen=True, slots=True)
class packed:  # noqa: N801 - reads as a function in an application
    r"""`decoder=packed(">BI6s4sdd21s", prefix=b"\x01")`: a fixed layout in `struct`'s notation.

    One code a field of the schema, in order, after the bytes of `prefix`, with which each message must start.
    First the byte order: `>` or `<`. Codes: B H I Q b h i q (integers), f d (floats), ? (bool), ns (text or bytes
    of width n), x (a byte left out). Text must be UTF-8; NULs at its end are padding.
    """

    layout: str
    prefix: bytes = b""

    def check(self, source: str, schema: Schema) -> None:
        """See Decoder."""
        if self.layout[:1] not in _ORDERS:
            raise ApplicationError(
                f"decoder of {source!r}: layout {self.layout!r}: start it with '>' (big-endian) or '<'"
            )
        codes = [code for code in self._codes(source) if not code.endswith("x")]
        if len(codes) != len(schema.fields):
            raise ApplicationError(
                f"decoder of {source!r}: {self.layout!r} has {len(codes)} values,"
                f" {schema.name} has {len(schema.fields)} fields"
            )
        for code, each_field in zip(codes, schema.fields, strict=True):
            if not _fits(code, each_field):
                raise ApplicationError(
                    f"decoder of {source!r}: {code!r} cannot give field {each_field.name!r}"
                    f" ({each_field.kind.value}, {each_field.dtype or 'variable width'})"
                )

    def decode(self, schema: Schema, rows: Sequence[bytes]) -> Decoded:
        """See Decoder. Columns are in the machine's byte order."""
        dtype = self._dtype(schema)
        size, prefix = dtype.itemsize, self.prefix
        refused: dict[int, str] = {}
        if set(map(len, rows)) - {size}:
            refused = {
                place: f"{len(row)} bytes, expected {size}"
                for place, row in enumerate(rows)
                if len(row) != size
            }
            rows = [row for row in rows if len(row) == size]
        records = np.frombuffer(b"".join(rows), dtype)
        wrong: dict[int, str] = {}
        if prefix:
            for record in np.flatnonzero(records[_PREFIX] != np.void(prefix)).tolist():
                found = records[_PREFIX][record].tobytes().hex()
                wrong[record] = f"starts with {found}, expected {prefix.hex()}"
        columns = [_native(each_field, records[each_field.name]) for each_field in schema.fields]
        for each_field, column in zip(schema.fields, columns, strict=True):
            if each_field.kind is Kind.TEXT:
                for record in not_utf8(column):
                    wrong.setdefault(
                        record, f"field {each_field.name!r}: {bytes(column[record])!r} is no UTF-8"
                    )
        if wrong:
            places = [place for place in range(len(rows) + len(refused)) if place not in refused]
            refused |= {places[record]: reason for record, reason in wrong.items()}
            columns = [np.delete(column, list(wrong)) for column in columns]
        return Decoded(columns=columns, refused=dict(sorted(refused.items())))

    def _codes(self, source: str) -> list[str]:
        try:
            struct.calcsize(self.layout)
        except struct.error as error:
            raise ApplicationError(f"decoder of {source!r}: layout {self.layout!r}: {error}") from None
        codes, count = [], ""
        for character in self.layout[1:].replace(" ", ""):
            if character.isdigit():
                count += character
            elif character in "sx" or not count:
                codes.append(count + character)
                count = ""
            else:
                codes.extend([character] * int(count))
                count = ""
        return codes

    def _dtype(self, schema: Schema) -> np.dtype[Any]:
        """The numpy record of one message: prefix, fields, and padding left out."""
        order = _ORDERS[self.layout[0]]
        names, formats, offsets = [], [], []
        offset = len(self.prefix)
        fields = iter(schema.fields)
        for code in self._codes(schema.name):
            size = struct.calcsize("=" + code)
            if not code.endswith("x"):
                names.append(next(fields).name)
                formats.append(f"S{size}" if code.endswith("s") else _NUMPY[code].replace("=", order))
                offsets.append(offset)
            offset += size
        if self.prefix:
            names, formats, offsets = (
                [*names, _PREFIX],
                [*formats, f"V{len(self.prefix)}"],
                [*offsets, 0],
            )
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": offset})


# A name that no field can have.
_PREFIX = "prefix "
_ORDERS = {">": ">", "!": ">", "<": "<"}
_NUMPY = {
    "B": "u1", "H": "=u2", "I": "=u4", "Q": "=u8", "b": "i1", "h": "=i2", "i": "=i4", "q": "=i8",
    "f": "=f4", "d": "=f8", "?": "u1",
}  # fmt: skip


def _native(target: Field, column: Column) -> Column:
    """A column of its own, in the machine's byte order; truth is 0 or 1."""
    native: Column = column != 0 if target.kind is Kind.BOOL else column
    return native.astype(target.dtype)


def _fits(code: str, target: Field) -> bool:
    if target.dtype is None:
        return False
    if code.endswith("s"):
        wide = struct.calcsize("=" + code)
        return target.kind in (Kind.TEXT, Kind.BYTES) and target.dtype.itemsize == wide
    if code not in _NUMPY:
        return False
    native = np.dtype(_NUMPY[code])
    kinds = {Kind.INT: "ui", Kind.FLOAT: "f", Kind.BOOL: "u"}
    return native.kind in kinds.get(target.kind, "") and np.can_cast(native, target.dtype, "safe")
