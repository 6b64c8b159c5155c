"""Decoders of fixed binary layouts: numpy reads all messages of a frame at once, without an object or a call a message.

`packed` is one layout; `tagged` selects one by the first bytes of each message, which exchanges call its type.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from bettong.errors import ApplicationError
from bettong.schema.decoded import Column, Decoded
from bettong.schema.fields import Field, Kind, not_utf8
from bettong.schema.schema import Schema


@dataclass(frozen=True, slots=True)
class packed:  # noqa: N801 - reads as a function in an application
    r"""`decoder=packed(">BI6s4sdd21s", prefix=b"\x01")`: a fixed layout in `struct`'s notation.

    One code a field of the schema, in order, after the bytes of `prefix`, with which each message must start. First the
    byte order: `>` or `<`. Codes: B H I Q b h i q (integers), f d (floats), ? (bool), ns (text or bytes of width n), x
    (a skipped byte). Text must be UTF-8; NULs at its end are padding. `fields`: the fields that the codes describe,
    unless these are all in the schema's order; the others get their defaults.
    """

    layout: str
    prefix: bytes = b""
    fields: tuple[str, ...] = ()

    def check(self, source: str, schema: Schema) -> None:
        """See Decoder."""
        layout: object = self.layout
        if not isinstance(layout, str) or layout[:1] not in _ORDERS:
            raise ApplicationError(
                f"decoder of {source!r}: layout {self.layout!r}: start it with '>' (big-endian) or '<'"
            )
        if not isinstance(self.prefix, bytes):
            raise ApplicationError(f"decoder of {source!r}: prefix={self.prefix!r}: expected bytes, b'...'")
        if not isinstance(self.fields, tuple | list):
            raise ApplicationError(
                f"decoder of {source!r}: fields={self.fields!r}: expected a tuple of names, ('price', 'size')"
            )
        codes = [code for code in self._codes(source) if not code.endswith("x")]
        read = self._read(source, schema)
        if len(codes) != len(read):
            raise ApplicationError(
                f"decoder of {source!r}: {self.layout!r} has {len(codes)} values,"
                f" {'fields=' if self.fields else schema.name} has {len(read)} fields"
            )
        for code, each_field in zip(codes, read, strict=True):
            if not _fits(code, each_field):
                raise ApplicationError(
                    f"decoder of {source!r}: {code!r} cannot fill field {each_field.name!r}"
                    f" ({each_field.kind_name}, {each_field.dtype or 'variable width'})"
                )
        for each_field in schema.fields:
            if each_field not in read:
                _constant(source, schema, each_field, 0)

    def decode(self, schema: Schema, rows: Sequence[bytes]) -> Decoded:
        """See Decoder. Columns are in the machine's byte order."""
        dtype = self._dtype(schema)
        size, prefix = dtype.itemsize, self.prefix
        refused: dict[int, str] = {}
        if set(map(len, rows)) - {size}:
            refused = {
                index: f"{len(row)} bytes, expected {size}"
                for index, row in enumerate(rows)
                if len(row) != size
            }
            rows = [row for row in rows if len(row) == size]
        records = np.frombuffer(b"".join(rows), dtype)
        wrong: dict[int, str] = {}
        if prefix:
            for record in np.flatnonzero(records[_PREFIX] != np.void(prefix)).tolist():
                found = records[_PREFIX][record].tobytes().hex()
                wrong[record] = f"starts with {found}, expected {prefix.hex()}"
        read = self.fields or [each_field.name for each_field in schema.fields]
        columns = [
            _native(each_field, records[each_field.name])
            if each_field.name in read
            else _constant("", schema, each_field, len(records))
            for each_field in schema.fields
        ]
        for each_field, column in zip(schema.fields, columns, strict=True):
            if each_field.kind is Kind.TEXT:
                for record in not_utf8(column):
                    wrong.setdefault(
                        record, f"field {each_field.name!r}: {bytes(column[record])!r} is no UTF-8"
                    )
        if wrong:
            indexes = [index for index in range(len(rows) + len(refused)) if index not in refused]
            refused |= {indexes[record]: reason for record, reason in wrong.items()}
            columns = [np.delete(column, list(wrong)) for column in columns]
        return Decoded(columns=columns, refused=dict(sorted(refused.items())))

    def _read(self, source: str, schema: Schema) -> list[Field]:
        """The fields that the codes describe."""
        known = {each_field.name: each_field for each_field in schema.fields}
        for index, name in enumerate(self.fields):
            if name not in known or name in self.fields[:index]:
                raise ApplicationError(
                    f"decoder of {source!r}: fields={self.fields}: {name!r} is"
                    f" {'there twice' if name in known else f'no field of {schema.name}'}"
                )
        return [known[name] for name in self.fields or known]

    def _codes(self, source: str) -> list[str]:
        try:
            struct.calcsize(self.layout)
        except (struct.error, UnicodeEncodeError) as error:
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
        """The numpy record of one message: prefix and fields, without padding."""
        order = _ORDERS[self.layout[0]]
        names, formats, offsets = [], [], []
        offset = len(self.prefix)
        read = iter(self._read(schema.name, schema))
        for code in self._codes(schema.name):
            size = struct.calcsize("=" + code)
            if not code.endswith("x"):
                names.append(next(read).name)
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


@dataclass(frozen=True, slots=True, eq=False)
class tagged:  # noqa: N801 - reads as a function in an application
    r"""`decoder=tagged({b"\x01": packed(...), b"\x02": packed(...)})`: a layout by each message's first bytes.

    All tags have one length. A tag is part of the message, so its layout reads it, skips it (`x`), or has it as its
    prefix. A message that starts with no tag is refused. Messages are of one schema and keep their order.
    """

    layouts: Mapping[bytes, packed]

    def check(self, source: str, schema: Schema) -> None:
        """See Decoder."""
        owner = f"decoder of {source!r}: tagged"
        if not isinstance(self.layouts, Mapping):
            raise ApplicationError(f"{owner}({self.layouts!r}): expected {{b'tag': packed(...)}}")
        given: Mapping[Any, Any] = self.layouts
        for tag, layout in given.items():
            if not isinstance(tag, bytes) or not isinstance(layout, packed):
                raise ApplicationError(f"{owner}({{{tag!r}: {layout!r}}}): expected {{b'tag': packed(...)}}")
        if not self.layouts or len(set(map(len, self.layouts))) != 1 or b"" in self.layouts:
            raise ApplicationError(f"{owner}({list(self.layouts)}): give at least one tag, all of one length")
        for tag, layout in self.layouts.items():
            layout.check(source, schema)
            if not (tag.startswith(layout.prefix) or layout.prefix.startswith(tag)):
                raise ApplicationError(
                    f"{owner}: messages with tag {tag!r} never start with its layout's prefix {layout.prefix!r}"
                )

    def decode(self, schema: Schema, rows: Sequence[bytes]) -> Decoded:
        """See Decoder."""
        size = len(next(iter(self.layouts)))
        indexes: dict[bytes, list[int]] = {tag: [] for tag in self.layouts}
        refused: dict[int, str] = {}
        for index, row in enumerate(rows):
            if (own := indexes.get(row[:size])) is not None:
                own.append(index)
            else:
                tags = ", ".join(tag.hex() for tag in self.layouts)
                refused[index] = f"starts with {row[:size].hex() or 'nothing'}, expected one of {tags}"
        columns: list[Column] = [np.zeros(len(rows), each_field.dtype) for each_field in schema.fields]
        for tag, own in indexes.items():
            decoded = self.layouts[tag].decode(schema, [rows[index] for index in own])
            refused |= {own[index]: reason for index, reason in decoded.refused.items()}
            read = np.delete(np.array(own, np.int64), list(decoded.refused))
            for column, values in zip(columns, decoded.columns or (), strict=True):
                column[read] = values
        if refused:
            columns = [np.delete(column, list(refused)) for column in columns]
        return Decoded(columns=columns, refused=dict(sorted(refused.items())))


# A name that no field can have.
_PREFIX = "prefix "
_ORDERS = {">": ">", "!": ">", "<": "<"}
_NUMPY = {
    "B": "u1", "H": "=u2", "I": "=u4", "Q": "=u8", "b": "i1", "h": "=i2", "i": "=i4", "q": "=i8",
    "f": "=f4", "d": "=f8", "?": "u1",
}  # fmt: skip


def _native(target: Field, column: Column) -> Column:
    """A contiguous copy in native byte order; bools become 0 or 1."""
    native: Column = column != 0 if target.kind is Kind.BOOL else column
    return native.astype(target.dtype)


def _constant(source: str, schema: Schema, target: Field, count: int) -> Column:
    """A column that repeats a field's default. Raises ApplicationError if it has none that fits."""
    value: Any = MISSING
    if is_dataclass(schema.message):
        found = next(each_field for each_field in fields(schema.message) if each_field.name == target.name)
        value = found.default if found.default_factory is MISSING else found.default_factory()
    if value is MISSING or target.dtype is None:
        raise ApplicationError(
            f"decoder of {source!r}: it does not read field {target.name!r}, which has"
            f" {'no default' if value is MISSING else 'a variable width'}"
        )
    try:
        wide = np.array([value.encode() if target.kind is Kind.TEXT else value])
        column: Column = wide.astype(target.dtype)
        if target.kind is Kind.FLOAT or column.tolist() == wide.tolist():
            return column.repeat(count)
        reason = "it would become " + repr(column.tolist()[0])
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        reason = str(error)
    raise ApplicationError(
        f"decoder of {source!r}: the default of field {target.name!r}, {value!r}, does not fit it"
        f" ({target.kind.value}, {target.dtype}): {reason}"
    )


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
