"""Text of a fixed width in compiled code: n bytes of UTF-8, padded with NULs, that behave as a str.

Copying, storing and comparing it allocates no memory. For other operations, such as `name[0]`, `name.upper()` and
f-strings, it is converted to Numba's str first. A str is converted to text only where both are assigned to one
variable, and where it is stored. Columns and states hold no text that ends in NULs: such a constant equals none.
"""

import operator
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, errors, types
from numba.core.imputils import lower_constant
from numba.core.typeconv.castgraph import Conversion
from numba.cpython import unicode
from numba.extending import (
    box,
    lower_cast,
    models,
    overload,
    register_jitable,
    register_model,
)

# Typed as Any: its annotations describe the decorated function, and not how compiled code calls it.
intrinsic: Any = numba.extending.intrinsic
# The width of a variable that holds both text of a message and a str of any length; a longer str raises ValueError.
MIXED_BYTES = 64
_BYTE = ir.IntType(8)
# The kind of a Python str with one byte a character.
_ONE_BYTE = 1


class TextType(types.Type):
    """Text of at most `count` bytes."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(name=f"text[{count}]")

    def unify(self, _context: Any, other: Any) -> "TextType | None":
        """The common type of this and `other`: of a variable after a branch, of a list's elements."""
        other = text_of(other) or other
        if isinstance(other, types.UnicodeType):
            return TextType(max(self.count, MIXED_BYTES))
        return TextType(max(self.count, other.count)) if isinstance(other, TextType) else None

    def can_convert_from(self, _context: Any, other: Any) -> Any:
        """Where a value can be too long, compiled code checks it and raises."""
        if isinstance(other, TextType):
            return Conversion.safe if other.count <= self.count else Conversion.unsafe
        return Conversion.unsafe if isinstance(other, types.UnicodeType | types.StringLiteral) else None


register_model(TextType)(models.CharSeq)


def text_of(constant: Any) -> TextType | None:
    """The text type of a constant's type; None where it cannot be text of a column."""
    if isinstance(constant, types.StringLiteral) and (data := _encoded(constant.literal_value)) is not None:
        return TextType(max(1, len(data)))
    return constant if isinstance(constant, TextType) else None


def _encoded(constant: str) -> bytes | None:
    """The bytes of a constant; None where no text can equal it."""
    try:
        data = constant.encode()
    except UnicodeEncodeError:
        return None
    return None if data.endswith(b"\0") else data


@intrinsic(prefer_literal=True)
def _constant(_context: Any, constant: Any) -> Any:
    """A constant str as text."""
    kind = text_of(constant)

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        return context.get_constant_generic(builder, kind, constant.literal_value)

    return (kind(constant), generate) if kind is not None else None


@lower_constant(TextType)
def _constant_bytes(_context: Any, _builder: Any, kind: TextType, value: str) -> Any:
    data = _encoded(value)
    if data is None or len(data) > kind.count:
        raise errors.NumbaValueError(f"{value!r} is no text of at most {kind.count} bytes")
    return ir.Constant(ir.ArrayType(_BYTE, kind.count), bytearray(data.ljust(kind.count, b"\0")))


@intrinsic
def _byte(_context: Any, text: Any, _index: Any) -> Any:
    """The byte at an index, without a bounds check."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        bytes_at = cgutils.alloca_once_value(builder, arguments[0])
        return builder.load(cgutils.gep_inbounds(builder, bytes_at, 0, arguments[1]))

    return types.uint8(text, types.intp), generate


@intrinsic
def _differs(_context: Any, one: Any, other: Any) -> Any:
    """Whether two texts differ."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _difference(context, builder, *zip(signature.args, arguments, strict=True))

    return types.boolean(one, other), generate


@intrinsic(prefer_literal=True)
def is_one_of(_context: Any, text: Any, texts: Any) -> Any:
    """Whether text equals any of a tuple of texts and constants."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, among = signature.args
        found = cgutils.false_bit
        for index, each in enumerate(among):
            other = _text_of_element(context, builder, each, arguments[1], index)
            differs = _difference(context, builder, (kind, arguments[0]), other)
            found = builder.or_(found, builder.not_(differs))
        return found

    return types.boolean(text, texts), generate


def _text_of_element(context: Any, builder: Any, kind: Any, values: Any, index: int) -> tuple[Any, Any]:
    if isinstance(kind, TextType):
        return kind, builder.extract_value(values, index)
    text = text_of(kind)
    return text, context.get_constant_generic(builder, text, kind.literal_value)


def _difference(context: Any, builder: Any, *texts: tuple[Any, Any]) -> Any:
    """Whether any byte of two texts differs; the shorter one is padded with NULs."""
    wide = TextType(max(kind.count for kind, _ in texts))
    pointers = [
        cgutils.alloca_once_value(builder, context.cast(builder, value, kind, wide)) for kind, value in texts
    ]
    found = cgutils.alloca_once_value(builder, _BYTE(0))
    with cgutils.for_range(builder, context.get_constant(types.intp, wide.count)) as loop:
        left, right = (builder.load(cgutils.gep_inbounds(builder, each, 0, loop.index)) for each in pointers)
        builder.store(builder.or_(builder.load(found), builder.xor(left, right)), found)
    return builder.icmp_unsigned("!=", builder.load(found), _BYTE(0))


@intrinsic
def _packed(_context: Any, data: Any, kind: Any) -> Any:
    """Text of a type, from a str whose characters are bytes, truncated to its width."""
    text = kind.instance_type

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
        room = ir.Constant(source.length.type, text.count)
        size = builder.select(builder.icmp_signed("<", source.length, room), source.length, room)
        made = cgutils.alloca_once(builder, context.get_value_type(text))
        builder.store(ir.Constant(context.get_value_type(text), None), made)
        cgutils.raw_memcpy(builder, builder.bitcast(made, cgutils.voidptr_t), source.data, size, 1)
        return builder.load(made)

    return text(data, kind), generate


@intrinsic
def _width(_context: Any, text: Any) -> Any:
    """The width of text in bytes."""

    def generate(context: Any, _builder: Any, signature: Any, _arguments: Any) -> Any:
        return context.get_constant(types.intp, signature.args[0].count)

    return types.intp(text), generate


@register_jitable
def _at(text: Any, index: Any) -> Any:
    """The byte at an index; NUL beyond the end."""
    return _byte(text, index) if index < _width(text) else numba.uint8(0)


@register_jitable
def _size(text: Any) -> Any:
    """The number of bytes before the NULs that pad it."""
    size = _width(text)
    while size > 0 and _byte(text, size - 1) == 0:
        size -= 1
    return size


@register_jitable
def _character(text: Any, index: Any) -> Any:
    """The code point that begins at an index, and the index of the next one."""
    first, second = numba.uint32(_byte(text, index)), numba.uint32(_at(text, index + 1) & 0x3F)
    if first < 0x80:
        return first, index + 1
    if first < 0xE0:
        return (first & 0x1F) << 6 | second, index + 2
    third = numba.uint32(_at(text, index + 2) & 0x3F)
    if first < 0xF0:
        return (first & 0x0F) << 12 | second << 6 | third, index + 3
    fourth = numba.uint32(_at(text, index + 3) & 0x3F)
    return (first & 0x07) << 18 | second << 12 | third << 6 | fourth, index + 4


@register_jitable
def decoded(text: Any) -> Any:
    """Text as a str."""
    size = _size(text)
    characters, largest, index = 0, numba.uint32(0), 0
    while index < size:
        code, index = _character(text, index)
        characters, largest = characters + 1, max(largest, code)
    made = unicode._empty_string(unicode._codepoint_to_kind(largest), characters, largest < 0x80)  # noqa: SLF001
    index = 0
    for character in range(characters):
        code, index = _character(text, index)
        unicode._set_code_point(made, character, code)  # noqa: SLF001
    return made


@register_jitable
def characters(text: Any) -> Any:
    """How many code points text has."""
    found = 0
    for index in range(_size(text)):
        found += _byte(text, index) & 0xC0 != 0x80
    return found


@register_jitable
def _encoded_characters(value: Any) -> Any:
    """A str whose characters are the bytes of another str."""
    if value._is_ascii:  # noqa: SLF001
        return value
    size = 0
    for index in range(len(value)):
        code = unicode._get_code_point(value, index)  # noqa: SLF001
        size += 1 + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)
    made = unicode._empty_string(_ONE_BYTE, size, 0)  # noqa: SLF001
    at = 0
    for index in range(len(value)):
        code = unicode._get_code_point(value, index)  # noqa: SLF001
        more = (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)
        first = code if more == 0 else (0xFF00 >> more + 1 & 0xFF) | code >> 6 * more
        unicode._set_code_point(made, at, first)  # noqa: SLF001
        for left in range(more - 1, -1, -1):
            at += 1
            unicode._set_code_point(made, at, 0x80 | code >> 6 * left & 0x3F)  # noqa: SLF001
        at += 1
    return made


@overload(operator.eq, prefer_literal=True, strict=False)
def _equal(a: Any, b: Any) -> Any:
    """As in Python: text can equal a str, or a member of a str Enum, and nothing else."""
    if isinstance(b, TextType) and not isinstance(a, TextType):
        return lambda a, b: b == a
    if not isinstance(a, TextType) or isinstance(b, types.Optional | types.NoneType):
        return None
    if text_of(b) is not None:
        constant = isinstance(b, types.StringLiteral)
        return (lambda a, b: not _differs(a, _constant(b))) if constant else lambda a, b: not _differs(a, b)
    if isinstance(b, types.UnicodeType):
        return _equal_to_str
    if isinstance(b, types.UnicodeCharSeq):
        return lambda a, b: a == str(b)
    if isinstance(b, types.EnumMember) and issubclass(b.instance_class, str):
        return lambda a, b: a == b.value
    return _never


def _never(_one: Any, _other: Any) -> bool:
    return False


def _equal_to_str(a: Any, b: Any) -> Any:
    return _has_bytes(a, b if b._is_ascii else _encoded_characters(b))  # noqa: SLF001


@register_jitable
def _has_bytes(text: Any, data: Any) -> Any:
    """Whether text is these bytes, given as the characters of a str, padded with NULs."""
    size, width = len(data), _width(text)
    if size > width or (size > 0 and unicode._get_code_point(data, size - 1) == 0):  # noqa: SLF001
        return False
    for index in range(size):
        if _byte(text, index) != unicode._get_code_point(data, index):  # noqa: SLF001
            return False
    for index in range(size, width):  # noqa: SIM110 - Numba has no `all`
        if _byte(text, index) != 0:
            return False
    return True


@overload(operator.ne, prefer_literal=True, strict=False)
def _unequal(a: Any, b: Any) -> Any:
    return (lambda a, b: not (a == b)) if isinstance(a, TextType) or isinstance(b, TextType) else None  # noqa: SIM201


def is_longer(value: Any, size_bytes: int) -> bool:
    """Whether text, or a str, has more bytes. In compiled code only."""
    raise NotImplementedError


@overload(is_longer, prefer_literal=True, strict=False)
def _is_longer(value: Any, size_bytes: Any) -> Any:
    text = text_of(value)
    if text is not None and isinstance(size_bytes, types.Literal) and text.count <= size_bytes.literal_value:
        return _never
    if isinstance(value, TextType):
        return lambda value, size_bytes: _size(value) > size_bytes
    if isinstance(value, types.UnicodeType):
        return lambda value, size_bytes: len(_encoded_characters(value)) > size_bytes
    return None


@lower_cast(TextType, TextType)
def _cast_text(context: Any, builder: Any, source: TextType, wanted: TextType, value: Any) -> Any:
    """To a wider type NULs are added. To a narrower one, compiled code raises ValueError if text does not fit."""
    if source.count > wanted.count:
        count, message = wanted.count, f"text longer than {wanted.count} bytes"

        def check(text: Any) -> None:
            if _size(text) > count:
                raise ValueError(message)

        context.compile_internal(builder, check, types.none(source), (value,))
    made = cgutils.alloca_once(builder, context.get_value_type(wanted))
    builder.store(ir.Constant(context.get_value_type(wanted), None), made)
    size = ir.Constant(cgutils.intp_t, min(source.count, wanted.count))
    start, target = (
        builder.bitcast(pointer, cgutils.voidptr_t)
        for pointer in (cgutils.alloca_once_value(builder, value), made)
    )
    cgutils.raw_memcpy(builder, target, start, size, 1)
    return builder.load(made)


@lower_cast(types.StringLiteral, TextType)
def _cast_constant(context: Any, builder: Any, source: Any, wanted: TextType, _value: Any) -> Any:
    return context.get_constant_generic(builder, wanted, source.literal_value)


@lower_cast(types.UnicodeType, TextType)
def _cast_str(context: Any, builder: Any, source: Any, wanted: TextType, value: Any) -> Any:
    """Compiled code raises ValueError if the str does not fit."""
    count, message = wanted.count, f"text longer than {wanted.count} bytes"

    def packed(value: Any) -> Any:
        data = _encoded_characters(value)
        if len(data) > count:
            raise ValueError(message)
        for index in range(0 if value._is_ascii else len(value)):  # noqa: SLF001
            if 0xD800 <= unicode._get_code_point(value, index) < 0xE000:  # noqa: SLF001
                raise ValueError("text with a surrogate is no UTF-8")
        return _packed(data, wanted)

    return context.compile_internal(builder, packed, wanted(source), (value,))


@box(TextType)
def _boxed(kind: TextType, value: Any, context: Any) -> Any:
    """The str for compiled code that passes text to Python, in an exception."""
    builder, size_type, python = context.builder, cgutils.intp_t, context.pyapi
    start = builder.bitcast(cgutils.alloca_once_value(builder, value), python.cstring)
    size = cgutils.alloca_once_value(builder, size_type(0))
    with cgutils.for_range(builder, size_type(kind.count)) as loop:
        is_padding = builder.icmp_unsigned("==", builder.load(builder.gep(start, [loop.index])), _BYTE(0))
        with builder.if_then(builder.not_(is_padding)):
            builder.store(builder.add(loop.index, size_type(1)), size)
    made = ir.FunctionType(python.pyobj, [python.cstring, python.py_ssize_t])
    make = cgutils.get_or_insert_function(builder.module, made, "PyUnicode_FromStringAndSize")
    return builder.call(make, [start, builder.load(size)])
