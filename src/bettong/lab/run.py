"""One repeat of a run: a target of its own, the load, and what was measured. Wrong results are not measured.

target starts ─> what comes first is folded ─> clients begin together, faults come ─> all is durable, all results are
there ─> the load's own model says whether they are right ─> metrics
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from bettong.application.plan import Plan, plan
from bettong.chaos.log_position import LogPosition
from bettong.chaos.nemeses import Injected
from bettong.edges.application_file import load as load_application
from bettong.errors import LabError, LateError
from bettong.lab.clients import Clients, clients, open_feed
from bettong.lab.load import LabLoad, Pace, TopicLoad
from bettong.lab.measures import Measured, course, cpu_shares, latencies, partition_pauses, usages
from bettong.lab.reading import Lateness, ResultReading, SinkReading, TopicReading
from bettong.lab.series import SeriesPoint
from bettong.lab.spec import RunSpec
from bettong.lab.statistics.progress import taken
from bettong.lab.table_load import load_of
from bettong.lab.target.cluster_target import cluster_target
from bettong.lab.target.suite_target import suite_target
from bettong.lab.target.target import RunTarget
from bettong.lab.target.topics import topics_of
from bettong.local.interrupts import terminable

SETTLE_S_MAX = 600.0
# After all is there: long enough for what is too much to come.
_QUIET_S = 1.0
# A poll takes some 5 ms of CPU; and a run may be over after some seconds.
_POSITIONS_EVERY_S = 1.0
# Fewer than a sender takes at once.
_FIRST_FRAME_MESSAGES = 10_000


@dataclass(slots=True)
class Repeat:
    """What one repeat gave. `facts`: what its target was, beyond this machine.

    `positions`: how far the processor was, by seconds since the run began.
    """

    measured: list[Measured] = field(default_factory=list)
    series: list[SeriesPoint] = field(default_factory=list)
    facts: Mapping[str, str] = field(default_factory=dict)
    positions: Sequence[LogPosition] = ()


@dataclass(frozen=True, slots=True)
class _Running:
    """What runs, ready to begin."""

    target: RunTarget
    clients: Clients
    readings: Mapping[str, ResultReading]


def once(
    spec: RunSpec,
    *,
    settle_s_max: float = SETTLE_S_MAX,
    positions_every_s: float = _POSITIONS_EVERY_S,
    say: Callable[[str], None] = lambda _: None,
) -> Repeat:
    """Runs it on a suite, or a release, of its own, which goes at its end, also after Ctrl-C and SIGTERM.

    Raises LateError when results do not come in time, LabError when they are wrong.

    `settle_s_max`: to come to the end of what was sent, after it is durable. `positions_every_s`: asks so often how far
    the processor is. `say`: gets what it is doing.
    """
    pace = Pace(spec.steps)
    messages = spec.all_messages
    load = load_of(spec)
    planned = plan(load_application(spec.application))
    _check_topics(spec, load, planned)
    say("what must come out")
    sizes = load.result_bytes()
    with terminable(), _running(spec, load, sizes, planned, say) as running:
        begin_s = running.clients.begin()
        say("the load runs")
        for each in running.readings.values():
            each.lateness.begin_s = begin_s
        with running.target.collecting(begin_s, positions_every_s=positions_every_s) as collected:
            injected = running.target.disturb(begin_s)
            running.clients.finish(spec.lasting_s)
            if (left_s := begin_s + spec.lasting_s - time.time()) > 0:
                running.target.rest(left_s)  # of steps without messages
            say("the last results")
            _await(running.readings, settle_s_max)
        running.target.rest(_QUIET_S)
    _check(spec, load, running.readings, injected)
    if spec.steps and isinstance(load, TopicLoad):
        for each in running.readings.values():
            if isinstance(each, TopicReading):
                each.measure(lambda result: begin_s + pace.due_s(load.message_of(result)))
    positions = [replace(each, at_s=each.at_s - begin_s) for each in collected.positions]
    repeat = Repeat(
        series=[*collected.usage.points, *taken(positions)], positions=positions, facts=collected.facts
    )
    repeat.series += course(running.readings, collected.lag, collected.gc_pauses, injected, begin_s)
    if not spec.steps:
        end_s = max((each.last_s for each in running.readings.values()), default=time.time())
        repeat.measured.append(Measured("throughput", "messages/s", messages / (end_s - begin_s)))
    repeat.measured += latencies(spec.steps, running.readings)
    if spec.faults:
        repeat.measured += partition_pauses(running.readings, collected.changes, begin_s + spec.warm_up_s)
    if spec.lasting_s > spec.warm_up_s:
        repeat.measured += cpu_shares(collected.usage, spec.warm_up_s, spec.lasting_s)
    repeat.measured += usages(collected.usage, collected.gc_pauses, messages)
    return repeat


@contextmanager
def _running(
    spec: RunSpec, load: LabLoad, sizes: Mapping[str, int], planned: Plan, say: Callable[[str], None]
) -> Iterator[_Running]:
    """`sizes`: see `LabLoad.result_bytes`, which may need this machine for itself for a while."""
    with ExitStack() as opened:
        target = opened.enter_context(_target(spec, planned, say))
        feeding = opened.enter_context(clients(spec, target.sender, target.topics))
        _fold_first(target, load)
        readings = {
            sink: opened.enter_context(_reading(sink, size, spec, target)) for sink, size in sizes.items()
        }
        yield _Running(target, feeding, readings)


def _target(spec: RunSpec, planned: Plan, say: Callable[[str], None]) -> AbstractContextManager[RunTarget]:
    if spec.kubernetes is None:
        return suite_target(spec, planned)
    return cluster_target(spec, spec.kubernetes, say=say)


def _check_topics(spec: RunSpec, load: LabLoad, planned: Plan) -> None:
    sources, sinks = topics_of(planned)
    if spec.kubernetes is not None and (sources or sinks):
        raise LabError(
            f"{spec.application} reads or writes topics by itself: a run's own Kafka holds them, which lies on this"
            " machine, where no pod reaches it; run it here, without the table kubernetes"
        )
    if sinks and spec.steps and not isinstance(load, TopicLoad):
        raise LabError(
            f"{spec.load}: sinks write into topics, whose records do not say when their message was due: the load"
            " needs message_of(result)"
        )


def _reading(sink: str, size: int, spec: RunSpec, target: RunTarget) -> ResultReading:
    lateness = Lateness(spec.steps, warm_up_s=spec.warm_up_s)
    if target.topics is not None and sink in target.topics.of_sinks:
        return TopicReading(target.topics, sink, size, lateness)
    return SinkReading(target.receiver, sink, size, lateness)


def _fold_first(target: RunTarget, load: LabLoad) -> None:
    """Feeds what comes before the clock starts, and waits until it is folded."""
    parts = load.first()
    for part in parts:
        with open_feed(part.source, target.sender, target.topics) as feed:
            for start in range(0, part.messages, _FIRST_FRAME_MESSAGES):
                feed.send_columns(dict(part.slice(start, start + _FIRST_FRAME_MESSAGES).columns))
    if parts:
        target.await_folded(sum(part.messages for part in parts))


def _await(readings: Mapping[str, ResultReading], settle_s_max: float) -> None:
    deadline = time.monotonic() + settle_s_max
    for sink, each in readings.items():
        if not each.done.wait(max(0.0, deadline - time.monotonic())):
            raise LateError(
                f"sink {sink}: {len(each.content):,} bytes of results came, and not all after {settle_s_max:g} s"
            )
        if each.failure is not None:
            raise LabError(f"sink {sink}: {each.failure}")


def _check(
    spec: RunSpec, load: LabLoad, readings: Mapping[str, ResultReading], injected: Sequence[Injected]
) -> None:
    """Raises LabError unless the results are right and each fault was done."""
    for each in injected:
        if each.missed:
            raise LabError(f"{spec.name}: the fault {str(each.fault).strip()} was not done: {each.missed}")
    if fault := load.wrong({sink: each.results for sink, each in readings.items()}):
        raise LabError(f"{spec.name}: the results are wrong: {fault}")
