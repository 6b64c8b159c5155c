"""Hypothesis draws graphs, messages for them, and how those are cut into frames and spread over partitions."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, get_args

from hypothesis import assume
from hypothesis import strategies as st

from bettong import DeadLetter
from bettong.application.execution_mode import ExecutionMode
from bettong.application.joins.kinds import InWindow, Latest
from bettong.application.joins.referenced import ReferenceHow
from bettong.application.key import Key
from bettong.application.lifetime import Lifetime
from bettong.application.on_error import DEAD_LETTER, SKIP, STOP, OnError
from bettong.application.timers import Clock
from bettong.application.windows.kinds import Counts, Ranges, Sessions
from tests.simulation.function_table import FUNCTIONS, Function
from tests.simulation.functions import by_both, by_key, by_slot, coded
from tests.simulation.graphs import INPUTS, SIDES, Graph, Node, waits_for_itself
from tests.simulation.local_graphs import LOCAL
from tests.simulation.messages import Item, Note, Part, Span, random_message
from tests.simulation.open_windows import WindowOptions
from tests.simulation.random_options import join_kind, lifetime, ranges_and_sessions, window_options
from tests.simulation.reference_rows import Joining, ons_of, random_rows

_PAIR = ("key", "slot")
# Keys by which the messages of a key stay in one partition from source to sink, and keys that mix them anew.
_FINER: tuple[Key, ...] = ("slot", by_slot, _PAIR, by_both)
_COARSER: tuple[Key, ...] = ("key", by_key, ())
_TEXT_KEYS: tuple[Key, ...] = ("key", by_key)
_COMPUTATIONS = ("map", "filter", "flat_map", "stateful", "window", "window")
# From one message to the next event time goes on by so much.
_STEPS_NS = (0, 1, 3, 10, 40)


@dataclass(frozen=True)
class Case:
    """A graph, and how it is run.

    `messages`: of which source each is. `boundaries`: whether a frame ends behind the message. `compiled`: whether
    what is marked so is compiled. `seed` decides which partition is folded next, and what comes twice or too early.
    `versions`: of reference tables, by join: their rows, which come at any time.
    """

    graph: Graph
    messages: tuple[tuple[str, Any], ...]
    boundaries: tuple[bool, ...]
    partitions: int = 1
    compiled: bool = True
    seed: int = 0
    versions: tuple[tuple[str, list[Any]], ...] = ()

    def __str__(self) -> str:
        frames = [f"{source} {message}{' |' * cut}" for (source, message), cut in self._rows()]
        reported = f"{self.partitions} partitions, compiled={self.compiled}, seed={self.seed}"
        versions = [f"{join}: {rows}" for join, rows in self.versions]
        return "\n".join([str(self.graph), *frames, *versions, reported])

    def _rows(self) -> list[tuple[tuple[str, Any], bool]]:
        return list(zip(self.messages, self.boundaries, strict=True))


# A number decides a step of a graph, or a message, so that hypothesis draws little, and leaves out what is not needed.
_CHOICES = st.integers(0, 2**32)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any case: one or two sources, up to ten streams behind them, each of which leads to a sink."""
    growing = _Growing(draw(_CHOICES))
    growing.add_sources()
    for choice in draw(st.lists(_CHOICES, min_size=2, max_size=10)):
        growing.random.seed(choice)
        growing.add_stream()
    growing.add_sinks()
    assume(not waits_for_itself(growing.graph))
    messages: list[tuple[str, Any]] = []
    boundaries: list[bool] = []
    now_ns = 0
    for choice in draw(st.lists(_CHOICES, min_size=3, max_size=24)):
        random = Random(choice)
        source = random.choice(growing.graph.sources)
        now_ns += random.choice(_STEPS_NS)
        older_ns = random.choice([0, 0, random.randrange(60)]) if source.out_of_order_ns else 0
        messages.append((source.name, random_message(source.message, random, max(now_ns - older_ns, 0))))
        boundaries.append(random.random() < 0.3)
    tables = [node for node in growing.graph.nodes if node.joining is not None]
    versions: list[tuple[str, list[Any]]] = []
    for choice in draw(st.lists(_CHOICES, max_size=5)) if tables else ():
        random = Random(choice)
        node = random.choice(tables)
        assert node.joining is not None
        versions.append((node.name, random_rows(node.joining.row, random)))
    return Case(
        growing.graph,
        tuple(messages),
        tuple(boundaries),
        draw(st.integers(1, 3)),
        draw(st.booleans()),
        draw(_CHOICES),
        tuple(versions),
    )


class _Growing:
    """A graph that grows stream by stream. `seed` decides the first steps, `random` all that are taken next."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.nodes: list[Node] = []
        self._mixed: dict[str, set[type[Any]]] = {}  # by stream, the classes of its messages
        self._keys_into: dict[str, set[Key | None]] = {}  # by stream, the keys of what leads to it
        self._keys = self.random.choice([_FINER, _FINER, _FINER + _COARSER])
        self._stops = self.random.random() < 0.25

    @property
    def graph(self) -> Graph:
        return Graph(tuple(self.nodes))

    def add_sources(self) -> None:
        """One source, or two that may share a state."""
        keys: list[Key | None] = ["key", by_key, "slot", _PAIR]
        if len(self._keys) > len(_FINER):
            keys.append(None)
        for number in range(self.random.randint(1, 2)):
            message = self.random.choice([Item, Item, Item, Part, Note])
            key = self.random.choice(keys)
            out_of_order_ns = self.random.choice([None, 0, 1, 25])
            node = Node(f"in{number}", "source", key=key, message=message, out_of_order_ns=out_of_order_ns)
            self._add(node, {message}, {key})

    def add_stream(self) -> None:
        """One more stream behind any of those that are there, if there is one of the drawn kind."""
        kind = self.random.choice(
            [
                *(*_COMPUTATIONS, "stateful", "merge", "merge", "key_by", "branch"),
                *("join", "join", "local", "reference"),
            ]
        )
        if kind == "branch":
            self._add_branches()
        elif kind == "merge":
            self._add_merge()
        elif kind == "key_by":
            self._add_key_by()
        elif kind == "join":
            self._add_join()
        elif kind == "local":
            self._add_local()
        elif kind == "reference":
            self._add_reference()
        else:
            self._add_computation(kind)

    def add_sinks(self) -> None:
        """One for each stream that leads nowhere, and some for others."""
        used = {parent for node in self.nodes for parent in node.parents if node.kind not in SIDES}
        for stream, found in list(self._mixed.items()):
            if stream not in used or self.random.random() < 0.25:
                encoder = self.random.choice([None, coded]) if found == {Item} else None
                name = f"out{len(self.nodes)}"
                self.nodes.append(Node(name, "sink", (stream,), on_error=self._on_error(), encoder=encoder))

    def _add_computation(self, kind: str) -> None:
        choices: dict[ExecutionMode, list[tuple[str, Function]]] = {}
        for stream in self._mixed:
            for function in FUNCTIONS.values():
                if function.kind == kind and self._can_read(stream, function):
                    for mode in function.forms:
                        if kind not in ("stateful", "window") or self._can_keep(stream, mode):
                            choices.setdefault(mode, []).append((stream, function))
        if choices:
            mode = self.random.choice([mode for mode in ExecutionMode if mode in choices])
            stream, function = self.random.choice(choices[mode])
            name = f"{function.name}{len(self.nodes)}"
            windows = window_options(self.random, function, mode) if kind == "window" else None
            ends = lifetime(self.random) if kind == "stateful" else None
            node = Node(
                name, kind, (stream,), function, mode, self._on_error(), windows=windows, lifetime=ends
            )
            self._add(node, {function.returns}, self._keys_into[stream])
            if windows is not None and windows.late == "side":
                late = Node(f"{name}-late", "late", (name,))
                self._add(late, self._mixed[stream], self._keys_into[stream])
            self._add_dead_letters(node)

    def _add_branches(self) -> None:
        """One to three that divide a stream."""
        stream = self.random.choice(list(self._mixed))
        predicates = [
            (function, mode)
            for function in FUNCTIONS.values()
            if function.kind == "filter" and self._can_read(stream, function)
            for mode in function.forms
        ]
        if not predicates:
            return
        first, on_error = "", self._on_error()
        for function, mode in self.random.choices(predicates, k=self.random.randint(1, 3)):
            name = f"{function.name}{len(self.nodes)}"
            first = first or name
            node = Node(name, "branch", (stream,), function, mode, on_error, first=first)
            self._add(node, self._mixed[stream], self._keys_into[stream])
            self._add_dead_letters(node)

    def _add_dead_letters(self, node: Node) -> None:
        """Of some computations, those that have any."""
        if node.on_error == DEAD_LETTER and self.random.random() < 0.3:
            refused = Node(f"{node.name}-dead-letters", "dead_letters", (node.name,))
            self._add(refused, {DeadLetter}, self._keys_into[node.name])

    def _add_join(self) -> None:
        """Of two streams whose messages may meet; one of them may be both."""
        functions = [each for each in FUNCTIONS.values() if each.kind == "join"]
        choices = [
            (left, right, function)
            for function in functions
            for left in self._mixed
            for right in self._mixed
            if self._mixed[left] == set(function.python)
            and self._mixed[right] == {function.right}
            and not {None}.intersection(self._keys_into[left] | self._keys_into[right])
            and not (self._lags(left) or self._lags(right))
            and self._can_meet(left, right)
        ]
        if not choices:
            return
        left, right, function = self.random.choice(choices)
        assert function.right is not None
        name, join = f"{function.name}{len(self.nodes)}", join_kind(self.random, function.right)
        ends = None
        if isinstance(join[0], Latest) and self.random.random() < 0.5:
            ends = Lifetime(self.random.choice([1, 10, 60]), Clock.LOG)
        mode = ExecutionMode.PYTHON
        fixed = all(self._can_keep(each, ExecutionMode.COMPILED) for each in (left, right))
        if fixed:
            mode = self.random.choice([mode, ExecutionMode.COMPILED, ExecutionMode.COMPILED])
        # Their functions take no None on the left.
        if mode is ExecutionMode.COMPILED and join[1] not in ("inner", "left"):
            join = (join[0], "left")
        node = Node(name, "join", (left, right), function, mode, self._on_error(), join=join, lifetime=ends)
        keys = self._keys_into[left] | self._keys_into[right]
        self._add(node, {function.returns}, keys)
        for side, stream in (("left", left), ("right", right)):
            if not isinstance(join[0], Latest) and self.random.random() < 0.3:
                self._add(Node(f"{name}-late-{side}", "late", (name,)), self._mixed[stream], keys)
        self._add_dead_letters(node)

    def _add_reference(self) -> None:
        """A join with a table."""
        choices = [
            (stream, function)
            for stream, found in self._mixed.items()
            for function in FUNCTIONS.values()
            if function.kind == "reference" and set(function.python) == found
        ]
        if not choices:
            return
        stream, function = self.random.choice(choices)
        (message,) = function.python
        assert function.right is not None
        on = self.random.choice(ons_of(function.right, message, self._keys_into[stream]))
        joining = Joining(function.right, on, self.random.choice(get_args(ReferenceHow)))
        name = f"{function.name}{len(self.nodes)}"
        node = Node(name, "reference", (stream,), function, on_error=self._on_error(), joining=joining)
        self._add(node, {function.returns}, self._keys_into[stream])
        self._add_dead_letters(node)

    def _add_merge(self) -> None:
        """Of streams whose messages may meet in a state, none of them twice."""
        first = self.random.choice(list(self._mixed))
        parents = [first]
        for _ in range(self.random.randint(1, 2)):
            taken = {part for parent in parents for part in self.graph.parts(parent)}
            others = [
                stream
                for stream in self._mixed
                if not taken & set(self.graph.parts(stream)) and self._can_meet(first, stream)
            ]
            if others:
                parents.append(self.random.choice(others))
        if len(parents) == 1:
            return
        mixed = set[type[Any]]().union(*(self._mixed[parent] for parent in parents))
        keys = set[Key | None]().union(*(self._keys_into[parent] for parent in parents))
        self._add(Node(f"merged{len(self.nodes)}", "merge", tuple(parents)), mixed, keys)

    def _add_key_by(self) -> None:
        # These have none of the fields that are keys, or not all.
        streams = [
            stream
            for stream, found in self._mixed.items()
            if len(found) == 1 and not found & {DeadLetter, Span}
        ]
        stream = self.random.choice(streams)
        keys = [key for key in self._keys if key is not by_slot or self._mixed[stream] == {Item}]
        key = self.random.choice(keys)
        name = f"keyed{len(self.nodes)}"
        node = Node(name, "key_by", (stream,), key=key, on_error=self._on_error())
        self._add(node, self._mixed[stream], {key})

    def _add_local(self) -> None:
        """Another key, and windows in whose place `local` may be: nothing else is behind that key."""
        choices = [
            (stream, FUNCTIONS[name])
            for stream, found in self._mixed.items()
            for name in LOCAL
            if set(FUNCTIONS[name].python) == found
        ]
        if not choices:
            return
        stream, function = self.random.choice(choices)
        keys = [key for key in self._keys if key is not by_slot or self._mixed[stream] == {Item}]
        keyed = Node(
            f"keyed{len(self.nodes)}",
            "key_by",
            (stream,),
            key=self.random.choice(keys),
            on_error=self._on_error(),
        )
        self.nodes.append(keyed)
        kind = self.random.choice(ranges_and_sessions(self.random)[:2])
        emit_empty = not function.needs_messages and self.random.random() < 0.3
        early_ns = self.random.choice([None, None, 1, 40])
        windows = WindowOptions(kind, "drop", emit_empty, early_ns)
        name = f"{function.name}{len(self.nodes)}"
        node = Node(name, "window", (keyed.name,), function, on_error=self._on_error(), windows=windows)
        self._add(node, {function.returns}, {keyed.key})

    def _add(self, node: Node, found: set[type[Any]], keys: set[Key | None]) -> None:
        self.nodes.append(node)
        self._mixed[node.name] = found
        self._keys_into[node.name] = keys

    def _can_read(self, stream: str, function: Function) -> bool:
        found = self._mixed[stream]
        is_keyed = None not in self._keys_into[stream]
        if function.kind == "window" and self._lags(stream):
            return False
        if function.returns is Span and not self._keys_into[stream] <= {*_TEXT_KEYS}:
            return False
        needs_key, mixes = function.kind in ("stateful", "window"), function.kind == "stateful"
        return found <= set(function.python) and (is_keyed or not needs_key) and (mixes or len(found) == 1)

    def _lags(self, stream: str) -> bool:
        """Whether what fires in its stage may be older than the watermark by then: if it is late in a window behind
        depends on how messages were batched into frames.
        """
        node = self.graph[stream]
        if node.kind in INPUTS:
            return False
        kind = node.windows.kind if node.windows is not None else None
        waits = kind.timeout_ns if isinstance(kind, Counts) else None
        if isinstance(kind, Ranges | Sessions):
            waits = kind.delay_ns
        if node.join is not None and isinstance(node.join[0], InWindow):
            within = node.join[0].windowing.kind
            waits = within.delay_ns if isinstance(within, Ranges | Sessions) else None
        has_timers = node.function is not None and bool(node.function.timers)
        return bool(waits) or has_timers or any(self._lags(parent) for parent in node.parents)

    def _can_keep(self, stream: str, mode: ExecutionMode) -> bool:
        """Whether the keys of a stream's states, or windows, are of a fixed width."""
        return mode is ExecutionMode.PYTHON or all(
            isinstance(key, str | tuple) for key in self._keys_into[stream]
        )

    def _can_meet(self, stream: str, other: str) -> bool:
        def kinds(name: str) -> set[str]:
            return {_kind_of(key) for key in self._keys_into[name]}

        return kinds(stream) == kinds(other)

    def _on_error(self) -> OnError:
        return self.random.choice([DEAD_LETTER, DEAD_LETTER, SKIP, STOP if self._stops else DEAD_LETTER])


def _kind_of(key: Key | None) -> str:
    if key is None or key == ():
        return str(key)
    return "text" if key in _TEXT_KEYS else "both" if key in (_PAIR, by_both) else "whole"
