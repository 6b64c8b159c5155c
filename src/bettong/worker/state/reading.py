"""Reads what `codec` has written, and trusts none of it: anyone who can write to the store may have written it.

Objects are made bare and given their fields; no class of the application is called, and no method of one but these:
`__hash__` and `__eq__` of objects in sets and of keys of dicts, and `_missing_` of a Flag with an unknown number.
Memory is bounded by the number of bytes: each value has a byte of its own, which is read before the value is made.
"""

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, Flag
from itertools import chain, islice, repeat
from types import SimpleNamespace
from typing import Any

import msgpack  # type: ignore[import-untyped]

from bettong.errors import StateChangedError
from bettong.worker.state.classes import (
    DATACLASS,
    ENUM,
    NAMED_TUPLE,
    Classes,
    ClassForm,
    form_of,
    is_plain_attribute,
)
from bettong.worker.state.codec import (
    DEPTH_MAX,
    FACTORIES,
    MAPPING_TYPES,
    MAPPINGS,
    MARK,
    NATIVE,
    OBJECTS,
    PLAIN,
    SEQUENCE_TYPES,
    SEQUENCES,
    SIMPLE,
    UNION,
    VERSION,
)
from bettong.worker.state.parts import MAKERS
from bettong.worker.state.pickles import MARK as SIGNED

_REMEDY = "delete the state with `bettong state reset`, so that it is folded from the log again"
# The first byte of every pickle that was ever written as a state.
_PICKLED = b"\x80"


class OldObject(SimpleNamespace):
    """An object of a class that is gone or has changed: its fields, as attributes. An Enum's member has a `name`."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(vars(self).items()))


def decode(data: bytes, classes: Classes, *, old: bool = False) -> tuple[list[Any], list[Any]]:
    """Reads keys and states. `old`: objects whose class is gone or has changed are `OldObject`s.

    Raises StateChangedError for a form of another version of Bettong, and where classes have changed; for bytes
    that are damaged, TypeError, ValueError, OverflowError, LookupError or msgpack's errors.
    """
    if data[:1] == _PICKLED:
        raise StateChangedError(
            f"it is a pickle, as older versions of Bettong wrote; they are not read: {_REMEDY}"
        )
    if data[: len(SIGNED)] == SIGNED:
        raise StateChangedError(
            f"it is a signed pickle: give its stateful(...) state_codec=bettong.Pickle as before, or {_REMEDY}"
        )
    if data[: len(MARK)] != MARK:
        raise ValueError("not the form of a saved state")
    version, body = data[len(MARK)], memoryview(data)[len(MARK) + 1 :]
    if version != VERSION:
        raise StateChangedError(
            f"it has form {version}, and this version of Bettong reads form {VERSION}: run the one that saved it, or"
            f" {_REMEDY}"
        )
    table, keys, states = _unpacked(body)
    reader = _Reader([_entry(*each, classes=classes, old=old) for each in table])
    return reader.column(keys, DEPTH_MAX), reader.column(states, DEPTH_MAX)


def _unpacked(body: memoryview) -> Any:
    # First without making anything: an array of a damaged length would be made before its end is missed.
    unpacker = msgpack.Unpacker(max_buffer_size=len(body) or 1)
    unpacker.feed(body)
    unpacker.skip()
    if unpacker.tell() != len(body):
        raise ValueError("more bytes than states")
    return msgpack.unpackb(body, strict_map_key=False)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A class of the table. `make`: makes a list of its objects from a list of values for each of `names`."""

    names: tuple[str, ...]
    make: Callable[[list[list[Any]]], list[Any]]


def _entry(
    kind: int,
    reference: str,
    declared: list[str],
    names: list[str] | None = None,
    *,
    classes: Classes,
    old: bool,
) -> _Entry:
    if type(reference) is not str or not all(type(each) is str for each in declared):
        raise TypeError("a class has no name, or fields without one")
    held = tuple(declared if names is None else names)
    found = classes.find(reference)
    form = form_of(found) if found is not None else None
    same = form is not None and form == ClassForm(kind, reference, tuple(declared))
    if found is not None and same:
        if kind == ENUM:
            return _Entry(("name",), lambda columns: [_member(found, each, old=old) for each in columns[0]])
        if kind == NAMED_TUPLE:
            return _Entry(
                held,
                lambda columns: list(map(tuple.__new__, repeat(found), _rows(columns, fields=len(held)))),
            )
        if not all(type(name) is str and is_plain_attribute(found, name) for name in held):
            raise ValueError(f"{held} are no attributes of {reference}")
        return _Entry(held, lambda columns: _objects(found, held, columns))
    if old and kind in (DATACLASS, NAMED_TUPLE, ENUM):
        known = ("name",) if kind == ENUM else held
        return _Entry(
            known,
            lambda columns: [
                OldObject(**dict(zip(known, row, strict=True))) for row in _rows(columns, fields=len(known))
            ],
        )
    has = (
        "is not among the application's classes"
        if form is None
        else f"has {', '.join(form.names) or 'no fields'}"
    )
    raise StateChangedError(
        f"it holds objects of {reference!r:.200} with {', '.join(map(str, declared))[:200] or 'no fields'}, which now"
        f" {has}: raise version= and give its stateful(...) a migrate= function, or {_REMEDY}"
    )


class _Reader:
    """Columns of values, from what msgpack returns for them."""

    def __init__(self, table: list[_Entry]) -> None:
        self._table = table

    def column(self, packed: Any, depth: int) -> list[Any]:
        """Reads the values of a column."""
        if not depth:
            raise ValueError("columns lie too deep")
        code, *rest = packed
        if code == PLAIN:
            (values,) = rest
            if type(values) is not list or not set(map(type, values)) <= SIMPLE:
                raise ValueError("a plain column holds what is not plain")
            return values
        if code == NATIVE:
            (values,) = rest
            return _native(values)
        if code == UNION:
            which, columns = rest
            return _union_values(which, [self.column(each, depth - 1) for each in columns])
        if code == OBJECTS:
            index, *columns = rest
            return self._objects(_checked_index(index), [self.column(each, depth - 1) for each in columns])
        if code == SEQUENCES:
            return self._sequences(*rest, depth=depth - 1)
        if code == MAPPINGS:
            return self._mappings(*rest, depth=depth - 1)
        parts = [self.column(each, depth - 1) for each in rest]
        return [MAKERS[code](*row) for row in _rows(parts)]

    def _objects(self, index: int, columns: list[list[Any]]) -> list[Any]:
        entry = self._table[index]
        if len(columns) != max(len(entry.names), 1):
            raise ValueError(f"{len(columns)} columns for {len(entry.names)} fields")
        return entry.make(columns)

    def _sequences(
        self, kind: int, lengths: list[int], flat: Any, bounds: Any = None, *, depth: int
    ) -> list[Any]:
        make, values = SEQUENCE_TYPES[_checked_index(kind)], self.column(flat, depth)
        _check_lengths(lengths, values)
        held = iter(values)
        if make is deque:
            return [deque(islice(held, n), bound) for n, bound in zip(lengths, bounds, strict=True)]
        return [make(islice(held, n)) for n in lengths]

    def _mappings(
        self, kind: int, lengths: list[int], keys: Any, values: Any, names: Any = None, *, depth: int
    ) -> list[Any]:
        make = MAPPING_TYPES[_checked_index(kind)]
        columns = self.column(keys, depth), self.column(values, depth)
        _check_lengths(lengths, columns[0])
        pairs = zip(*columns, strict=True)
        made: Iterator[dict[Any, Any]] = (dict(islice(pairs, n)) for n in lengths)
        if make is dict:
            found = list(made)
        elif make is defaultdict:
            found = [
                defaultdict(FACTORIES[name] if name is not None else None, each)
                for name, each in zip(names, made, strict=True)
            ]
        elif make is OrderedDict:
            found = list(map(OrderedDict, made))
        else:
            found = list(map(Counter, made))
        # There are as many values as keys: `strict` has checked it.
        if next(pairs, None) is not None:
            raise ValueError("more keys than mappings hold")
        return found


def _checked_index(index: Any) -> int:
    # Python counts a negative index from the end.
    if type(index) is not int or index < 0:
        raise ValueError(f"{index!r:.20} is no index in a table")
    return index


def _native(values: Any) -> list[Any]:
    kinds = set(map(type, values))
    if type(values) is not list or kinds not in ({list}, {dict}):
        raise ValueError("neither lists nor dicts")
    held = chain.from_iterable(values)
    if kinds == {dict}:
        held = chain(held, chain.from_iterable(map(dict.values, values)))
    if not set(map(type, held)) <= SIMPLE:
        raise ValueError("a plain list or dict holds what is not plain")
    return values


def _check_lengths(lengths: list[int], values: list[Any]) -> None:
    if not set(map(type, lengths)) <= {int} or min(lengths, default=0) < 0 or sum(lengths) != len(values):
        raise ValueError("lengths do not add up")


def _union_values(which: list[int], columns: list[list[Any]]) -> list[Any]:
    if Counter(which) != {index: len(each) for index, each in enumerate(columns) if each}:
        raise ValueError("a union's columns do not add up")
    held = list(map(iter, columns))
    return [next(held[index]) for index in which]


def _rows(columns: list[list[Any]], *, fields: int = 1) -> Iterable[tuple[Any, ...]]:
    """The values of each object. Without fields, the length of one column says how many objects there are."""
    return zip(*columns, strict=True) if fields else [()] * len(columns[0])


def _objects(kind: type[Any], names: tuple[str, ...], columns: list[list[Any]]) -> list[Any]:
    # All in C: for a million objects these loops matter.
    objects: list[Any] = list(map(object.__new__, repeat(kind, len(columns[0]))))
    for name, values in zip(names, columns, strict=False):
        if len(values) != len(objects):
            raise ValueError("fields of several lengths")
        deque(map(object.__setattr__, objects, repeat(name), values), maxlen=0)
    return objects


def _member(kind: Any, name: Any, *, old: bool) -> Any:
    if type(name) is str and name in kind.__members__:
        found: Enum = kind.__members__[name]
        return found
    if type(name) is int and issubclass(kind, Flag):
        return kind(name)
    if old:
        return OldObject(name=name)
    raise StateChangedError(
        f"it holds {name!r:.60} of {kind.__qualname__}, which it has no longer: raise version= and give its"
        f" stateful(...) a migrate= function, or {_REMEDY}"
    )
