"""A bounded list in compiled code: embedded in a state's record, used like Python's list.

    number of items (64 bits) | items, contiguous | zeros

The space after the items is zero, so that equal lists have equal bytes. Its operations are defined below; all others
are refused when a function is compiled.
"""

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, errors, types
from numba.core.imputils import RefType, iternext_impl
from numba.core.types.common import SimpleIterableType, SimpleIteratorType
from numba.extending import lower_builtin, models, overload, overload_method, register_jitable, register_model

from bettong.worker.numba_types.fixed_bytes import BytesType
from bettong.worker.numba_types.messages import MessageType
from bettong.worker.numba_types.storing import store_value
from bettong.worker.numba_types.texts import TextType, intrinsic, text_of


class BoundedListType(SimpleIterableType):
    """A list of at most `at_most` items. In bytes: `at`, where the items begin, `step` from one to the next, `size`."""

    mutable = True

    def __init__(self, item: Any, at_most: int, *, at: int, step: int, size: int) -> None:
        self.item, self.at_most, self.at, self.step, self.size = item, at_most, at, step, size
        name = f"list[{item}, at most {at_most}]"
        super().__init__(name, BoundedListIteratorType(name, self))

    @property
    def key(self) -> Any:
        """The identity of the type: not the name, which two classes may share."""
        return self.item, self.at_most, self.at, self.step, self.size


class BoundedListIteratorType(SimpleIteratorType):
    """The iterator of a bounded list."""

    def __init__(self, name: str, held: BoundedListType) -> None:
        self.held = held
        super().__init__(f"iterator({name})", held.item)

    @property
    def key(self) -> Any:
        """The identity of the type."""
        return self.held


@register_model(BoundedListType)
class _ListModel(models.PrimitiveModel):
    """A pointer to the list in its record."""

    def __init__(self, manager: Any, kind: BoundedListType) -> None:
        self._data = ir.ArrayType(ir.IntType(8), kind.size)
        super().__init__(manager, kind, self._data.as_pointer())

    def get_data_type(self) -> Any:
        return self._data

    def load_from_data_pointer(self, builder: Any, pointer: Any, _align: Any = None) -> Any:
        return builder.bitcast(pointer, self.get_value_type())


@register_model(BoundedListIteratorType)
class _IteratorModel(models.StructModel):
    def __init__(self, manager: Any, kind: BoundedListIteratorType) -> None:
        members = [("held", kind.held), ("index", types.EphemeralPointer(types.intp))]
        super().__init__(manager, kind, members)


def _count_at(builder: Any, held: Any) -> Any:
    return builder.bitcast(held, cgutils.intp_t.as_pointer())


def _item_at(context: Any, builder: Any, kind: BoundedListType, held: Any, index: Any) -> Any:
    """The address of an item, without a bounds check."""
    start = builder.bitcast(held, cgutils.voidptr_t)
    offset = builder.add(builder.mul(index, cgutils.intp_t(kind.step)), cgutils.intp_t(kind.at))
    return builder.bitcast(builder.gep(start, [offset]), context.get_data_type(kind.item).as_pointer())


@lower_builtin("getiter", BoundedListType)
def _iterator(context: Any, builder: Any, call: Any, arguments: Any) -> Any:
    made = context.make_helper(builder, call.return_type)
    made.held = arguments[0]
    made.index = cgutils.alloca_once_value(builder, cgutils.intp_t(0))
    return made._getvalue()  # noqa: SLF001 - that is its name


@lower_builtin("iternext", BoundedListIteratorType)
@iternext_impl(RefType.UNTRACKED)
def _next(context: Any, builder: Any, call: Any, arguments: Any, result: Any) -> None:
    """As in Python, the list may change during iteration."""
    (kind,) = call.args
    iterator = context.make_helper(builder, kind, value=arguments[0])
    index = builder.load(iterator.index)
    is_valid = builder.icmp_signed("<", index, builder.load(_count_at(builder, iterator.held)))
    result.set_valid(is_valid)
    with builder.if_then(is_valid):
        address = _item_at(context, builder, kind.held, iterator.held, index)
        result.yield_(context.unpack_value(builder, kind.held.item, address))
        builder.store(builder.add(index, cgutils.intp_t(1)), iterator.index)


@intrinsic
def _count(_context: Any, held: Any) -> Any:
    """How many items there are."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.load(_count_at(builder, arguments[0]))

    return types.intp(held), generate


@intrinsic
def _set_count(_context: Any, held: Any, _count: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        builder.store(arguments[1], _count_at(builder, arguments[0]))
        return context.get_dummy_value()

    return types.void(held, types.intp), generate


@intrinsic
def _at_most(_context: Any, held: Any) -> Any:
    """The bound of the list."""

    def generate(_context: Any, _builder: Any, _signature: Any, _arguments: Any) -> Any:
        return cgutils.intp_t(held.at_most)

    return types.intp(held), generate


@intrinsic
def _item(_context: Any, held: Any, _index: Any) -> Any:
    """The item at an index, without a bounds check."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return context.unpack_value(builder, held.item, _item_at(context, builder, held, *arguments))

    return held.item(held, types.intp), generate


@intrinsic
def _put(_context: Any, held: Any, _index: Any, _value: Any) -> Any:
    """Sets the item at an index, without a bounds check."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address = _item_at(context, builder, held, *arguments[:2])
        store_value(context, builder, held.item, arguments[2], address)
        return context.get_dummy_value()

    return types.void(held, types.intp, held.item), generate


@intrinsic
def _move(_context: Any, held: Any, _target: Any, _source: Any, _count: Any) -> Any:
    """Moves so many items, without a bounds check."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        to, of = (
            builder.bitcast(_item_at(context, builder, held, arguments[0], each), cgutils.voidptr_t)
            for each in arguments[1:3]
        )
        cgutils.raw_memmove(builder, to, of, arguments[3], held.step)
        return context.get_dummy_value()

    return types.void(held, types.intp, types.intp, types.intp), generate


@intrinsic
def _erase(_context: Any, held: Any, _start: Any, _count: Any) -> Any:
    """Fills so many items with zeros, without a bounds check."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        start = builder.bitcast(_item_at(context, builder, held, *arguments[:2]), cgutils.voidptr_t)
        size = builder.mul(arguments[2], cgutils.intp_t(held.step))
        cgutils.memset(builder, start, size, 0)
        return context.get_dummy_value()

    return types.void(held, types.intp, types.intp), generate


@register_jitable
def _remove(held: Any, index: Any) -> None:
    left = _count(held) - 1
    _move(held, index, index + 1, left - index)
    _erase(held, left, 1)
    _set_count(held, left)


@register_jitable
def _insert(held: Any, index: Any, item: Any) -> None:
    count = _count(held)
    if count >= _at_most(held):
        raise ValueError("the list is full: it holds as many items as its AtMost(n) says")
    if index < count:
        _move(held, index + 1, index, count - index)
    _put(held, index, item)
    _set_count(held, count + 1)


def _is_list(kind: Any) -> bool:
    return isinstance(kind, BoundedListType)


def _check(held: BoundedListType, given: Any) -> None:
    """Raises NumbaTypeError for a type that the list cannot hold, as a float in a list of integers."""
    if not _takes(held.item, types.unliteral(given) if text_of(given) is None else given):
        raise errors.NumbaTypeError(f"a list of {held.item} takes no {types.unliteral(given)}")


def _takes(item: Any, given: Any) -> bool:
    if isinstance(item, TextType):
        return text_of(given) is not None or isinstance(given, types.UnicodeType)
    if isinstance(item, MessageType):
        return (
            isinstance(given, MessageType)
            and given.schema == item.schema
            and all(map(_takes, item.field_types, given.field_types))
        )
    if isinstance(item, types.CharSeq):
        return isinstance(given, types.CharSeq | types.Bytes | BytesType)
    numbers = {types.float64: types.Number | types.Boolean, types.int64: types.Integer | types.Boolean}
    return isinstance(given, numbers.get(item, types.Boolean))


@overload(len, strict=False)
def _len(held: Any) -> Any:
    return _count_of if _is_list(held) else None


def _count_of(held: Any) -> Any:
    return _count(held)


@overload(bool, strict=False)
def _bool(held: Any) -> Any:
    return (lambda held: _count(held) > 0) if _is_list(held) else None


@overload(operator.not_, strict=False)
def _not(held: Any) -> Any:
    return (lambda held: _count(held) == 0) if _is_list(held) else None


@overload(operator.contains, strict=False)
def _contains(held: Any, item: Any) -> Any:  # noqa: ARG001 - as Numba calls it
    if not _is_list(held):
        return None

    def contains(held: Any, item: Any) -> bool:
        for each in held:  # noqa: SIM110 - Numba has no `any`
            if each == item:
                return True
        return False

    return contains


@overload(operator.getitem, strict=False)
def _getitem(held: Any, index: Any) -> Any:
    if not _is_list(held):
        return None
    if isinstance(index, types.SliceType):
        return lambda held, index: [_item(held, each) for each in range(*index.indices(_count(held)))]
    if not isinstance(index, types.Integer):
        return None

    def getitem(held: Any, index: Any) -> Any:
        position = index + _count(held) if index < 0 else index
        if position < 0 or position >= _count(held):
            raise IndexError("list index out of range")
        return _item(held, position)

    return getitem


@overload(operator.setitem, strict=False)
def _setitem(held: Any, index: Any, item: Any) -> Any:
    if not (_is_list(held) and isinstance(index, types.Integer)):
        return None
    _check(held, item)

    def setitem(held: Any, index: Any, item: Any) -> None:
        position = index + _count(held) if index < 0 else index
        if position < 0 or position >= _count(held):
            raise IndexError("list assignment index out of range")
        _put(held, position, item)

    return setitem


@overload(operator.delitem, strict=False)
def _delitem(held: Any, index: Any) -> Any:
    if not (_is_list(held) and isinstance(index, types.Integer)):
        return None

    def delitem(held: Any, index: Any) -> None:
        position = index + _count(held) if index < 0 else index
        if position < 0 or position >= _count(held):
            raise IndexError("list assignment index out of range")
        _remove(held, position)

    return delitem


@overload_method(BoundedListType, "append", strict=False)
def _append(held: Any, item: Any) -> Any:
    _check(held, item)
    return lambda held, item: _insert(held, _count(held), item)


@overload_method(BoundedListType, "insert", strict=False)
def _insert_method(held: Any, index: Any, item: Any) -> Any:  # noqa: ARG001 - Numba compares the names
    _check(held, item)

    def insert(held: Any, index: Any, item: Any) -> None:
        count = _count(held)
        position = max(0, index + count) if index < 0 else min(index, count)
        _insert(held, position, item)

    return insert


@overload_method(BoundedListType, "extend", strict=False)
def _extend(held: Any, items: Any) -> Any:
    if not isinstance(items, types.IterableType):
        return None
    _check(held, items.iterator_type.yield_type)

    def extend(held: Any, items: Any) -> None:
        for each in items:
            _insert(held, _count(held), each)

    def extend_by_list(held: Any, items: Any) -> None:
        """For a bounded list, which may be the same one."""
        for index in range(_count(items)):
            _insert(held, _count(held), _item(items, index))

    return extend_by_list if _is_list(items) else extend


@overload_method(BoundedListType, "pop", strict=False)
def _pop(held: Any, index: Any = -1) -> Any:  # noqa: ARG001 - as above
    def pop(held: Any, index: Any = -1) -> Any:
        count = _count(held)
        if count == 0:
            raise IndexError("pop from empty list")
        position = index + count if index < 0 else index
        if position < 0 or position >= count:
            raise IndexError("pop index out of range")
        item = _item(held, position)
        _remove(held, position)
        return item

    return pop


@overload_method(BoundedListType, "clear", strict=False)
def _clear(held: Any) -> Any:  # noqa: ARG001 - as above
    def clear(held: Any) -> None:
        _erase(held, 0, _count(held))
        _set_count(held, 0)

    return clear
