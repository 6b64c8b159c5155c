"""One repeat of a run: a suite of its own, the load, and what was measured. Wrong results are not measured.

suite starts ─> what comes first is folded ─> clients begin together ─> all is durable, all results are there
─> the load's own model says whether they are right ─> metrics
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median

from hdrh.histogram import HdrHistogram

from bettong.application.plan import plan
from bettong.chaos.growth import Sample
from bettong.chaos.lag import LagWatch
from bettong.client.sender import Sender
from bettong.edges.application_file import load as load_application
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import LabError, LateError
from bettong.lab.clients import clients
from bettong.lab.folding import await_folded
from bettong.lab.load import LabLoad, Pace, make_load
from bettong.lab.reading import SinkReading
from bettong.lab.sampling import LAG, LATENCY, SeriesPoint, UsageSampling
from bettong.lab.spec import LoadStep, RunSpec
from bettong.local.options import SuiteOptions
from bettong.local.record import SuiteRecord
from bettong.local.suite import Suite
from bettong.services import PROCESSOR

PERCENTILES = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
SETTLE_S_MAX = 600.0
_MS_NS = 1e6


@dataclass(frozen=True, slots=True)
class Measured:
    """A value of a metric in one repeat. `histogram`: of all latencies, in ns; HDR's compressed encoding, in base64."""

    metric: str
    unit: str
    value: float
    histogram: str = ""


@dataclass(slots=True)
class Repeat:
    """What one repeat gave."""

    measured: list[Measured] = field(default_factory=list)
    series: list[SeriesPoint] = field(default_factory=list)


def once(spec: RunSpec, *, settle_s_max: float = SETTLE_S_MAX) -> Repeat:
    """Runs it on a suite of its own. Raises LateError when results do not come in time, LabError when they are wrong.

    `settle_s_max`: to come to the end of what was sent, after it is durable.
    """
    messages = spec.messages or Pace(spec.steps).messages
    load = make_load(spec.load, messages, spec.seed)
    planned = plan(load_application(spec.application))
    options = SuiteOptions(
        application=spec.application,
        partitions=spec.partitions,
        schedule=spec.schedule,
        compiled=spec.compiled,
        settings=spec.settings,
    )
    with Suite(options) as suite, clients(spec, suite.record.sender) as feeding, ExitStack() as opened:
        _fold_first(suite.record, load)
        readings = {
            sink: opened.enter_context(
                SinkReading(suite.record.receiver, sink, size, spec.steps, warm_up_s=spec.warm_up_s)
            )
            for sink, size in load.result_bytes().items()
        }
        begin_s = feeding.begin()
        for each in readings.values():
            each.begin_s = begin_s
        lasting_s = sum(step.seconds for step in spec.steps)
        with (
            UsageSampling(lambda: suite.record.services) as usage,
            LagWatch(planned, lambda: suite.record) as lag,
        ):
            feeding.finish(lasting_s)
            _await(readings, settle_s_max)
    if fault := load.wrong({sink: bytes(each.content) for sink, each in readings.items()}):
        raise LabError(f"{spec.name}: the results are wrong: {fault}")
    end_s = max((each.last_s for each in readings.values()), default=time.time())
    repeat = Repeat(series=[*usage.points, *_course(readings, lag.samples, begin_s)])
    if not spec.steps:
        repeat.measured.append(Measured("throughput", "messages/s", messages / (end_s - begin_s)))
    repeat.measured += _latencies(spec.steps, readings)
    repeat.measured += _usage(usage, messages)
    return repeat


def _fold_first(record: SuiteRecord, load: LabLoad) -> None:
    """Feeds what comes before the clock starts, and waits until it is folded."""
    parts = load.first()
    for part in parts:
        with Sender(record.sender, part.source) as sender:
            sender.send_columns(dict(part.columns))
    with RedisStore(record.redis_connection, record.name) as store:
        await_folded(LiveMetrics(store), sum(part.messages for part in parts))


def _await(readings: Mapping[str, SinkReading], settle_s_max: float) -> None:
    deadline = time.monotonic() + settle_s_max
    for sink, each in readings.items():
        if not each.done.wait(max(0.0, deadline - time.monotonic())):
            raise LateError(
                f"sink {sink}: {len(each.content):,} bytes of results came, and not all after {settle_s_max:g} s"
            )
        if each.failure is not None:
            raise LabError(f"sink {sink}: {each.failure}")


def _latencies(steps: Sequence[LoadStep], readings: Mapping[str, SinkReading]) -> list[Measured]:
    """Of each step and sink, at each percentile."""
    found = []
    for number, step in enumerate(steps):
        for sink, reading in readings.items():
            histogram: HdrHistogram = reading.histograms[number]
            if not histogram.get_total_count():
                continue
            encoded = histogram.encode().decode()
            for each in PERCENTILES:
                name = f"{sink} at {step.messages_per_s:,.0f}/s, " + ("max" if each == 100 else f"p{each:g}")
                value_ms = histogram.get_value_at_percentile(each) / _MS_NS
                found.append(Measured(name, "ms", value_ms, encoded if each == PERCENTILES[0] else ""))
    return found


def _course(
    readings: Mapping[str, SinkReading], lag: Sequence[Sample], begin_s: float
) -> Iterator[SeriesPoint]:
    """The median latency of each second, and the lag."""
    for sink, reading in readings.items():
        for second, lates_ms in sorted(reading.lates_ms.items()):
            yield SeriesPoint(second, f"{sink}: {LATENCY}", median(lates_ms))
    for each in lag:
        yield SeriesPoint(each.at_s - begin_s, f"{PROCESSOR.name}: {LAG}", each.value)


def _usage(usage: UsageSampling, messages: int) -> list[Measured]:
    cpu = [
        Measured(f"CPU of {target}, a million messages", "s", spent_s * 1e6 / messages)
        for target, spent_s in usage.cpu_s.items()
        if spent_s > 0
    ]
    memory = [
        Measured(f"memory of {target}, at most", "MB", most) for target, most in usage.memory_mb.items()
    ]
    return [Measured("CPU of all, a million messages", "s", sum(each.value for each in cpu)), *cpu, *memory]
