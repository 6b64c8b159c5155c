"""Hypothesis draws graphs, messages for them, and how those are cut into frames and spread over partitions."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st

from bettong.application.execution_mode import ExecutionMode
from bettong.application.key import Key
from bettong.application.on_error import DEAD_LETTER, SKIP, STOP, OnError
from tests.simulation.function_table import FUNCTIONS, Function
from tests.simulation.functions import by_key, by_slot, coded
from tests.simulation.graphs import Graph, Node
from tests.simulation.messages import KEYS, SLOTS_PER_KEY, Item, Note, Part

# Keys by which the messages of a key stay in one partition from source to sink, and keys that mix them anew.
_FINER: tuple[Key, ...] = ("slot", by_slot)
_COARSER: tuple[Key, ...] = ("key", by_key)
_TEXT_KEYS: tuple[Key, ...] = ("key", by_key)
_VALUES = (-3, 0, 1, 2, 3, 5, 7, 13, 40, 100, 150, 300)
_COMPUTATIONS = ("map", "filter", "flat_map", "stateful")


@dataclass(frozen=True)
class Case:
    """A graph, and how it is run.

    `messages`: of which source each is. `boundaries`: whether a frame ends behind the message. `compiled`: whether
    what is marked so is compiled. `seed` decides which partition is folded next, and what comes twice or too early.
    """

    graph: Graph
    messages: tuple[tuple[str, Any], ...]
    boundaries: tuple[bool, ...]
    partitions: int = 1
    compiled: bool = True
    seed: int = 0

    def __str__(self) -> str:
        frames = [f"{source} {message}{' |' * cut}" for (source, message), cut in self._rows()]
        reported = f"{self.partitions} partitions, compiled={self.compiled}, seed={self.seed}"
        return "\n".join([str(self.graph), *frames, reported])

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
    messages: list[tuple[str, Any]] = []
    boundaries: list[bool] = []
    for choice in draw(st.lists(_CHOICES, min_size=3, max_size=24)):
        random = Random(choice)
        source = random.choice(growing.graph.sources)
        messages.append((source.name, _message(source.message, random)))
        boundaries.append(random.random() < 0.3)
    return Case(
        growing.graph,
        tuple(messages),
        tuple(boundaries),
        draw(st.integers(1, 3)),
        draw(st.booleans()),
        draw(_CHOICES),
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
        keys: list[Key | None] = ["key", by_key, "slot"]
        if len(self._keys) > len(_FINER):
            keys.append(None)
        for number in range(self.random.randint(1, 2)):
            message = self.random.choice([Item, Item, Item, Part, Note])
            key = self.random.choice(keys)
            self._add(Node(f"in{number}", "source", key=key, message=message), {message}, {key})

    def add_stream(self) -> None:
        """One more stream behind any of those that are there, if there is one of the drawn kind."""
        kind = self.random.choice([*_COMPUTATIONS, "stateful", "merge", "merge", "key_by"])
        if kind == "merge":
            self._add_merge()
        elif kind == "key_by":
            self._add_key_by()
        else:
            self._add_computation(kind)

    def add_sinks(self) -> None:
        """One for each stream that leads nowhere, and some for others."""
        used = {parent for node in self.nodes for parent in node.parents}
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
                    for way in function.forms:
                        if kind != "stateful" or self._can_keep(stream, way):
                            choices.setdefault(way, []).append((stream, function))
        if choices:
            way = self.random.choice([way for way in ExecutionMode if way in choices])
            stream, function = self.random.choice(choices[way])
            name = f"{function.name}{len(self.nodes)}"
            node = Node(name, kind, (stream,), function, way, self._on_error())
            self._add(node, {function.gives}, self._keys_into[stream])

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
        streams = [stream for stream, found in self._mixed.items() if len(found) == 1]
        stream = self.random.choice(streams)
        keys = [key for key in self._keys if key is not by_slot or self._mixed[stream] == {Item}]
        key = self.random.choice(keys)
        name = f"keyed{len(self.nodes)}"
        node = Node(name, "key_by", (stream,), key=key, on_error=self._on_error())
        self._add(node, self._mixed[stream], {key})

    def _add(self, node: Node, found: set[type[Any]], keys: set[Key | None]) -> None:
        self.nodes.append(node)
        self._mixed[node.name] = found
        self._keys_into[node.name] = keys

    def _can_read(self, stream: str, function: Function) -> bool:
        found = self._mixed[stream]
        is_keyed = None not in self._keys_into[stream]
        return found <= set(function.python) and (
            is_keyed if function.kind == "stateful" else len(found) == 1
        )

    def _can_keep(self, stream: str, way: ExecutionMode) -> bool:
        """Whether the keys of a stream's states are of a fixed width."""
        return way is ExecutionMode.PYTHON or all(isinstance(key, str) for key in self._keys_into[stream])

    def _can_meet(self, stream: str, other: str) -> bool:
        def kinds(name: str) -> set[str]:
            return {
                "none" if key is None else "text" if key in _TEXT_KEYS else "whole"
                for key in self._keys_into[name]
            }

        return kinds(stream) == kinds(other)

    def _on_error(self) -> OnError:
        return self.random.choice([DEAD_LETTER, DEAD_LETTER, SKIP, STOP if self._stops else DEAD_LETTER])


def _message(message: type[Any], random: Random) -> Any:
    slot = random.randrange(len(KEYS) * SLOTS_PER_KEY)
    key = KEYS[slot // SLOTS_PER_KEY]
    if message is Item:
        return Item(key, slot, random.choice(_VALUES))
    if message is Part:
        return Part(key, slot, random.choice([0, 1, 7, 100, 200, 255]), random.choice(["", "ä", "abc"]))
    return Note(key, slot, random.choice(["", "ab", "äöü", "x" * 40]))
