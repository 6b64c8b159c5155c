"""Runs an application in memory: inputs are data, and the outcome can be read after each.

Parsing, partitioning by key, frames, delivery rule, workers, snapshots and routing between stages are those of the
services; only Kafka, Redis and Spark are left out. Nothing waits: only inputs make time pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from bettong.application.application import Application
from bettong.application.execution_mode import ExecutionMode
from bettong.application.nodes.stateful import Stateful
from bettong.application.plan import Plan, plan
from bettong.application.windows.partials import Partials
from bettong.errors import CaseError
from bettong.frames.frame import CLOCK_NS_MAX, reference_record, tick_record
from bettong.identifiers import PartitionId
from bettong.ingest.session import Append
from bettong.schema.fields import Kind
from bettong.testing.inputs import (
    CRASH,
    RESEND,
    RESTORE,
    SAVE,
    ClientFrame,
    ClockStep,
    EndOfStream,
    Reference,
    Step,
    WatermarkInput,
    read_inputs,
    watermark,
)
from bettong.testing.memory_clients import MemoryClients, newest_ns
from bettong.testing.memory_partition import check_partitions
from bettong.testing.memory_processor import AtEachRecord, MemoryProcessor
from bettong.testing.memory_references import MemoryReferences, load_rows
from bettong.testing.outcome import Outcome, PendingTimer
from bettong.topics import stage_topic
from bettong.worker.balance import Balance, balance
from bettong.worker.kernel import KernelCache
from bettong.worker.stage_program import StageProgram, program

# Where the log clock begins when no message has an event time: 1 January 2026.
START_NS = 1_767_225_600_000_000_000
# The time between two TICKs of a stage, and of the processor for a partition in which something is due.
TICK_NS = 200_000_000
# For one step of the clock: enough for a timer that fires each second for a day.
TICKS_MAX = 100_000
# Signs states that are pickles.
_STATE_KEY = b"states of bettong.testing"


class ReadyApplication:
    """An application whose functions are prepared to run; any number of sessions may share it."""

    def __init__(self, app: Application, *, compiled: bool, cache: KernelCache | None = None) -> None:
        """Raises ApplicationError as `plan` and `program` do."""
        self.plan: Plan = plan(app)
        self.programs: Mapping[str, StageProgram] = {
            stage.name: program(stage, compiled=compiled, cache=cache, state_key=_STATE_KEY)
            for stage in self.plan.stages
        }
        # The rows from `load()` of each reference table: loaded once, because sessions are compared.
        self.first_rows = lru_cache(load_rows)

    @property
    def has_compiled(self) -> bool:
        """Whether a function is marked to be compiled."""
        modes = (operator.node.mode for stage in self.plan.stages for operator in stage.operators)
        return ExecutionMode.COMPILED in modes


class AppSession:
    """A running application: `step`, read `outcome`, `step`. For one thread."""

    def __init__(
        self,
        app: Application | ReadyApplication,
        *,
        partitions: int = 1,
        compiled: bool = False,
        at_each_record: AtEachRecord | None = None,
    ) -> None:
        """See `run`."""
        check_partitions(partitions)
        ready = app if isinstance(app, ReadyApplication) else ReadyApplication(app, compiled=compiled)
        self._plan = ready.plan
        self._references = MemoryReferences(ready.plan, ready.first_rows)
        self._processor = MemoryProcessor(
            ready.plan, ready.programs, partitions, at_each_record, self._references
        )
        self._clients = MemoryClients(ready.plan, partitions)
        self._now_ns: int | None = None
        self._steps = 0
        self._ticked_ns = dict.fromkeys(self._processor.partitions, -1)

    def step(self, *inputs: object) -> dict[str, list[Any]]:
        """Performs these inputs; returns the new results of each sink. Raises CaseError, ReplayError."""
        before = {sink: len(results) for sink, results in self._processor.outputs.items()}
        steps = read_inputs(self._plan, inputs, first=self._steps)
        frames = [each for each in steps if isinstance(each, ClientFrame)]
        if self._now_ns is None:
            self._now_ns = self._start_ns(steps, frames)
        self._append(self._clients.connect(frames, self._now_ns))
        for each in steps:
            try:
                self._perform(each)
            except CaseError as error:
                raise CaseError(f"input {self._steps}: {error}") from None
            self._steps += 1
        return {sink: results[before[sink] :] for sink, results in self._processor.outputs.items()}

    def finish(self, until: int | datetime | None = None) -> Outcome:
        """The outcome once all stages know the watermark; with `until`, after moving it there."""
        if until is not None:
            self.step(watermark(until))
        if self._now_ns is not None and any(stage.needs_time for stage in self._plan.stages):
            self._pass_time(self._now_ns + TICK_NS * (len(self._plan.stages) + 1))
        return self.outcome

    @property
    def now_ns(self) -> int | None:
        """The log clock; None before the first input."""
        return self._now_ns

    @property
    def outcome(self) -> Outcome:
        """The outcome of all inputs until now."""
        processor = self._processor
        states: dict[str, dict[Any, Any]] = {}
        timers: list[PendingTimer] = []
        counters: dict[str, int] = {}
        for partition in processor.partitions.values():
            worker = partition.worker
            for node in worker.program.stateful():
                is_text = _has_text_keys(worker.program, node)
                found = states.setdefault(node.name, {})
                for key, state in worker.tables[node.name].items():
                    name = key.decode() if is_text and isinstance(key, bytes) else key
                    found[name] = state
                    timers += _pending(node, name, state)
            for field in worker.counters.DESCRIPTOR.fields:
                counters[field.name] = counters.get(field.name, 0) + getattr(worker.counters, field.name)
        return Outcome(
            {sink: list(results) for sink, results in processor.outputs.items()},
            list(processor.dead_letters),
            states,
            timers,
            counters,
            processor.stopped,
            combines=any(
                isinstance(each.node, Partials) for stage in self._plan.stages for each in stage.operators
            ),
            accounts=self._accounts(),
        )

    def _accounts(self) -> list[Balance]:
        """The accounts, with everything folded; none if a partition has stopped half-way."""
        processor = self._processor
        if processor.stopped is not None:
            return []
        now = {id_: partition.worker.accounts.now() for id_, partition in processor.partitions.items()}
        return balance(now, is_at_rest=True)

    def _start_ns(self, steps: list[Step], frames: list[ClientFrame]) -> int:
        """Where the log clock begins: where an input sets it, else late enough for every message."""
        first = next((each for each in steps if not isinstance(each, Reference)), None)
        if isinstance(first, ClockStep) and first.at_ns is not None:
            return first.at_ns
        return newest_ns(self._plan, frames) or START_NS

    def _perform(self, step: Step) -> None:
        now_ns = self._now_ns or 0
        if isinstance(step, Reference):
            self._switch_reference(step, now_ns)
            return
        self._references.begin()
        if isinstance(step, ClientFrame):
            self._append(self._clients.send(step, now_ns))
        elif isinstance(step, WatermarkInput | EndOfStream):
            if isinstance(step, EndOfStream):
                self._append(self._clients.end(step, now_ns))
            else:
                self._append(self._clients.connect_all(now_ns))
                self._append(self._clients.pass_watermark(step, now_ns))
            # Each stage may wait this long before it tells the next one.
            self._pass_time(now_ns + TICK_NS * (len(self._plan.stages) - 1))
        elif isinstance(step, ClockStep):
            self._step_clock(step)
        elif step is CRASH:
            self._processor.crash()
        elif step is RESTORE:
            self._processor.restore()
        elif step is SAVE:
            self._processor.save()
        elif step is RESEND:
            self._append(self._clients.resend(now_ns))
        else:
            timeouts = (source.event_time.idle_timeout_ns for source in self._plan.sources)
            self._pass_time(now_ns + max(each for each in timeouts if each is not None))

    def _switch_reference(self, step: Reference, now_ns: int) -> None:
        """Appends a record that names the new version to each partition, except for the very first version."""
        if (stored := self._references.store(step.join, step.table)) is None:
            return
        stage, version = stored
        topic = stage_topic(self._plan.application, stage)
        for id_ in self._processor.partitions:
            if id_.stage == stage:
                self._processor.append(topic, id_.partition, reference_record(stage, now_ns, version))

    def _step_clock(self, step: ClockStep) -> None:
        now_ns = self._now_ns or 0
        until_ns = now_ns + step.step_ns if step.step_ns is not None else step.at_ns or 0
        if until_ns < now_ns:
            raise CaseError(f"clock(at={until_ns}) goes back: the log clock is at {now_ns}")
        self._pass_time(until_ns)

    def _pass_time(self, until_ns: int) -> None:
        """Advances the log clock. A partition in which something is due on the way gets a TICK at that time."""
        until_ns = min(until_ns, CLOCK_NS_MAX)
        for _ in range(TICKS_MAX):
            due = self._next_due()
            if due is None or due[0] > until_ns or self._processor.stopped is not None:
                self._now_ns = until_ns
                return
            at_ns, id_ = due
            self._now_ns = self._ticked_ns[id_] = max(self._now_ns or 0, at_ns)
            topic = stage_topic(self._plan.application, id_.stage)
            self._processor.append(topic, id_.partition, tick_record(id_.stage, self._now_ns))
        raise CaseError(
            f"the timers due until {until_ns} ns need more than {TICKS_MAX} TICKs; make the step smaller"
        )

    def _next_due(self) -> tuple[int, PartitionId] | None:
        """When, and in which partition, something is due next. What a TICK did not trigger waits for another."""
        found = [
            (due_ns if due_ns > self._ticked_ns[id_] else self._ticked_ns[id_] + TICK_NS, id_)
            for id_, partition in self._processor.partitions.items()
            if (due_ns := partition.worker.due_ns) is not None
        ]
        return min(found, default=None)

    def _append(self, records: Iterable[Append]) -> None:
        for record in records:
            self._processor.append(record.topic, record.partition, record.value)


def run(
    app: Application | ReadyApplication,
    inputs: Iterable[object],
    *,
    until: int | datetime | None = None,
    partitions: int = 1,
    compiled: bool = False,
    at_each_record: AtEachRecord | None = None,
) -> Outcome:
    """Runs an application in memory over these inputs, and returns the outcome.

    An input is `("source", message)`, `("source", [message, ...])` for one frame of several, `frame(...)`,
    `watermark(...)`, `end_stream(...)`, `clock(...)`, `Reference(...)`, CRASH, RESTORE, SAVE, RESEND or
    IDLE.
    `until`: the watermark after the last input (END: all windows are over). Without `clock(at=...)` as the first
    input the log clock begins at the newest event time of the messages. `load()` of a `join_reference` is called once,
    before the first message, unless a `Reference` to it comes first.

    `compiled`: runs marked functions as machine code; compiling takes seconds. `at_each_record`: before each record of
    each partition its worker crashes, or saves and is restored, or saves and continues until it crashes before the next
    one; or each record comes twice.

    Raises CaseError for inputs that do not fit the application, and ReplayError, an AssertionError, where a function
    returns something else when it runs over the same messages again.
    """
    session = AppSession(app, partitions=partitions, compiled=compiled, at_each_record=at_each_record)
    session.step(*inputs)
    return session.finish(until)


def _pending(node: Stateful, key: Any, state: Any) -> list[PendingTimer]:
    if not isinstance(state, dict):
        return []
    times = ((each.field, state.get(each.field)) for each in node.timers)
    return [PendingTimer(node.name, key, field, at) for field, at in times if at is not None]


def _has_text_keys(program_: StageProgram, node: Stateful) -> bool:
    """Whether keys that a table holds as bytes are texts."""
    if node.name not in program_.kernels and node.mode is not ExecutionMode.VECTORIZED:
        return False
    keys = (
        entry.schema.fields[entry.schema.position(entry.key)]
        for entry in program_.stage.inputs
        if isinstance(entry.key, str)
    )
    return all(field.kind is Kind.TEXT for field in keys)
