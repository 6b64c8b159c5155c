"""States of plain Python as bytes, column by column: data and nothing else, so reading them runs no code.

    "BTS" version | msgpack [classes, keys, states]

`keys` and `states` are columns of as many values. A column is an array that begins with the code of its form:

    PLAIN     values                      None, bool, int of 64 bits, float, str, bytes
    UNION     which, columns              values of several types: for each, which of the columns holds it
    OBJECTS   class, column of each field
    SEQUENCES type, lengths, column       lists, tuples, sets ...: all their items, one after the other
    MAPPINGS  type, lengths, keys, values
    NATIVE    values                      lists and dicts of plain values alone
    16 ...    column of each part         see `parts`

So a million objects name their class once, and their fields are written by C loops over lists of one type; writing one
object after the other would take ten times as long. Types are kept exactly. An object that is referenced twice is read
as two objects; one that contains itself cannot be written. Equal values have equal bytes (sets are sorted).
"""

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

import msgpack  # type: ignore[import-untyped]

from bettong.worker.state.classes import DATACLASS, ENUM, Classes, ClassForm, is_slot
from bettong.worker.state.parts import LargeInt, OddText, parts_of

MARK = b"BTS"
VERSION = 1
PLAIN, UNION, OBJECTS, SEQUENCES, MAPPINGS, NATIVE = range(6)
SIMPLE: frozenset[type[Any]] = frozenset({type(None), bool, int, float, str, bytes})
SEQUENCE_TYPES: tuple[type[Any], ...] = (list, tuple, set, frozenset, deque)
MAPPING_TYPES: tuple[type[Any], ...] = (dict, OrderedDict, Counter, defaultdict)
# What a defaultdict may call, by the name in the store.
FACTORIES: Mapping[str, Callable[[], Any]] = {
    each.__name__: each for each in (int, float, str, bytes, bool, list, dict, set, tuple, deque, Counter)
}

# Deeper than any state that people could read; Python's own limit is about ten times as much.
DEPTH_MAX = 100
# Values that one increment may hold, counted each time where they are shared: each takes a byte at least, and Redis
# holds 512 MiB of an increment at most.
_VALUES_MAX = 2**29
# From this depth on it is checked whether something contains itself: then it is always that deep.
_CYCLE_CHECK_DEPTH = 2
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1


class UnfitError(Exception):
    """A value that cannot be written. `path`: the fields that lead to it, outermost first.

    `is_size`: each value could be written, but all together are too many, or too large, for one increment.
    """

    def __init__(self, what: str, *, is_size: bool = False) -> None:
        super().__init__(what)
        self.path: list[str] = []
        self.is_size = is_size

    def __str__(self) -> str:
        where = f"{'.'.join(self.path)} holds " if self.path else ""
        return f"{where}{self.args[0]}"


def encode(keys: Collection[Any], states: Collection[Any], classes: Classes) -> bytes:
    """The bytes of states by their keys. Raises UnfitError."""
    return MARK + bytes([VERSION]) + _packed((list(keys), list(states)), classes)


def _packed(columns: Iterable[list[Any]], classes: Classes) -> bytes:
    for careful in (False, True):
        writer = _Writer(classes, careful=careful)
        body = [writer.column(each, ()) for each in columns]
        try:
            packed: bytes = msgpack.packb([writer.table, *body])
        except (OverflowError, UnicodeEncodeError):
            # msgpack cannot hold some number or text: write again, looking at each, which takes longer.
            continue
        except ValueError as error:
            raise UnfitError(f"more than an increment can take ({error})", is_size=True) from None
        return packed
    raise AssertionError("a careful writer leaves no such values")


class _Writer:
    """Columns of values, and the table of their classes."""

    def __init__(self, classes: Classes, *, careful: bool) -> None:
        self.table: list[list[Any]] = []
        self._classes = classes
        self._careful = careful
        self._indexes: dict[tuple[type[Any], tuple[str, ...]], int] = {}
        self._left = _VALUES_MAX

    def column(self, values: list[Any], above: tuple[list[Any], ...]) -> list[Any]:
        """The column of values; `above` are the lists of objects and containers that hold them."""
        type_of = _careful_type if self._careful else type
        distinct = set(map(type_of, values))
        if distinct <= SIMPLE:
            return [PLAIN, values]
        if len(distinct) == 1:
            return self._column_of_type(distinct.pop(), values, above)
        tags = {each: each if each not in SIMPLE else None for each in distinct}
        return self._union([tags[type_of(each)] for each in values], values, above)

    def _union(self, tags: list[Any], values: list[Any], above: tuple[list[Any], ...]) -> list[Any]:
        """A column of several types, told apart by tags; the tag of simple ones is None. `above`: see `column`."""
        groups: dict[Any, list[Any]] = {}
        for tag, value in zip(tags, values, strict=True):
            groups.setdefault(tag, []).append(value)
        columns = [
            [PLAIN, group] if tag is None else self._column_of_type(tag, group, above)
            for tag, group in groups.items()
        ]
        if len(columns) == 1:
            return columns[0]
        indexes = {tag: index for index, tag in enumerate(groups)}
        return [UNION, [indexes[tag] for tag in tags], columns]

    def _column_of_type(self, kind: type[Any], values: list[Any], above: tuple[list[Any], ...]) -> list[Any]:
        if len(above) >= DEPTH_MAX:
            raise UnfitError(f"values that lie deeper than {DEPTH_MAX} levels")
        if kind in SEQUENCE_TYPES:
            return self._sequences(kind, values, above)
        if kind in MAPPING_TYPES:
            return self._mappings(kind, values, above)
        if (form := self._classes.form(kind)) is not None:
            return self._objects(kind, form, values, above)
        parts = parts_of(kind)
        if parts is None:
            raise UnfitError(
                f"a {kind.__module__}.{kind.__qualname__}, which is neither plain data nor a dataclass, NamedTuple or"
                " Enum of the application's modules that is its fields and nothing else"
            )
        try:
            taken = list(map(parts.take, values))
        except TypeError as error:
            raise UnfitError(str(error)) from None
        columns = [self.column(list(each), (*above, values)) for each in zip(*taken, strict=True)]
        return [parts.code, *columns]

    def _sequences(self, kind: type[Any], values: list[Any], above: tuple[list[Any], ...]) -> list[Any]:
        lengths = self._lengths(values, above)
        if kind is list and not self._careful and _is_simple(values):
            return [NATIVE, values]
        held = values if kind is not set and kind is not frozenset else map(self._sorted, values)
        flat = self.column(list(chain.from_iterable(held)), (*above, values))
        more = [[each.maxlen for each in values]] if kind is deque else []
        return [SEQUENCES, SEQUENCE_TYPES.index(kind), lengths, flat, *more]

    def _mappings(self, kind: type[Any], values: list[Any], above: tuple[list[Any], ...]) -> list[Any]:
        lengths = self._lengths(values, above)
        if kind is dict and not self._careful and _is_simple(values) and _is_simple(map(dict.values, values)):
            return [NATIVE, values]
        keys = self.column(list(chain.from_iterable(values)), (*above, values))
        held = self.column(list(chain.from_iterable(each.values() for each in values)), (*above, values))
        more = [list(map(_factory, values))] if kind is defaultdict else []
        return [MAPPINGS, MAPPING_TYPES.index(kind), lengths, keys, held, *more]

    def _lengths(self, values: list[Any], above: tuple[list[Any], ...]) -> list[int]:
        lengths = list(map(len, values))
        self._left -= sum(lengths)
        if self._left < 0:
            raise UnfitError(f"more than {_VALUES_MAX} values", is_size=True)
        if len(above) >= _CYCLE_CHECK_DEPTH:
            higher = set(map(id, chain.from_iterable(above)))
            if not higher.isdisjoint(map(id, values)) and any(map(_holds_itself, values)):
                raise UnfitError("an object that holds itself")
        return lengths

    def _sorted(self, held: set[Any] | frozenset[Any]) -> list[Any]:
        kinds = set(map(type, held))
        if len(held) <= 1:
            return list(held)
        if len(kinds) == 1 and kinds <= {int, str, bytes}:
            return sorted(held)
        return sorted(held, key=lambda each: _packed([[each]], self._classes))

    def _objects(
        self, kind: type[Any], form: ClassForm, values: list[Any], above: tuple[list[Any], ...]
    ) -> list[Any]:
        if form.kind == ENUM:
            names: list[Any] = [each.name if each.name in kind.__members__ else each.value for each in values]
            return [OBJECTS, self._index(kind, form, ()), self.column(names, (*above, values))]
        if form.kind != DATACLASS:
            columns = [list(map(itemgetter(index), values)) for index in range(len(form.names))]
            return self._fields(kind, form, form.names, values, columns, above)
        if not _have_more_attributes(form.names, values):
            try:
                columns = [list(map(attrgetter(name), values)) for name in form.names]
            except AttributeError:
                pass  # a field that was never set, or is deleted
            else:
                return self._fields(kind, form, form.names, values, columns, above)
        return self._odd_objects(kind, form, values, above)

    def _odd_objects(
        self, kind: type[Any], form: ClassForm, values: list[Any], above: tuple[list[Any], ...]
    ) -> list[Any]:
        """Objects that lack fields, or have attributes besides them."""
        tags = [_names_of(each, form) for each in values]
        groups: dict[tuple[str, ...], list[Any]] = {}
        for tag, value in zip(tags, values, strict=True):
            groups.setdefault(tag, []).append(value)
        columns = [
            self._fields(
                kind, form, names, group, [[getattr(each, name) for each in group] for name in names], above
            )
            for names, group in groups.items()
        ]
        indexes = {tag: index for index, tag in enumerate(groups)}
        return [UNION, [indexes[tag] for tag in tags], columns]

    def _fields(
        self,
        kind: type[Any],
        form: ClassForm,
        names: tuple[str, ...],
        values: list[Any],
        columns: list[list[Any]],
        above: tuple[list[Any], ...],
    ) -> list[Any]:
        made = []
        for name, each in zip(names, columns, strict=True):
            try:
                made.append(self.column(each, (*above, values)))
            except UnfitError as error:
                error.path.insert(0, name if error.path else f"{kind.__qualname__}.{name}")
                raise
        # Each object takes a byte at least, so that few bytes cannot stand for many objects.
        return [OBJECTS, self._index(kind, form, names), *(made or [[PLAIN, [None] * len(values)]])]

    def _index(self, kind: type[Any], form: ClassForm, names: tuple[str, ...]) -> int:
        index = self._indexes.setdefault((kind, names), len(self.table))
        if index == len(self.table):
            # Attributes besides the declared fields are listed only where there are any.
            self.table.append(
                [form.kind, form.reference, form.names, *([] if names == form.names else [names])]
            )
        return index


def _is_simple(held: Iterable[Iterable[Any]]) -> bool:
    return set(map(type, chain.from_iterable(held))) <= SIMPLE


def _careful_type(value: Any) -> Any:
    if type(value) is int and not _INT_MIN <= value <= _INT_MAX:
        return LargeInt
    if type(value) is str:
        try:
            value.encode()
        except UnicodeEncodeError:
            return OddText
    return type(value)


def _factory(each: defaultdict[Any, Any]) -> str | None:
    factory = each.default_factory
    if factory is None:
        return None
    for name, known in FACTORIES.items():
        if factory is known:
            return name
    raise UnfitError(
        f"a defaultdict that calls {getattr(factory, '__qualname__', factory)!s}: it may be {', '.join(FACTORIES)}"
    )


def _have_more_attributes(names: tuple[str, ...], values: list[Any]) -> bool:
    """Whether some object has attributes besides its fields."""
    if not hasattr(values[0], "__dict__"):
        return False
    return set(map(len, map(attrgetter("__dict__"), values))) != {len(names)}


def _names_of(value: Any, form: ClassForm) -> tuple[str, ...]:
    """The names of an object's own attributes, without defaults of its class."""
    own = vars(value) if hasattr(value, "__dict__") else {}
    slots = (name for name in form.names if is_slot(type(value), name) and hasattr(value, name))
    return (*own, *slots)


def _holds_itself(value: Any) -> bool:
    """Whether a value can be reached from itself."""
    path: set[int] = set()
    done: set[int] = set()
    todo: list[tuple[Any, bool]] = [(value, True)]
    while todo:
        each, enters = todo.pop()
        if not enters:
            path.discard(id(each))
            done.add(id(each))
        elif id(each) in path:
            return True
        elif id(each) not in done:
            path.add(id(each))
            todo.append((each, False))
            todo.extend((held, True) for held in _held(each))
    return False


def _held(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return chain(value, value.values())
    if isinstance(value, SEQUENCE_TYPES):
        return list(value)
    names = getattr(type(value), "__dataclass_fields__", ())
    return [*getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in names)]
