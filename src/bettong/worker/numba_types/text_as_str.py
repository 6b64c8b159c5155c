"""The operations of str on text, by Numba's own str, on a str made from the text."""

import operator
from typing import Any, ClassVar

from numba.core import errors, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, overload, overload_method

from bettong.worker.libraries import of_library
from bettong.worker.numba_types.callables import is_compiling_kernel
from bettong.worker.numba_types.texts import TextType, characters, decoded, is_one_of, text_of

_STR = types.UnicodeType | types.StringLiteral


def _register_operation(operation: Any) -> None:
    """Registers an operation of two texts, or of text and a str."""

    @overload(operation, strict=False)
    def applied(a: Any, b: Any) -> Any:
        if isinstance(a, TextType) and isinstance(b, TextType):
            return lambda a, b: operation(decoded(a), decoded(b))
        if isinstance(a, TextType) and isinstance(b, _STR):
            return lambda a, b: operation(decoded(a), b)
        if isinstance(b, TextType) and isinstance(a, _STR):
            return lambda a, b: operation(a, decoded(b))
        return None


for _operation in (operator.lt, operator.le, operator.gt, operator.ge, operator.add, operator.contains):
    _register_operation(_operation)


def _register_method(name: str) -> None:
    @overload_method(TextType, name, strict=False)
    def applied(text: Any, *arguments: Any) -> Any:  # noqa: ARG001 - Numba compares the names of parameters
        return lambda text, *arguments: getattr(decoded(text), name)(*arguments)


for _name in (name for name in dir(str) if not name.startswith("_")):
    _register_method(_name)


@overload_method(TextType, "__hash__", strict=False)
def _hash(text: Any) -> Any:  # noqa: ARG001 - Numba compares the names of parameters
    return lambda text: hash(decoded(text))


# Numba prefers an overload for "cpu" to its own ones for every target.
@overload(str, strict=False, target="cpu")
def _str(text: Any) -> Any:
    return decoded if isinstance(text, TextType) else None


@infer_global(str)
@infer_global(repr)
class _RefusedConversion(AbstractTemplate):
    """Conversions that `_refuse` refuses: for other types Numba's `str` and `repr` return `<object type:float64>`."""

    key: Any  # `str` or `repr`: set by `infer_global`
    metadata: ClassVar = {"target": "cpu"}
    convertible: ClassVar = {
        str: types.Integer | types.Boolean | types.UnicodeType | types.UnicodeCharSeq | TextType,
        repr: types.Integer | types.Boolean,
    }

    def generic(self, args: Any, _kws: Any) -> Any:
        if (
            not is_compiling_kernel()
            or not args
            or isinstance(types.unliteral(args[0]), self.convertible[self.key])
        ):
            return None
        # Numba's own library converts anything; only the user's code is refused.
        is_users = not of_library(self.context.callstack[0].func_id.func.__module__)
        return signature(types.unicode_type, *args) if is_users else None

    def get_impl_key(self, _signature: Any) -> Any:
        return _RefusedConversion


@lower_builtin(_RefusedConversion, types.Any)
def _refuse(_context: Any, _builder: Any, call: Any, _arguments: Any) -> Any:
    """Raises at lowering, when Numba knows the line, rather than during type inference."""
    raise errors.NumbaTypeError(f"Numba makes no text of {call.args[0]}")


@overload(len, strict=False)
def _len(text: Any) -> Any:
    return characters if isinstance(text, TextType) else None


@overload(bool, strict=False)
def _bool(text: Any) -> Any:
    return (lambda text: characters(text) > 0) if isinstance(text, TextType) else None


@overload(operator.not_, strict=False)
def _not(text: Any) -> Any:
    return (lambda text: characters(text) == 0) if isinstance(text, TextType) else None


@overload(operator.getitem, strict=False)
def _item(text: Any, _index: Any) -> Any:
    return (lambda text, index: decoded(text)[index]) if isinstance(text, TextType) else None


def _is_keyed_by_str(container: Any) -> bool:
    held = container.key_type if isinstance(container, types.DictType) else getattr(container, "dtype", None)
    return isinstance(container, types.DictType | types.Set) and isinstance(held, types.UnicodeType)


@overload(operator.contains, strict=False, target="cpu")
def _contains(container: Any, text: Any) -> Any:
    if not isinstance(text, TextType):
        return None
    if isinstance(container, types.BaseTuple) and all(map(text_of, container)):  # type: ignore[call-overload]
        return lambda container, text: is_one_of(text, container)
    return (lambda container, text: decoded(text) in container) if _is_keyed_by_str(container) else None


@overload(operator.getitem, strict=False, target="cpu")
def _getitem(container: Any, text: Any) -> Any:
    found = isinstance(text, TextType) and _is_keyed_by_str(container)
    return (lambda container, text: container[decoded(text)]) if found else None
