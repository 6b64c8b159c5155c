"""Runs a graph over real partition workers, and holds each of them to the interpreter, frame by frame.

messages -> cut into frames -> spread over partitions -> workers -> output records -> the next stage's workers -> sinks

A channel is what reaches one partition of a stage from one writer: its records stay in order, while a seed decides
which channel is next. Records come twice, or before the one that they follow, as they do when senders retry. Workers
die between records: see `living_partition`.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from random import Random
from typing import Any

import numpy as np

from bettong.application.plan import plan
from bettong.errors import PoisonError
from bettong.frames.frame import Frame, FrameKind, decode, reference_record, tick_record
from bettong.frames.times import encode_times
from bettong.identifiers import Origin, ReferenceVersion, partition_origin
from bettong.routing import partition_of
from bettong.testing.memory_references import MemoryReferences, load_rows
from bettong.topics import dead_letter_topic, sink_topic, stage_of_topic, stage_topic
from bettong.worker.balance import AccountKind, balance, differences
from bettong.worker.kernel import KernelCache
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment
from bettong.worker.stage_program import program
from tests.samples.worker import FRAME_BYTES_MAX, data
from tests.simulation.delivered import COUNTERS, Delivered, expected, is_ordered
from tests.simulation.frame_contents import (
    APPLICATION,
    dead_letters_in,
    event_times_in,
    messages_in,
    reason_in,
    shown_index,
)
from tests.simulation.graphs import Graph, application
from tests.simulation.interpreter import Interpreter
from tests.simulation.living_partition import LivingPartition
from tests.simulation.message_outcome import MessageOutcome, StoppedError
from tests.simulation.message_values import key_of
from tests.simulation.open_windows import is_group
from tests.simulation.random_graphs import Case
from tests.simulation.record_meaning import meaning_of

# Behind all messages, when what is set has come; in steps that are long enough for a stage to tell the next one.
_END_NS = 10**9
# Messages come in as much time.
_VERSION_NS_MAX = 300

# By output, its messages in order: a sink's messages by class, those of a key_by by partition.
Results = dict[tuple[str, Any], list[Any]]


class Stop(Exception):
    """A partition stopped where it should."""


def check(case: Case, *, cache: KernelCache | None = None) -> GraphRun | None:
    """Raises AssertionError where workers and interpreter differ. `cache` keeps compiled functions.

    What has run, unless it stopped where it should.
    """
    run = GraphRun(case, cache)
    try:
        run.fold_all()
    except Stop:
        return None
    # Each partition has a log clock of its own, and comes to versions of tables at a time of its own.
    if is_ordered(run.plan) and not case.graph.is_timed and not case.versions:
        whole = expected(case)
        assert run.delivered == whole, f"gave {run.delivered}, not {whole}"
    return run


class GraphRun:
    """All workers of a graph, each beside its interpreter."""

    def __init__(self, case: Case, cache: KernelCache | None) -> None:
        self.case = case
        self.graph: Graph = case.graph
        self.plan = plan(application(case.graph, APPLICATION))
        self.delivered = Delivered()
        self._random = Random(case.seed)
        self._empties = any(node.windows or node.join for node in case.graph.nodes)
        self._sinks = {sink.name for sink in self.plan.sinks}
        self._timed = {
            output.target.name for stage in self.plan.stages for output in stage.outputs if output.needs_time
        }
        self._references = MemoryReferences(self.plan, load_rows)
        self._references.begin()
        # What is to come; and what has come, with the join whose rows they are.
        self._coming = deque(case.versions)
        self._versions: dict[ReferenceVersion, tuple[str, int, list[Any]]] = {}
        self.partitions = {}
        sources = {source.name for source in self.plan.sources}
        for stage in self.plan.stages:
            ready = program(stage, compiled=case.compiled, cache=cache)
            for partition in range(case.partitions):
                of = Assignment(APPLICATION, partition, case.partitions, FRAME_BYTES_MAX)
                self.partitions[stage.name, partition] = (
                    LivingPartition(ready, of, self._random, self._references),
                    Interpreter(
                        case.graph,
                        [name for each in stage.inputs for name in each.producers],
                        [
                            partition_origin(name, of_before)
                            for each in stage.inputs
                            if each.stream not in sources
                            for name in each.producers
                            for of_before in range(case.partitions)
                        ],
                    ),
                )
        self._channels: defaultdict[tuple[str, int, str], deque[bytes]] = defaultdict(deque)

    def fold_all(self) -> None:
        """Folds until nothing is on its way."""
        for source, partition, value in self._sent():
            self._channels[self.plan.stage_of(source).name, partition, "sources"].append(value)
        self._retry()
        self._drain()
        ends = {Origin(f"{source.name}/client"): _END_NS for source in self.graph.sources}
        for step in range(1, len(self.graph.computations) + len(self.plan.stages) + 1):
            for stage, partition in self.partitions:
                self.fold(stage, partition, tick_record("log", step * _END_NS, ends))
                self._drain()
        for living, interpreter in self.partitions.values():
            self.delivered.count(living.worker.counters)
            groups = {node.name for node in self.graph.nodes if node.windows and is_group(node.windows)}
            left = {name for name, _ in interpreter.windows} - groups
            assert not left, f"the windows of {left} never close"
        self._check_accounts()

    def _check_accounts(self) -> None:
        """Nothing is on its way any more: every message that was sent has come to something."""
        accounts = {living.worker.id: living.worker.accounts.now() for living, _ in self.partitions.values()}
        found = balance(accounts, is_at_rest=True)
        assert not differences(found), differences(found)
        taken = {each.name: each.counts.taken for each in found if each.kind is AccountKind.INPUT}
        sent = Counter(source for source, _ in self.case.messages)
        assert {source.name: taken[source.name] for source in self.graph.sources} == {
            source.name: sent[source.name] for source in self.graph.sources
        }
        dead = sum(each.counts.dead_letters + each.counts.firings_failed for each in found)
        assert dead <= self.delivered.counters["dead_letters"] + self.delivered.counters["skipped"]

    def _drain(self) -> None:
        while waiting := [channel for channel, values in self._channels.items() if values]:
            channel = self._random.choice(waiting)
            value = self._channels[channel].popleft()
            self.fold(channel[0], channel[1], value)
            if self._random.random() < 0.05:
                self.fold(channel[0], channel[1], value)
            if self._coming and self._random.random() < 0.1:
                self._name_version(*self._coming.popleft())

    def _name_version(self, join: str, rows: list[Any]) -> None:
        """Each partition gets a record that names a version; at times before the one of the version before."""
        if (stored := self._references.store(join, rows)) is None:
            return
        stage, version = stored
        self._versions[version] = join, version.number, rows
        value = reference_record(stage, self._random.randrange(_VERSION_NS_MAX), version)
        for partition in range(self.case.partitions):
            channel = self._channels[stage, partition, "references"]
            channel.insert(0 if self._random.random() < 0.2 else len(channel), value)

    def _sent(self) -> list[tuple[str, int, bytes]]:
        """The frames of sources, as a sender cuts and partitions them."""
        found: list[tuple[str, int, bytes]] = []
        sequences: Counter[tuple[str, int]] = Counter()
        highest: Counter[str] = Counter()
        clock_ns = 0
        for number, (source, messages) in enumerate(self._cut()):
            clock_ns += self._random.randrange(30)
            bound_ns = self.graph[source].out_of_order_ns
            by_partition: defaultdict[int, list[Any]] = defaultdict(list)
            before: defaultdict[int, list[int]] = defaultdict(list)
            has_watermarks = self.plan.stage_of(source).needs_each_watermark
            for message in messages:
                key = key_of(self.graph[source], message)
                of = number % self.case.partitions if key is None else partition_of(key, self.case.partitions)
                by_partition[of].append(message)
                at_ns = clock_ns if bound_ns is None else message.at
                before[of].append(max(highest[source] - (bound_ns or 0), 0))
                has_watermarks |= at_ns < before[of][-1]
                highest[source] = max(highest[source], at_ns)
            watermark_ns = max(highest[source] - (bound_ns or 0), 0)
            for partition, part in sorted(by_partition.items()):
                sequences[source, partition] += 1
                value = data(
                    f"{source}/client",
                    sequences[source, partition],
                    part,
                    ingest_ns=clock_ns,
                    watermark_ns=watermark_ns,
                    message_watermarks=encode_times(np.array(before[partition])) if has_watermarks else b"",
                )
                found.append((source, partition, value))
            for partition in range(self.case.partitions):
                if self._random.random() < 0.2:
                    moved = tick_record("log", clock_ns, {Origin(f"{source}/client"): watermark_ns})
                    found.append((source, partition, moved))
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
                if is_early and len({decode(values[0]).origin, decode(values[1]).origin}) == 1:
                    retried.append(values[1])
                retried.append(values.popleft())
            self._channels[channel] = retried

    def fold(self, stage: str, partition: int, value: bytes) -> None:
        living, interpreter = self.partitions[stage, partition]
        frame = decode(value)
        outcomes: list[MessageOutcome] = []
        stopped = poison = None
        records: list[OutputRecord] = []
        living.die()
        try:
            records = living.fold(value)
        except PoisonError as error:
            poison = error
        try:
            outcomes.extend(meaning_of(interpreter, frame, self.plan.stage(stage), self._versions))
        except StoppedError as error:
            stopped = (error.computation, error.index)
        if poison is not None:
            if (poison.computation, poison.index) != stopped:
                raise AssertionError(f"{poison}; the interpreter stops at {stopped}") from poison
            raise Stop from poison
        assert stopped is None, f"{stopped} should have stopped {stage}/{partition}"
        self._compare(frame, outcomes, records)
        # Windows and joins that have nothing of a key any more count there, too, when that is found.
        names = [each for each in COUNTERS if each != "deleted" or not self._empties]
        counted = {name: getattr(living.worker.counters, name) for name in names}
        counters = {name: interpreter.counters[name] for name in names}
        assert counted == counters, f"counted {counted}, not {counters}"
        for node in self.graph.nodes:
            if node.windows is not None and node.name in living.worker.tables:
                keys = sum(name == node.name for name, _ in interpreter.windows)
                assert living.worker.tables[node.name].keys == keys, f"keys of {node.name}"
            if node.kind == "stateful" and node.name in living.worker.tables:
                own_keys = interpreter.states.keys(node)
                assert living.worker.tables[node.name].keys == len(own_keys), f"keys of {node.name}"
            if node.join is not None and node.name in living.worker.tables:
                own = [of for (name, _), of in interpreter.joins.items() if name == node.name]
                assert living.worker.tables[node.name].keys == sum(of.is_known for of in own)
        self.pass_on(stage, partition, records)

    def _compare(self, frame: Frame, outcomes: list[MessageOutcome], records: list[OutputRecord]) -> None:
        results: Results = defaultdict(list)
        dead_letters: list[tuple[str, str, int, str]] = []
        for outcome in outcomes:
            for target, result in outcome.results:
                shown = (result, outcome.at_ns) if target in self._timed else result
                results[target, self._apart(target, result)].append(shown)
            index = shown_index(outcome.index, outcome.text)
            dead_letters += [(*dead_letter, index, outcome.text) for dead_letter in outcome.dead_letters]
        delivered = self._results(records)
        assert delivered == results, f"gave {dict(delivered)}, not {dict(results)}"
        dead = dead_letters_in(records)
        found = [
            (each.computation, reason_in(each), shown_index(each.index, text), text)
            for each in dead
            for text in (each.message.decode(),)
        ]
        # Order holds among messages, computations, and what one computation says of one message, but not between
        # messages and what fires.
        for fired in (True, False):
            own, right = (
                [each[:3] for each in some if ('"timer":' in each[3]) is fired]
                for some in (found, dead_letters)
            )
            assert own == right, f"dead letters {found}, not {dead_letters}"
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
            if frame.kind is FrameKind.TICK:
                continue
            target = self.graph[frame.stream]
            is_sink = target.kind == "sink"
            stage = self.plan.stage_of(target.name).name if not is_sink else ""
            topic = sink_topic(APPLICATION, target.name) if is_sink else stage_topic(APPLICATION, stage)
            assert record.topic == topic
            times = event_times_in(frame) if target.name in self._timed else []
            for number, result in enumerate(messages_in(frame)):
                apart = type(result).__name__ if is_sink else record.partition
                found[target.name, apart].append((result, times[number]) if times else result)
        return found

    def pass_on(self, stage: str, partition: int, records: list[OutputRecord]) -> None:
        for record in records:
            frame = decode(record.value)
            if record.topic == dead_letter_topic(APPLICATION):
                for each in dead_letters_in([record]):
                    self.delivered.dead_letters[each.computation, reason_in(each), each.message.decode()] += 1
            elif frame.kind is not FrameKind.TICK and frame.stream in self._sinks:
                for result in messages_in(frame):
                    self.delivered.add(frame.stream, result)
            else:
                to = stage_of_topic(APPLICATION, record.topic)
                self._channels[to, record.partition, f"{stage}/{partition}"].append(record.value)
