"""What a graph means: plain Python, message by message, without frames, columns or speeds.

It is the specification that random graphs are held to:

- a message passes all that hangs on it before the next one comes; so where branches meet, rows go in the order of
  messages, then of the branches as merged
- a function takes a copy, and a result is copied when it is given: nobody sees what is changed later; so a filter
  keeps a message as it came
- a result that does not fit its schema is refused where it is given, under the name and `on_error` of who gives it
- what a stateful function has changed before it raised stays; a state that is to be deleted is new for the next one
- dead letters go by message, then by computation: those of a stage in the order of declaration, then its exits; what
  stops a partition is the first of them that must
- of several results of one message each is judged alone; None among them does not fit
- timers fire by the log clock, before and after the messages of a frame: computation by computation, from a queue of
  (time, key); what one of them leads to passes all that hangs on it before the next one
"""

import json
from collections import Counter
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from bettong import NEVER, Fired
from bettong.application.execution_mode import ExecutionMode
from bettong.application.on_error import SKIP, STOP
from bettong.schema.fields import Kind
from bettong.schema.schema import schema_of
from tests.simulation.graphs import Graph, Node


class StoppedError(Exception):
    """A message that a computation with on_error="stop" cannot process: by its place; -1: a timer that fired."""

    def __init__(self, computation: str) -> None:
        self.computation = computation
        self.place = -1


@dataclass
class Given:
    """What one message led to: (exit, message or its bytes), and (computation, reason).

    Of a timer, `place` counts those that fired in the computation, and `text` stands in dead letters.
    """

    place: int = 0
    text: str = ""

    results: list[tuple[str, Any]] = field(default_factory=list)
    dead_letters: list[tuple[str, str]] = field(default_factory=list)


class Interpreter:
    """One partition of every stage: states by computation and key, counters, and the frames that were taken."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.states: dict[tuple[str, Any], Any] = {}
        self.counters: Counter[str] = Counter()
        self.log_ns = 0
        self._highest: Counter[str] = Counter()
        self._given = Given()

    def admits(self, origin: str, sequence: int, previous: int) -> bool:
        """The delivery rule."""
        highest = self._highest[origin]
        taken = previous <= highest < sequence
        self.counters["duplicates"] += sequence <= highest
        self.counters["gaps"] += previous > highest
        self._highest[origin] = sequence if taken else highest
        return taken

    def take(self, source: str, message: Any) -> Given:
        """All that one message leads to, up to sinks and other stages. Raises StoppedError."""
        self._given = Given()
        self.counters["messages"] += 1
        key = key_of(self.graph[source], message)
        self._pass({source: [message]}, key, self.graph.computations)
        return self._given

    def advance(self, log_ns: int) -> list[Given]:
        """What fires now that the log clock may have moved. Raises StoppedError."""
        self.log_ns = max(self.log_ns, log_ns)
        found: list[Given] = []
        for number, node in enumerate(self.graph.computations, 1):
            if node.function is not None and node.function.timers:
                found += self._fired(node, self.graph.computations[number:])
        return found

    def _fired(self, node: Node, behind: list[Node]) -> Iterator[Given]:
        assert node.function is not None
        names, place = list(node.function.timers), 0
        queue = [each for name, key in self.states if name == node.name for each in self._due(node, key)]
        heapify(queue)
        while queue:
            at, key, number = heappop(queue)
            if (at, key, number) not in self._due(node, key):
                continue
            text = json.dumps({"key": key, "timer": names[number], "at": at}, ensure_ascii=False)
            self._given = Given(place, text.replace(": ", ":").replace(", ", ","))
            setattr(self.states[node.name, key], names[number], NEVER)
            function = node.function.timers[names[number]][ExecutionMode.PYTHON]
            results = list(self._results(node, Fired(key, at), key, function))
            self._pass({node.name: results}, key, behind)
            yield self._given
            place += 1
            for each in self._due(node, key):
                heappush(queue, each)

    def _due(self, node: Node, key: Any) -> list[tuple[int, Any, int]]:
        """The timers of a key that are due: time, key and number of each."""
        state = self.states.get((node.name, key))
        assert node.function is not None
        times = [getattr(state, name, NEVER) for name in node.function.timers]
        return [(at, key, number) for number, at in enumerate(times) if at <= self.log_ns]

    def _pass(self, rows: dict[str, list[Any]], key: Any, computations: list[Node]) -> None:
        for node in computations:
            arriving = [row for parent in node.parents for row in rows.get(parent, ())]
            if node.kind == "merge":
                rows[node.name] = arriving
            else:
                rows[node.name] = [result for row in arriving for result in self._results(node, row, key)]
        for node in self.graph.exits:
            for row in rows.get(node.parents[0], ()):
                self._leave(node, row)
        self.counters["results"] += len(self._given.results)

    def _results(self, node: Node, row: Any, key: Any, function: Any = None) -> Iterator[Any]:
        """`function`: of a timer; None for that of the row."""
        assert node.function is not None
        try:
            given = self._called(node, row, key, function or node.function.python[type(row)])
        except Exception as error:  # noqa: BLE001 - whatever a function raises is its message's failure
            self._refuse(node, f"{type(error).__name__}: {error}")
            return
        for each in given:
            if (reason := schema_violation(each, node.function.gives)) is None:
                yield each
            else:
                self._refuse(node, reason)

    def _called(self, node: Node, row: Any, key: Any, function: Any) -> list[Any]:
        """What a function gives for a row, each result as it is when it is given."""
        assert node.function is not None
        message = copy(row)
        if node.kind == "filter":
            return [row] if function(message) else []
        if node.kind == "map":
            return [copy(function(message))]
        if node.kind == "flat_map":
            return [copy(each) for each in function(message)]
        assert node.function.state is not None
        if (node.name, key) not in self.states:
            self.states[node.name, key] = node.function.state()
        given = function(message, self.states[node.name, key])
        found = (
            [] if given is None else [copy(each) for each in given] if node.function.many else [copy(given)]
        )
        deletes = node.function.delete_when
        if deletes is not None and deletes[ExecutionMode.PYTHON](self.states[node.name, key]):
            del self.states[node.name, key]
        return found

    def _leave(self, node: Node, row: Any) -> None:
        try:
            if node.kind == "key_by":
                key_of(node, row)
            result = node.encoder(copy(row)) if node.encoder is not None else row
        except Exception as error:  # noqa: BLE001 - whatever it raises, as above
            self._refuse(node, f"{type(error).__name__}: {error}")
        else:
            self._given.results.append((node.name, result))

    def _refuse(self, node: Node, reason: str) -> None:
        if node.on_error == STOP:
            raise StoppedError(node.name)
        if node.on_error == SKIP:
            self.counters["skipped"] += 1
        else:
            self.counters["dead_letters"] += 1
            self._given.dead_letters.append((node.name, reason))


def key_of(source: Node, message: Any) -> Any:
    """The key of a message that enters; None without one. Raises what a function of the user's raises."""
    if source.key is None:
        return None
    return getattr(message, source.key) if isinstance(source.key, str) else source.key(copy(message))


def schema_violation(result: Any, message: type[Any]) -> str | None:
    """Why a result is none of its class: the field, or what it is instead."""
    if not isinstance(result, message):
        return f"{type(result).__name__} is no {message.__name__}"
    for each in schema_of(message).fields:
        value = getattr(result, each.name)
        if each.kind is Kind.TEXT:
            encoded = value.encode(errors="ignore") if isinstance(value, str) else None
            fits = encoded is not None and encoded.decode() == value
            fits = fits and (each.dtype is None or len(encoded or b"") <= each.dtype.itemsize)
        else:
            limits = np.iinfo(each.dtype) if each.dtype is not None else None
            fits = limits is not None and limits.min <= value <= limits.max
        if not fits:
            return f"field {each.name!r}"
    return None
