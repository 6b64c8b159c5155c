"""One repeat of a run: starts a target, sends the load, checks the results and measures. Wrong results are an error.

target starts ─> `first()` is processed ─> clients begin together, faults are injected ─> all is durable, all results
are there ─> the load's own model says whether they are right ─> metrics
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
from bettong.lab.latency_parts import part_points
from bettong.lab.load import LabLoad, Pace, TopicLoad
from bettong.lab.measures import (
    Measured,
    cpu_shares,
    latencies,
    part_means,
    partition_pauses,
    series_points,
    usages,
)
from bettong.lab.reading import LatencyRecorder, ResultReading, SinkReading, TopicReading
from bettong.lab.series import SeriesPoint
from bettong.lab.spec import RunSpec
from bettong.lab.statistics.progress import throughput_points
from bettong.lab.table_load import load_of
from bettong.lab.target.cluster_target import cluster_target
from bettong.lab.target.suite_target import suite_target
from bettong.lab.target.target import RunTarget
from bettong.lab.target.topics import topics_of
from bettong.local.interrupts import terminable

SETTLE_S_MAX = 600.0
# After the last expected result: long enough for duplicates to arrive.
_QUIET_S = 1.0
# A poll takes some 5 ms of CPU; and a run may take only seconds.
_POSITIONS_EVERY_S = 1.0
# How often the target is checked while results are awaited.
_CHECK_EVERY_S = 5.0
# Fewer than a sender accepts at once.
_FIRST_FRAME_MESSAGES = 10_000


@dataclass(slots=True)
class Repeat:
    """The measurements of one repeat. `facts`: of its target, in addition to those of this machine.

    `positions`: the processor's progress, by seconds since the run began.
    """

    measured: list[Measured] = field(default_factory=list)
    series: list[SeriesPoint] = field(default_factory=list)
    facts: Mapping[str, str] = field(default_factory=dict)
    positions: Sequence[LogPosition] = ()


@dataclass(frozen=True, slots=True)
class _Running:
    """A started target with clients and readers, ready to begin."""

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
    """Runs one repeat on its own suite or release, which is removed at the end, also after Ctrl-C and SIGTERM.

    Raises LateError when what was sent does not get there or come out in time, LabError for wrong results.

    `settle_s_max`: how long to wait for results after all messages are durable. `positions_every_s`: how often to poll
    the processor's progress. `say`: called with the current activity.
    """
    pace = Pace(spec.steps)
    messages = spec.all_messages
    say("making the load and its expected results")
    load = load_of(spec)
    planned = plan(load_application(spec.application))
    _check_topics(spec, load, planned)
    sizes = _result_bytes(spec, load)
    with terminable(), _running(spec, load, sizes, planned, say) as running:
        say("waiting for the clients, which make the load, too")
        begin_s = running.clients.begin()
        say("sending the load")
        for each in running.readings.values():
            each.latency.begin_s = begin_s
        with running.target.collecting(begin_s, positions_every_s=positions_every_s) as collected:
            injected = running.target.inject_faults(begin_s)
            running.clients.finish(spec.sending_s_max, running.target.check)
            if (left_s := begin_s + spec.lasting_s - time.time()) > 0:
                running.target.wait(left_s)  # for steps without messages
            say(f"waiting for the last results, at most {settle_s_max:g} s")
            _await_results(running.readings, settle_s_max, running.target.check)
        running.target.wait(_QUIET_S)
        _check_readings(running.readings)
    _check_results(spec, load, running.readings, injected)
    if spec.steps and isinstance(load, TopicLoad):
        for each in running.readings.values():
            if isinstance(each, TopicReading):
                each.measure_latencies(lambda result: begin_s + pace.due_s(load.message_of(result)))
    positions = [replace(each, at_s=each.at_s - begin_s) for each in collected.positions]
    repeat = Repeat(
        series=[*collected.usage.points, *throughput_points(positions)],
        positions=positions,
        facts=collected.facts,
    )
    repeat.series += series_points(running.readings, collected.lag, collected.gc_pauses, injected, begin_s)
    if not spec.steps:
        end_s = max((each.last_s for each in running.readings.values()), default=time.time())
        repeat.measured.append(Measured("throughput", "messages/s", messages / (end_s - begin_s)))
    repeat.measured += latencies(spec.steps, running.readings)
    repeat.series += part_points(collected.parts, begin_s)
    repeat.measured += part_means(collected.parts, begin_s + spec.warm_up_s)
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
    """`sizes`: see `LabLoad.result_bytes`, computed before this because it may use all of the machine's CPU."""
    with ExitStack() as opened:
        say("starting the application")
        target = opened.enter_context(_target(spec, planned, say))
        feeding = opened.enter_context(clients(spec, target.sender, target.topics))
        say("waiting until the first messages are processed")
        _send_first(target, load)
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
            f"{spec.application} reads or writes topics by itself: the run's Kafka for them is on this machine, where"
            " pods cannot reach it; run it here, without the table kubernetes"
        )
    if sinks and spec.steps and not isinstance(load, TopicLoad):
        raise LabError(
            f"{spec.load}: sinks write into topics, whose records do not say when their message was due: add"
            " message_of(result) to the load"
        )


def _result_bytes(spec: RunSpec, load: LabLoad) -> Mapping[str, int]:
    sizes = load.result_bytes()
    if not spec.steps and not any(sizes.values()):
        raise LabError(
            f"{spec.name}: its load expects no results, so nothing says when all messages are processed"
        )
    return sizes


def _reading(sink: str, size: int, spec: RunSpec, target: RunTarget) -> ResultReading:
    latency = LatencyRecorder(spec.steps, warm_up_s=spec.warm_up_s)
    if target.topics is not None and sink in target.topics.of_sinks:
        return TopicReading(target.topics, sink, size, latency)
    return SinkReading(target.receiver, sink, size, latency)


def _send_first(target: RunTarget, load: LabLoad) -> None:
    """Sends what comes before the clock starts, and waits until it is processed."""
    parts = load.first()
    for part in parts:
        with open_feed(part.source, target.sender, target.topics) as feed:
            for start in range(0, part.messages, _FIRST_FRAME_MESSAGES):
                feed.send_columns(dict(part.slice(start, start + _FIRST_FRAME_MESSAGES).columns))
    if parts:
        target.await_folded(sum(part.messages for part in parts))


def _await_results(
    readings: Mapping[str, ResultReading], settle_s_max: float, check: Callable[[], None]
) -> None:
    """Raises LabError if a sink could not be read, even if others are late; else LateError if one lacks results.

    `check`: called meanwhile; may raise.
    """
    deadline = time.monotonic() + settle_s_max
    for each in readings.values():
        while not each.done.wait(min(_CHECK_EVERY_S, max(0.0, deadline - time.monotonic()))):
            check()
            if time.monotonic() >= deadline:
                break
    _check_readings(readings)
    for sink, each in readings.items():
        if not each.done.is_set():
            raise LateError(
                f"sink {sink}: not all results came within {settle_s_max:g} s of the last message, only"
                f" {len(each.content):,} of the {each.size:,} bytes that the load expects"
            )


def _check_readings(readings: Mapping[str, ResultReading]) -> None:
    failed = [f"sink {sink}: {each.failure}" for sink, each in readings.items() if each.failure is not None]
    if failed:
        raise LabError("; ".join(failed))


def _check_results(
    spec: RunSpec, load: LabLoad, readings: Mapping[str, ResultReading], injected: Sequence[Injected]
) -> None:
    """Raises LabError unless the results are right and each fault was injected."""
    for each in injected:
        if each.missed:
            raise LabError(
                f"{spec.name}: the fault {str(each.fault).strip()} was not injected: {each.missed}"
            )
    if fault := load.wrong({sink: each.results for sink, each in readings.items()}):
        raise LabError(f"{spec.name}: the results are wrong: {fault}")
