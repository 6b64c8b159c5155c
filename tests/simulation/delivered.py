"""What a graph gives as a whole, and when that is told without looking at how it is run."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from bettong import DeadLetter
from bettong.application.nodes.keyed import Keyed
from bettong.application.plan import Plan
from tests.simulation.dead_letter_functions import key_and_slot
from tests.simulation.interpreter import Interpreter
from tests.simulation.messages import KEYS, Span
from tests.simulation.random_graphs import Case

COUNTERS = (
    "messages",
    "results",
    "dead_letters",
    "skipped",
    "late",
    "partly_late",
    "deleted",
    "expired",
    "duplicates",
    "gaps",
)
DeadLetterFields = tuple[str, str, str]  # computation, reason, message


@dataclass
class Delivered:
    """What a graph gives as a whole. `results`: by sink, class and slot. `counters`: the sum of all partitions."""

    results: dict[tuple[str, str, int], list[Any]] = field(default_factory=lambda: defaultdict(list))
    dead_letters: Counter[DeadLetterFields] = field(default_factory=Counter)
    counters: Counter[str] = field(default_factory=Counter)

    def add(self, sink: str, result: Any) -> None:
        """Takes one result of a sink."""
        if isinstance(result, DeadLetter):
            _, slot = key_and_slot(result)
        elif isinstance(result, Span):
            slot = KEYS.index(result.key)
        else:
            slot = int(result.split(b":")[0]) if isinstance(result, bytes) else result.slot
        self.results[sink, type(result).__name__, slot].append(result)

    def count(self, counters: Any) -> None:
        """Adds the counters of a partition, but for those of faults."""
        read = counters.get if isinstance(counters, Counter) else lambda name, _: getattr(counters, name)
        for name in COUNTERS[:-2]:
            self.counters[name] += read(name, 0)


def expected(case: Case) -> Delivered:
    """What the graph gives when each message passes all stages before the next one comes."""
    interpreter, found = Interpreter(case.graph), Delivered()

    def pass_on(source: str, message: Any) -> None:
        outcome = interpreter.take(source, message)
        for computation, reason in outcome.dead_letters:
            found.dead_letters[computation, reason, outcome.text] += 1
        for target, result in outcome.results:
            if case.graph[target].kind == "key_by":
                pass_on(target, result)
            else:
                found.add(target, result)

    for source, message in case.messages:
        pass_on(source, message)
    found.count(interpreter.counters)
    return found


def is_ordered(of: Plan) -> bool:
    """Whether the log alone decides the order of each slot's results, and neither partitions nor schedules do.

    Not where sources have no key or `key_by` brings together what was apart, nor where a sink or a stage gets what
    several stages write.
    """
    keys = [entry.key for stage in of.stages for entry in stage.inputs]
    keyed = [
        output.target for stage in of.stages for output in stage.outputs if isinstance(output.target, Keyed)
    ]
    finest = ("slot", "by_slot", ("key", "slot"), "by_both")
    finer = all(getattr(node.key, "__name__", node.key) in finest for node in keyed)
    writers: defaultdict[str, set[str]] = defaultdict(set)
    for stage in of.stages:
        for output in stage.outputs:
            writers[output.target.name].add(stage.name)
    sources = {source.name for source in of.sources}
    single_entry = all(
        len(stage.inputs) == 1 or all(each.stream in sources for each in stage.inputs) for stage in of.stages
    )
    return None not in keys and finer and single_entry and all(len(each) == 1 for each in writers.values())
