"""Runs a graph over real partition workers, and holds each of them to the interpreter, frame by frame.

messages -> cut into frames -> spread over partitions -> workers -> output records -> the next stage's workers -> sinks

A channel is what reaches one partition of a stage from one writer: its records stay in order, while a seed decides
which channel is next. Records come twice, or before the one that they follow, as they do when senders retry.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from bettong.application.plan import Plan, plan
from bettong.application.streams import Keyed
from bettong.errors import PoisonError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, FrameKind, decode
from bettong.routing import partition_of
from bettong.schema.schema import schema_of
from bettong.topics import dead_letter_topic, sink_topic, stage_of_topic, stage_topic
from bettong.v1.frame_pb2 import DeadLetter
from bettong.worker.kernel import KernelCache
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import program
from tests.samples.worker import FRAME_BYTES_MAX, data, tick
from tests.simulation.graphs import Graph, application
from tests.simulation.interpreter import Given, Interpreter, StoppedError, key_of
from tests.simulation.messages import MESSAGES
from tests.simulation.random_graphs import Case

APPLICATION = "graph"
COUNTERS = ("messages", "results", "dead_letters", "skipped", "duplicates", "gaps")
_CLASSES = {schema_of(message).fingerprint: message for message in MESSAGES}
# Behind all messages, when what is set has come.
_END_NS = 10**6
# How a speed says that a value does not fit differs; which field it is does not.
_FIELD = re.compile(r"(?:\w+: )?(field '\w+'): .*", re.DOTALL)

# By exit, what it gives in order: a sink's messages by class, those of a key_by by partition.
Results = dict[tuple[str, Any], list[Any]]
DeadLetterFields = tuple[str, str, str]  # computation, reason, message


class _Stop(Exception):
    """A partition stopped where it should."""


@dataclass
class Delivered:
    """What a graph gives as a whole. `results`: by sink, class and slot. `counters`: the sum of all partitions."""

    results: dict[tuple[str, str, int], list[Any]] = field(default_factory=lambda: defaultdict(list))
    dead_letters: Counter[DeadLetterFields] = field(default_factory=Counter)
    counters: Counter[str] = field(default_factory=Counter)

    def add(self, sink: str, result: Any) -> None:
        """Takes one result of a sink."""
        slot = int(result.split(b":")[0]) if isinstance(result, bytes) else result.slot
        self.results[sink, type(result).__name__, slot].append(result)

    def count(self, counters: Any) -> None:
        """Adds the counters of a partition, but for those of faults."""
        read = counters.get if isinstance(counters, Counter) else lambda name, _: getattr(counters, name)
        for name in COUNTERS[:4]:
            self.counters[name] += read(name, 0)


def check(case: Case, *, cache: KernelCache | None = None) -> None:
    """Raises AssertionError where workers and interpreter differ. `cache` keeps compiled functions."""
    run = _Run(case, cache)
    try:
        run.fold_all()
    except _Stop:
        return
    # Each partition has a log clock of its own.
    if is_ordered(run.plan) and not case.graph.is_timed:
        whole = expected(case)
        assert run.delivered == whole, f"gave {run.delivered}, not {whole}"


def expected(case: Case) -> Delivered:
    """What the graph gives when each message passes all stages before the next one comes."""
    interpreter, found = Interpreter(case.graph), Delivered()

    def pass_on(source: str, message: Any) -> None:
        given = interpreter.take(source, message)
        for computation, reason in given.dead_letters:
            found.dead_letters[computation, reason, _text(message)] += 1
        for target, result in given.results:
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
        exit_.target for stage in of.stages for exit_ in stage.outputs if isinstance(exit_.target, Keyed)
    ]
    finer = all(getattr(node.key, "__name__", node.key) in ("slot", "by_slot") for node in keyed)
    writers: defaultdict[str, set[str]] = defaultdict(set)
    for stage in of.stages:
        for exit_ in stage.outputs:
            writers[exit_.target.name].add(stage.name)
    sources = {source.name for source in of.sources}
    single_entry = all(
        len(stage.inputs) == 1 or all(each.stream in sources for each in stage.inputs) for stage in of.stages
    )
    return None not in keys and finer and single_entry and all(len(each) == 1 for each in writers.values())


class _Run:
    """All workers of a graph, each beside its interpreter."""

    def __init__(self, case: Case, cache: KernelCache | None) -> None:
        self.case = case
        self.graph: Graph = case.graph
        self.plan = plan(application(case.graph, APPLICATION))
        self.delivered = Delivered()
        self._random = Random(case.seed)
        self._workers = {}
        for stage in self.plan.stages:
            ready = program(stage, compiled=case.compiled, cache=cache)
            for partition in range(case.partitions):
                of = Assignment(APPLICATION, partition, case.partitions, FRAME_BYTES_MAX)
                self._workers[stage.name, partition] = PartitionWorker(ready, of), Interpreter(case.graph)
        self._channels: defaultdict[tuple[str, int, str], deque[bytes]] = defaultdict(deque)

    def fold_all(self) -> None:
        """Folds until nothing is on its way."""
        for source, partition, value in self._sent():
            self._channels[self.plan.stage_of(source).name, partition, "sources"].append(value)
        self._retry()
        self._drain()
        for stage, partition in self._workers:
            self._fold(stage, partition, tick(_END_NS))
            self._drain()
        for worker, _ in self._workers.values():
            self.delivered.count(worker.counters)

    def _drain(self) -> None:
        while waiting := [channel for channel, values in self._channels.items() if values]:
            channel = self._random.choice(waiting)
            value = self._channels[channel].popleft()
            self._fold(channel[0], channel[1], value)
            if self._random.random() < 0.05:
                self._fold(channel[0], channel[1], value)

    def _sent(self) -> list[tuple[str, int, bytes]]:
        """The frames of sources, as a sender cuts and partitions them."""
        found: list[tuple[str, int, bytes]] = []
        sequences: Counter[tuple[str, int]] = Counter()
        clock_ns = 0
        for number, (source, messages) in enumerate(self._cut()):
            clock_ns += self._random.randrange(30)
            by_partition: defaultdict[int, list[Any]] = defaultdict(list)
            for message in messages:
                key = key_of(self.graph[source], message)
                of = number % self.case.partitions if key is None else partition_of(key, self.case.partitions)
                by_partition[of].append(message)
            for partition, part in sorted(by_partition.items()):
                sequences[source, partition] += 1
                value = data(f"{source}/client", sequences[source, partition], part, ingest_ns=clock_ns)
                found.append((source, partition, value))
        return found

    def _cut(self) -> list[tuple[str, list[Any]]]:
        found: list[tuple[str, list[Any]]] = []
        ends = True
        for (source, message), cut in zip(self.case.messages, self.case.boundaries, strict=True):
            if ends or found[-1][0] != source:
                found.append((source, []))
            found[-1][1].append(message)
            ends = cut
        return found

    def _retry(self) -> None:
        """Some frames of a client come early, before the one that they follow, and again in their place."""
        for channel, values in self._channels.items():
            retried: deque[bytes] = deque()
            while values:
                is_early = len(values) > 1 and self._random.random() < 0.1
                if is_early and decode(values[0]).origin == decode(values[1]).origin:
                    retried.append(values[1])
                retried.append(values.popleft())
            self._channels[channel] = retried

    def _fold(self, stage: str, partition: int, value: bytes) -> None:
        worker, interpreter = self._workers[stage, partition]
        frame = decode(value)
        givens: list[Given] = []
        stopped = None
        try:
            givens.extend(_meaning(interpreter, frame))
        except StoppedError as error:
            stopped = (error.computation, error.place)
        try:
            records = worker.fold(worker.next_offset, value)
        except PoisonError as error:
            if (error.computation, error.index) != stopped:
                raise AssertionError(f"{error}; the interpreter stops at {stopped}") from error
            raise _Stop from error
        assert stopped is None, f"{stopped} should have stopped {stage}/{partition}"
        self._compare(frame, givens, records)
        counted = {name: getattr(worker.counters, name) for name in COUNTERS}
        counters = {name: interpreter.counters[name] for name in COUNTERS}
        assert counted == counters, f"counted {counted}, not {counters}"
        self._pass_on(stage, partition, records)

    def _compare(self, frame: Frame, givens: list[Given], records: list[OutputRecord]) -> None:
        results: Results = defaultdict(list)
        dead_letters: list[tuple[str, str, int, str]] = []
        for given in givens:
            for target, result in given.results:
                results[target, self._apart(target, result)].append(result)
            dead_letters += [(*dead_letter, given.place, given.text) for dead_letter in given.dead_letters]
        given_results = self._results(records)
        assert given_results == results, f"gave {dict(given_results)}, not {dict(results)}"
        dead = _dead_letters(records)
        found = [(each.computation, _reason(each), each.index, each.message.decode()) for each in dead]
        # Order holds among messages and computations, not among what one computation says of one message.
        in_order = [(each[0], each[2]) for each in found] == [(each[0], each[2]) for each in dead_letters]
        assert in_order, f"dead letters {found}, not {dead_letters}"
        assert Counter(found) == Counter(dead_letters), f"dead letters {found}, not {dead_letters}"
        assert {(each.origin, each.sequence) for each in dead} <= {(frame.origin, frame.sequence)}

    def _apart(self, target: str, result: Any) -> Any:
        """Order holds among results of one partition, and of one class."""
        node = self.graph[target]
        if node.kind == "key_by":
            return partition_of(key_of(node, result), self.case.partitions)
        return type(result).__name__

    def _results(self, records: list[OutputRecord]) -> Results:
        found: Results = defaultdict(list)
        for record in records:
            if record.topic == dead_letter_topic(APPLICATION):
                continue
            frame = decode(record.value)
            target = self.graph[frame.stream]
            is_sink = target.kind == "sink"
            stage = self.plan.stage_of(target.name).name if not is_sink else ""
            topic = sink_topic(APPLICATION, target.name) if is_sink else stage_topic(APPLICATION, stage)
            assert record.topic == topic
            for result in _messages(frame):
                apart = type(result).__name__ if is_sink else record.partition
                found[target.name, apart].append(result)
        return found

    def _pass_on(self, stage: str, partition: int, records: list[OutputRecord]) -> None:
        for record in records:
            frame = decode(record.value)
            if record.topic == dead_letter_topic(APPLICATION):
                for each in _dead_letters([record]):
                    self.delivered.dead_letters[each.computation, _reason(each), each.message.decode()] += 1
            elif self.graph[frame.stream].kind == "sink":
                for result in _messages(frame):
                    self.delivered.add(frame.stream, result)
            else:
                to = stage_of_topic(APPLICATION, record.topic)
                self._channels[to, record.partition, f"{stage}/{partition}"].append(record.value)


def _meaning(interpreter: Interpreter, frame: Frame) -> Iterator[Given]:
    """What a record leads to. Raises StoppedError."""
    yield from interpreter.advance(frame.ingest_ns)
    is_data = frame.kind is FrameKind.DATA
    if is_data and interpreter.admits(frame.origin, frame.sequence, frame.previous):
        for place, message in enumerate(_messages(frame)):
            try:
                given = interpreter.take(frame.stream, message)
            except StoppedError as error:
                error.place = place
                raise
            given.place, given.text = place, _text(message)
            yield given
    yield from interpreter.advance(frame.ingest_ns)


def _messages(frame: Frame) -> list[Any]:
    """What a frame holds: message objects, or the bytes that an encoder made."""
    if frame.columns is None:
        return list(frame.rows or ())
    found = Columns.of_payload(schema_of(_CLASSES[frame.schema]), frame.columns).messages()
    assert len(found) == frame.count
    return found


def _dead_letters(records: list[OutputRecord]) -> list[DeadLetter]:
    topic = dead_letter_topic(APPLICATION)
    rows = [row for record in records if record.topic == topic for row in decode(record.value).rows or ()]
    return [DeadLetter.FromString(row) for row in rows]


def _reason(dead_letter: DeadLetter) -> str:
    return _FIELD.sub(r"\1", dead_letter.reason)


def _text(message: Any) -> str:
    return json.dumps(asdict(message), ensure_ascii=False, separators=(",", ":"))
