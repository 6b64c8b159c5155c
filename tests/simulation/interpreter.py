"""What a graph means: plain Python, message by message, without frames, columns or speeds.

It is the specification that random graphs are held to:

- a message passes all that hangs on it before the next one comes; so where branches meet, rows go in the order of
  messages, then of the branches as merged
- a function takes a copy, and a result is copied when it is returned: nobody sees what is changed later; so a filter
  keeps a message as it came
- a result that does not fit its schema is refused where it is returned, under name and `on_error` of its computation
- a branch takes those that the branches before it have left; one that a predicate refuses goes to none
- what a stateful function has changed before it raised stays; a state that is to be deleted is new for the next one
- dead letters go by message, then by computation: those of a stage in the order of declaration, then its outputs; what
  stops a partition is the first of them that must
- of several results of one message each is judged alone; None among them is nothing
- timers fire by their clock, windows by the watermark, before and after the messages of a frame: computation by
  computation, from a queue of (time, key); what one of them leads to passes all that hangs on it before the next one
- a state ends behind all that fires: by the log clock before the messages of a frame, by event time after them; what is
  due after its end, by the same clock, does not fire
- what a computation refuses of a message, or of what fired before it, goes on in `dead_letters` with the key of that:
  computation, reason, and the text that stands in the dead letter; what the computation's own firing fails at does not
- what hangs on a message has its event time, what hangs on a timer the time when that was due, and what a window gives
  the last one of the window, early results that of the oldest open window; it is late by where the watermark was before
  it moved to where it is now
- a message meets the row of a reference table as the newest version says that its record has come behind; what fires
  by the log clock in the record that names a version still meets the one before
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count, groupby
from typing import Any

from bettong import NEVER, DeadLetter, Fired
from bettong.application.execution_mode import ExecutionMode
from bettong.application.on_error import SKIP, STOP
from bettong.application.timers import Clock
from bettong.application.windows.kinds import Counts
from tests.simulation.graphs import Graph, Node
from tests.simulation.key_joins import Due, KeyJoin, key_join
from tests.simulation.key_states import KeyStates
from tests.simulation.message_outcome import MessageOutcome, StoppedError
from tests.simulation.message_values import key_of, own, schema_violation, text_of
from tests.simulation.open_windows import OpenWindows, WindowedMessage
from tests.simulation.origins import Origins
from tests.simulation.reference_rows import TABLES

# Within a record nothing is due by the log clock.
_NO_TIME = -(2**63)


class Interpreter:
    """One partition of every stage: states by computation and key, counters, and the frames that were taken."""

    def __init__(self, graph: Graph, producers: Collection[str] = (), awaited: Collection[str] = ()) -> None:
        """`producers`: of the stage's messages, see `producer_of`; `awaited`: the origins of stages before."""
        self.graph = graph
        self.origins = Origins(producers, awaited)
        self.states = KeyStates()
        self.windows: dict[tuple[str, Any], OpenWindows] = {}
        self.joins: dict[tuple[str, Any], KeyJoin] = {}
        # By computation, the number of the version that messages meet, and its rows by their keys.
        self.tables: dict[str, tuple[int, dict[Any, Any]]] = {}
        for node in graph.nodes:
            if node.joining is not None:
                self.switch(node.name, 1, TABLES[node.joining.row].first())
        self.watermark_ns = 0
        self.counters: Counter[str] = Counter()
        self.log_ns = 0
        self._highest: Counter[str] = Counter()
        self._outcome = MessageOutcome()
        self._clocks = {Clock.LOG: _NO_TIME, Clock.EVENT: 0}

    def admits(self, origin: str, sequence: int, previous: int) -> bool:
        """The delivery rule."""
        highest = self._highest[origin]
        taken = previous <= highest < sequence
        self.counters["duplicates"] += sequence <= highest
        self.counters["gaps"] += previous > highest
        self._highest[origin] = sequence if taken else highest
        return taken

    def switch(self, computation: str, number: int, rows: Sequence[Any]) -> None:
        """Messages meet these rows from now on, unless they meet those of a newer version."""
        joining = self.graph[computation].joining
        assert joining is not None
        if number > self.tables.get(computation, (0,))[0]:
            key = TABLES[joining.row].key
            self.tables[computation] = number, {getattr(row, key): row for row in rows}

    def take(self, source: str, message: Any, at_ns: int = 0, watermark_ns: int = 0) -> MessageOutcome:
        """All that one message leads to, up to sinks and other stages. Raises StoppedError.

        `watermark_ns`: before the message; what is older is late.
        """
        self._outcome = MessageOutcome(at_ns, watermark_ns, text=text_of(message))
        self.counters["messages"] += 1
        key = key_of(self.graph[source], message)
        self._pass({source: [message]}, key, self.graph.computations)
        return self._outcome

    def advance(self, watermark_ns: int, log_ns: int | None = None) -> list[MessageOutcome]:
        """What fires now that clocks may have moved; None: by the watermark alone. Raises StoppedError."""
        self.log_ns = max(self.log_ns, log_ns or 0)
        self._clocks = {
            Clock.LOG: _NO_TIME if log_ns is None else self.log_ns,
            Clock.EVENT: max(watermark_ns, self.watermark_ns),
        }
        found: list[MessageOutcome] = []
        for number, node in enumerate(self.graph.computations, 1):
            behind = self.graph.computations[number:]
            if node.join is not None:
                found += self._joined_by_time(node, behind, watermark_ns)
            if node.windows is not None:
                if log_ns is not None or not isinstance(node.windows.kind, Counts):
                    found += self._closed(node, behind, watermark_ns)
            elif node.function is not None and node.function.timers:
                found += self._fired(node, behind)
        self.watermark_ns = max(self.watermark_ns, watermark_ns)
        return found

    def end_states(self, clock: Clock) -> None:
        """Ends what has outlived its time to live by that clock, now that all that was due has fired."""
        for node in self.graph.computations:
            if node.lifetime is not None and node.lifetime.clock is clock:
                clock_ns, ttl_ns = self._clock_ns(clock), node.lifetime.ttl_ns
                joins = [of for (name, _), of in self.joins.items() if name == node.name]
                self.counters["expired"] += sum(of.ends(clock_ns - ttl_ns) for of in joins)
                self.counters["expired"] += self.states.end(node, node.lifetime, clock_ns)

    def _clock_ns(self, clock: Clock) -> int:
        return self.log_ns if clock is Clock.LOG else self.watermark_ns

    def _closed(self, node: Node, behind: list[Node], watermark_ns: int) -> Iterator[MessageOutcome]:
        assert node.function is not None
        assert node.windows is not None
        timers = ["timeout" if isinstance(node.windows.kind, Counts) else "due", "early"]
        log_ns = self.log_ns if isinstance(node.windows.kind, Counts) else self._clocks[Clock.LOG]
        for index in count():
            due = [
                (at_ns, key, is_early)
                for (name, key), of in self.windows.items()
                if name == node.name
                for at_ns, is_early in of.due(log_ns, watermark_ns)
            ]
            if not due:
                return
            at_ns, key, is_early = min(due)
            of = self.windows[node.name, key]
            time_ns, windows = of.so_far() if is_early else of.close()
            text = _firing(key, timers[is_early], at_ns)
            self._outcome = MessageOutcome(time_ns, self.watermark_ns, index, text)
            found = self._aggregated(node, partial(of.results, windows))
            if not of.is_known:
                del self.windows[node.name, key]
            self._pass({node.name: found}, key, behind)
            yield self._outcome

    def _fired(self, node: Node, behind: list[Node]) -> Iterator[MessageOutcome]:
        assert node.function is not None
        names, index = list(node.function.timers), 0
        queue = [each for key in self.states.keys(node) for each in self._due(node, key)]
        heapify(queue)
        while queue:
            at, key, number = heappop(queue)
            if (at, key, number) not in self._due(node, key):
                continue
            self._outcome = MessageOutcome(
                max(at, 0), self.watermark_ns, index, _firing(key, names[number], at)
            )
            setattr(self.states.kept[node.name, key], names[number], NEVER)
            function = node.function.timers[names[number]][ExecutionMode.PYTHON]
            results = list(self._results(node, Fired(key, at), key, function))
            self._pass({node.name: results}, key, behind)
            yield self._outcome
            index += 1
            for each in self._due(node, key):
                heappush(queue, each)

    def _due(self, node: Node, key: Any) -> list[tuple[int, Any, int]]:
        """The timers of a key that are due: time, key and number of each."""
        state = self.states.kept.get((node.name, key))
        assert node.function is not None
        found: list[tuple[int, Any, int]] = []
        for number, (name, clock) in enumerate(node.function.clocks.items()):
            at = getattr(state, name, NEVER)
            if at <= self._clocks[clock] and not self.states.outlives(node, key, clock, at):
                found.append((at, key, number))
        return found

    def _pass(self, rows: dict[str, list[Any]], key: Any, computations: list[Node]) -> None:
        own_failures = len(self._outcome.dead_letters)
        for node in computations:
            arriving = [row for parent in node.parents for row in rows.get(parent, ())]
            if node.kind == "merge":
                rows[node.name] = arriving
            elif node.join is not None:
                sides = [rows.get(parent, []) for parent in node.parents]
                rows[node.name] = list(self._joined(node, sides, key, rows))
            elif node.kind == "branch":
                left = arriving if node.first == node.name else rows[f"{node.first} leaves"]
                rows[node.name], rows[f"{node.first} leaves"] = self._divided(node, left)
            elif node.windows is not None:
                rows[node.name], rows[f"{node.name}-late"] = self._windowed(node, arriving, key)
            elif node.kind == "dead_letters":
                rows[node.name] = [
                    DeadLetter(computation, reason, self._outcome.text)
                    for computation, reason in self._outcome.dead_letters[own_failures:]
                    if computation == node.parents[0]
                ]
            elif node.kind != "late":
                rows[node.name] = [result for row in arriving for result in self._results(node, row, key)]
        for node in self.graph.outputs:
            for row in rows.get(node.parents[0], ()):
                self._leave(node, row)
        self.counters["results"] += len(self._outcome.results)

    def _results(self, node: Node, row: Any, key: Any, function: Any = None) -> Iterator[Any]:
        """`function`: of a timer; None for that of the row."""
        assert node.function is not None
        try:
            returned = self._called(node, row, key, function or node.function.python[type(row)])
        except Exception as error:  # noqa: BLE001 - whatever a function raises is its message's failure
            self._refuse(node, f"{type(error).__name__}: {error}")
            return
        for each in returned:
            if (reason := schema_violation(each, node.function.returns)) is None:
                yield each
            else:
                self._refuse(node, reason)

    def _divided(self, node: Node, rows: list[Any]) -> tuple[list[Any], list[Any]]:
        """Those that the branch takes, and those that it leaves."""
        assert node.function is not None
        taken: list[Any] = []
        left: list[Any] = []
        for row in rows:
            try:
                (taken if node.function.python[type(row)](own(row)) else left).append(row)
            except Exception as error:  # noqa: BLE001 - whatever a predicate raises is its message's failure
                self._refuse(node, f"{type(error).__name__}: {error}")
        return taken, left

    def _windowed(self, node: Node, rows: list[Any], key: Any) -> tuple[list[Any], list[Any]]:
        """What rows lead to at once, and those that are late."""
        results: list[Any] = []
        late: list[Any] = []
        for row in rows:
            assert node.function is not None
            assert node.windows is not None
            of = self.windows.get((node.name, key)) or OpenWindows(
                node.windows, node.function.aggregations[ExecutionMode.PYTHON], key=key
            )
            taken: list[WindowedMessage] = []

            def take(row: Any = row, of: OpenWindows = of, taken: list[WindowedMessage] = taken) -> list[Any]:
                taken.append(of.take(row, self._outcome.at_ns, self._outcome.watermark_ns, self.log_ns))
                return taken[0].results

            results += self._aggregated(node, take)
            late += [row for each in taken if each.is_late]
            self.counters["late"] += sum(each.is_late for each in taken)
            self.counters["partly_late"] += sum(each.is_partly_late for each in taken)
            if (full := of.full_group()) is not None:
                results += self._aggregated(node, partial(of.results, [full]))
            self.windows.pop((node.name, key), None)
            if of.is_known:
                self.windows[node.name, key] = of
        return results, late if node.windows and node.windows.late == "side" else []

    def _joined(
        self, node: Node, sides: list[list[Any]], key: Any, flows: dict[str, list[Any]]
    ) -> Iterator[Any]:
        """What rows lead to at once, those of the left side first. To `flows` those that are late."""
        assert node.join is not None
        of = self.joins.setdefault((node.name, key), key_join(*node.join))
        of.watermark_ns, of.log_ns = self._outcome.watermark_ns, self.log_ns
        for is_right, (side, rows) in enumerate(zip(("left", "right"), sides, strict=True)):
            late = flows[f"{node.name}-late-{side}"] = []
            for row in rows:
                is_late, pairs = of.take(bool(is_right), self._outcome.at_ns, row)
                late += [row] * is_late
                self.counters["late"] += is_late
                self.counters["partly_late"] += of.came[-1].is_partly_late
                for pair in pairs:
                    yield from self._combined(node, *pair)

    def _joined_by_time(self, node: Node, behind: list[Node], watermark_ns: int) -> Iterator[MessageOutcome]:
        fired: list[tuple[Any, Due]] = []
        for (name, key), of in self.joins.items():
            if name == node.name:
                of.watermark_ns = max(watermark_ns, self.watermark_ns)
                while (due := of.due()) is not None:
                    fired.append((key, due))
        fired.sort(key=_due_and_key)
        for index, ((due_ns, key), group) in enumerate(groupby(fired, key=_due_and_key)):
            pairs = [due for _, due in group]
            self._outcome = MessageOutcome(
                max(pairs[0].at_ns, 0), self.watermark_ns, index, _firing(key, "due", due_ns)
            )
            found = [row for due in pairs for row in self._combined(node, due.left, due.right)]
            self._pass({node.name: found}, key, behind)
            yield self._outcome

    def _combined(self, node: Node, left: Any, right: Any) -> list[Any]:
        assert node.function is not None
        (combine,) = node.function.python.values()
        return self._aggregated(node, lambda: [combine(own(left), own(right))])

    def _aggregated(self, node: Node, call: Callable[[], list[Any]]) -> list[Any]:
        """What windows and joins give: None is nothing."""
        assert node.function is not None
        try:
            returned = [each for each in call() if each is not None]
        except Exception as error:  # noqa: BLE001 - whatever an aggregation raises is its message's failure
            self._refuse(node, f"{type(error).__name__}: {error}")
            return []
        reasons = [schema_violation(each, node.function.returns) for each in returned]
        for reason in filter(None, reasons):
            self._refuse(node, reason)
        return [each for each, reason in zip(returned, reasons, strict=True) if reason is None]

    def _called(self, node: Node, row: Any, key: Any, function: Any) -> list[Any]:
        """What a function returns for a row, each result as it is when it is returned."""
        assert node.function is not None
        message = own(row)
        if node.kind == "filter":
            return [row] if function(message) else []
        if node.kind == "map":
            return [own(function(message))]
        if node.kind == "flat_map":
            return [own(each) for each in function(message) if each is not None]
        if node.joining is not None:
            return self._with_row(node, row, key, function)
        assert node.function.state is not None
        if isinstance(row, Fired):
            state = self.states.kept[node.name, key]
        else:
            state = self.states.renewed(
                node, key, node.function.state, log_ns=self.log_ns, at_ns=self._outcome.at_ns
            )
        returned = function(message, state)
        several = returned if node.function.many and returned is not None else [returned]
        found = [own(each) for each in several if each is not None]
        deletes = node.function.delete_when
        if deletes is not None and deletes[ExecutionMode.PYTHON](state):
            self.states.delete(node, key)
            self.counters["deleted"] += 1
        return found

    def _with_row(self, node: Node, message: Any, key: Any, combine: Any) -> list[Any]:
        """What is made of a message and its row."""
        assert node.joining is not None
        on, field = node.joining.on, TABLES[node.joining.row].key
        if on is None:
            of = getattr(message, field, key)
        else:
            of = getattr(message, on) if isinstance(on, str) else on(own(message))
        _, rows = self.tables[node.name]
        row = rows.get(of)
        if row is None and node.joining.how == "inner":
            return []
        result = combine(own(message), None if row is None else own(row))
        return [] if result is None else [own(result)]

    def _leave(self, node: Node, row: Any) -> None:
        try:
            if node.kind == "key_by":
                key_of(node, row)
            result = node.encoder(own(row)) if node.encoder is not None else row
        except Exception as error:  # noqa: BLE001 - whatever it raises, as above
            self._refuse(node, f"{type(error).__name__}: {error}")
        else:
            self._outcome.results.append((node.name, result))

    def _refuse(self, node: Node, reason: str) -> None:
        if node.on_error == STOP:
            raise StoppedError(node.name)
        if node.on_error == SKIP:
            self.counters["skipped"] += 1
        else:
            self.counters["dead_letters"] += 1
            self._outcome.dead_letters.append((node.name, reason))


def _due_and_key(fired: tuple[Any, Due]) -> tuple[int, Any]:
    return fired[1].due_ns, fired[0]


def _firing(key: Any, timer: str, at_ns: int) -> str:
    return json.dumps({"key": key, "timer": timer, "at": at_ns}, ensure_ascii=False, separators=(",", ":"))
