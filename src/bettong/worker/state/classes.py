"""Which classes states may consist of: the application's own, found by name, and never imported or called.

A state's bytes name the classes of its objects as `module:qualname`. A writer of the store chooses those names,
so a name finds a class only if that is a dataclass, a NamedTuple or an Enum, and the application has it: the state's
class, what type hints reach from there and from the functions, and classes of the modules that the application's own
modules define or import. Everything is looked up in what is loaded already, without `__getattr__` of a module.
"""

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, EnumMeta
from functools import cached_property, partial
from types import FunctionType, MemberDescriptorType, ModuleType
from typing import Any, get_args, get_origin, get_type_hints

from bettong.application.nodes.stateful import Stateful
from bettong.loaded_modules import loaded_module
from bettong.worker.libraries import of_library

# Methods by which a class customizes pickling; only pickle would call them.
_PICKLING_METHODS = (
    "__reduce__",
    "__reduce_ex__",
    "__getstate__",
    "__setstate__",
    "__getnewargs__",
    "__getnewargs_ex__",
)

# Py_TPFLAGS_HEAPTYPE: made by a class statement.
_OF_PYTHON = 1 << 9

DATACLASS, NAMED_TUPLE, ENUM = range(3)


@dataclass(frozen=True, slots=True)
class ClassForm:
    """A class whose objects are their fields and nothing else. `names`: the fields; none of an Enum."""

    kind: int
    reference: str
    names: tuple[str, ...] = ()


def form_of(kind: type[Any]) -> ClassForm | None:
    """The form of a class; None when its objects are more than fields, or may be."""
    reference = f"{kind.__module__}:{kind.__qualname__}"
    if isinstance(kind, EnumMeta):
        return ClassForm(ENUM, reference)
    if issubclass(kind, tuple):
        names = getattr(kind, "_fields", None)
        # No further attributes: a class that derives from a NamedTuple has a `__dict__`, unless it has `__slots__`.
        plain = isinstance(names, tuple) and not kind.__dictoffset__
        return ClassForm(NAMED_TUPLE, reference, names) if plain and names is not None else None
    if not dataclasses.is_dataclass(kind) or any(_defines(kind, method) for method in _PICKLING_METHODS):
        return None
    names = tuple(field.name for field in dataclasses.fields(kind))
    if not _is_pure_python(kind) or not all(is_plain_attribute(kind, name) for name in names):
        return None
    return ClassForm(DATACLASS, reference, names)


def is_plain_attribute(kind: type[Any], name: str) -> bool:
    """Whether setting it runs no code of the class: it is a slot, or a value in the object itself."""
    return is_slot(kind, name) or not hasattr(type(inspect.getattr_static(kind, name, None)), "__set__")


def is_slot(kind: type[Any], name: str) -> bool:
    """Whether a class keeps an attribute in a slot."""
    return isinstance(inspect.getattr_static(kind, name, None), MemberDescriptorType)


class Classes:
    """The classes of one stateful computation's states."""

    def __init__(self, node: Stateful) -> None:
        self._node = node
        self._forms: dict[type[Any], ClassForm | None] = {}
        self._found: dict[str, type[Any] | None] = {}

    def form(self, kind: type[Any]) -> ClassForm | None:
        """The form of a class that `find` would find; None of any other."""
        if kind not in self._forms:
            form = form_of(kind)
            self._forms[kind] = form if form is not None and self.find(form.reference) is kind else None
        return self._forms[kind]

    def find(self, reference: str) -> type[Any] | None:
        """The application's class of that name, if it is loaded and has a form."""
        if reference not in self._found:
            found = self._reached.get(reference) or self._of_modules(reference)
            if found is None:
                # Names come from a store, so misses are not cached.
                return None
            self._found[reference] = found
        return self._found[reference]

    def _of_modules(self, reference: str) -> type[Any] | None:
        module, _, path = reference.partition(":")
        if module not in self._modules:
            return None
        found: Any = loaded_module(module)
        for name in path.split("."):
            if not isinstance(found, type | ModuleType):
                return None
            found = vars(found).get(name)
        if not isinstance(found, type):
            return None
        form = form_of(found)
        return found if form is not None and form.reference == reference else None

    @cached_property
    def _reached(self) -> dict[str, type[Any]]:
        """What type hints reach, by reference."""
        node, found = self._node, dict[str, type[Any]]()
        todo: list[Any] = [node.state, *functions_of(node), node.schema.message]
        todo += [schema.message for schema in node.handlers]
        seen = set[int]()
        while todo:
            each = _unwrapped(todo.pop())
            if each is None or id(each) in seen:
                continue
            seen.add(id(each))
            todo.extend((get_origin(each), *get_args(each)))
            if not isinstance(each, type | FunctionType):
                continue
            if isinstance(each, type):
                form = form_of(each)
                if form is not None:
                    found.setdefault(form.reference, each)
            if isinstance(each, FunctionType) or not of_library(each.__module__):
                todo.extend(_hints(each))
        return found

    @cached_property
    def _modules(self) -> frozenset[str]:
        """The modules that define the computation's functions, those they import, and so on through their own."""
        node = self._node
        functions = [node.state, *functions_of(node), *([node.migrate] if node.migrate else [])]
        todo = [str(getattr(_unwrapped(each), "__module__", "")) for each in functions]
        found = set[str]()
        while todo:
            name = todo.pop()
            module = loaded_module(name)
            if name in found or module is None:
                continue
            found.add(name)
            if not of_library(name):
                todo.extend(_imported(module))
        return frozenset(found)


def functions_of(node: Stateful) -> list[Callable[..., Any]]:
    """The functions that change states: of messages and of timers."""
    return [*node.handlers.values(), *(timer.function for timer in node.timers)]


def _imported(module: ModuleType) -> Iterator[str]:
    for value in list(vars(module).values()):
        if isinstance(value, ModuleType):
            yield value.__name__
        elif isinstance(value, type | FunctionType):
            yield str(value.__module__)
        elif isinstance(value, Enum):
            yield type(value).__module__


def _unwrapped(function: Any) -> Any:
    """The function inside partials and dispatchers of Numba."""
    while True:
        if isinstance(function, partial):
            function = function.func
        elif hasattr(function, "py_func"):
            function = function.py_func
        else:
            return function


def _hints(of: type[Any] | Callable[..., Any]) -> Iterable[Any]:
    try:
        return list(get_type_hints(of).values())
    except Exception:  # noqa: BLE001 - a hint may be any expression; those that cannot be read reach nothing
        return []


def _defines(kind: type[Any], method: str) -> bool:
    """Whether the class defines it; the decorator gives two to frozen dataclasses with slots."""
    found = getattr(kind, method, None)
    return found is not getattr(object, method, None) and getattr(found, "__module__", "") != "dataclasses"


def _is_pure_python(kind: type[Any]) -> bool:
    """Whether `object.__new__` makes all of an object: its class derives from none that is written in C."""
    return [each for each in kind.__mro__ if not each.__flags__ & _OF_PYTHON] == [object]
