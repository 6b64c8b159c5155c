"""One repeat of a run: a suite of its own, the load, and what was measured. Wrong results are not measured.

suite starts ─> what comes first is folded ─> clients begin together, faults come ─> all is durable, all results are
there ─> the load's own model says whether they are right ─> metrics
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from bettong.application.plan import Plan, plan
from bettong.chaos.injecting import inject, restarts
from bettong.chaos.lag import LagWatch
from bettong.chaos.nemeses import Arena, Injected, Nemesis
from bettong.chaos.spec import OtherProcess
from bettong.chaos.timetable import PlannedFault
from bettong.edges.application_file import load as load_application
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import LabError, LateError
from bettong.lab.clients import Clients, clients, open_feed
from bettong.lab.folding import await_folded
from bettong.lab.gc_pauses import logging_pauses, pauses
from bettong.lab.load import LabLoad, Pace, TopicLoad, make_load
from bettong.lab.measures import Measured, course, latencies, usages
from bettong.lab.reading import Lateness, ResultReading, SinkReading, TopicReading
from bettong.lab.sampling import SeriesPoint, UsageSampling
from bettong.lab.spec import RunSpec
from bettong.lab.topics import RunTopics, run_topics
from bettong.local.options import SuiteOptions
from bettong.local.record import SuiteRecord
from bettong.local.suite import Suite
from bettong.services import PROCESSOR

SETTLE_S_MAX = 600.0
# After all is there: long enough for what is too much to come.
_QUIET_S = 1.0
_CONNECTIONS = "connections"
_GC_LOG = "gc_log"


@dataclass(slots=True)
class Repeat:
    """What one repeat gave."""

    measured: list[Measured] = field(default_factory=list)
    series: list[SeriesPoint] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Running:
    """What runs, ready to begin."""

    suite: Suite
    clients: Clients
    readings: Mapping[str, ResultReading]
    nemesis: Nemesis
    folder: Path


def once(spec: RunSpec, *, settle_s_max: float = SETTLE_S_MAX) -> Repeat:
    """Runs it on a suite of its own. Raises LateError when results do not come in time, LabError when they are wrong.

    `settle_s_max`: to come to the end of what was sent, after it is durable.
    """
    pace = Pace(spec.steps)
    messages = spec.messages or pace.messages
    load = make_load(spec.load, messages, spec.seed)
    planned = plan(load_application(spec.application))
    faults = spec.planned_faults
    injected: list[Injected] = []
    with _running(spec, load, planned, faults) as running:
        begin_s = running.clients.begin()
        for each in running.readings.values():
            each.lateness.begin_s = begin_s
        with (
            UsageSampling(lambda: running.suite.record.services, begin_s) as usage,
            LagWatch(planned, lambda: running.suite.record) as lag,
        ):
            inject(faults, running.nemesis, running.suite, start_s=begin_s, injected=injected)
            running.clients.finish(spec.lasting_s)
            _await(running.readings, settle_s_max)
        running.suite.wait_with_all(_QUIET_S)
        gc_pauses = [each for each in pauses(running.folder) if each.at_s >= begin_s]
    _check(spec, load, running.readings, injected)
    if spec.steps and isinstance(load, TopicLoad):
        for each in running.readings.values():
            if isinstance(each, TopicReading):
                each.measure(lambda result: begin_s + pace.due_s(load.message_of(result)))
    repeat = Repeat(series=[*usage.points])
    repeat.series += course(running.readings, lag.samples, gc_pauses, injected, begin_s)
    if not spec.steps:
        end_s = max((each.last_s for each in running.readings.values()), default=time.time())
        repeat.measured.append(Measured("throughput", "messages/s", messages / (end_s - begin_s)))
    repeat.measured += latencies(spec.steps, running.readings)
    repeat.measured += usages(usage, gc_pauses, messages)
    return repeat


@contextmanager
def _running(
    spec: RunSpec, load: LabLoad, planned: Plan, faults: Sequence[PlannedFault]
) -> Iterator[_Running]:
    with ExitStack() as opened:
        folder = Path(opened.enter_context(TemporaryDirectory(prefix="bettong-lab-")))
        topics = opened.enter_context(
            run_topics(planned, spec.partitions, folder, connections=spec.settings.get(_CONNECTIONS))
        )
        if topics is not None and topics.of_sinks and spec.steps and not isinstance(load, TopicLoad):
            raise LabError(
                f"{spec.load}: sinks write into topics, whose records do not say when their message was due: the load"
                " needs message_of(result)"
            )
        suite = opened.enter_context(Suite(_options(spec, topics, faults, folder)))
        feeding = opened.enter_context(clients(spec, suite.record.sender, topics))
        _fold_first(suite.record, topics, load)
        readings = {
            sink: opened.enter_context(_reading(sink, size, spec, suite.record, topics))
            for sink, size in load.result_bytes().items()
        }
        nemesis = opened.enter_context(Nemesis(Arena(lambda: suite.record, {})))
        yield _Running(suite, feeding, readings, nemesis, folder)


def _options(
    spec: RunSpec, topics: RunTopics | None, faults: Sequence[PlannedFault], folder: Path
) -> SuiteOptions:
    ours = {_GC_LOG: str(folder)} | ({} if topics is None else {_CONNECTIONS: str(topics.connections)})
    return SuiteOptions(
        application=spec.application,
        partitions=spec.partitions,
        schedule=spec.schedule,
        compiled=spec.compiled,
        settings=spec.settings | ours,
        environment={
            PROCESSOR.name: logging_pauses(folder, OtherProcess.JVM),
            OtherProcess.KAFKA: logging_pauses(folder, OtherProcess.KAFKA),
        },
        restarts=restarts(faults),
    )


def _reading(
    sink: str, size: int, spec: RunSpec, record: SuiteRecord, topics: RunTopics | None
) -> ResultReading:
    lateness = Lateness(spec.steps, warm_up_s=spec.warm_up_s)
    if topics is not None and sink in topics.of_sinks:
        return TopicReading(topics, sink, size, lateness)
    return SinkReading(record.receiver, sink, size, lateness)


def _fold_first(record: SuiteRecord, topics: RunTopics | None, load: LabLoad) -> None:
    """Feeds what comes before the clock starts, and waits until it is folded."""
    parts = load.first()
    for part in parts:
        with open_feed(part.source, record.sender, topics) as feed:
            feed.send_columns(dict(part.columns))
    with RedisStore(record.redis_connection, record.name) as store:
        await_folded(LiveMetrics(store), sum(part.messages for part in parts))


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
    if fault := load.wrong({sink: bytes(each.content) for sink, each in readings.items()}):
        raise LabError(f"{spec.name}: the results are wrong: {fault}")
