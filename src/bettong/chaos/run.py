"""A chaos run: the golden output, then the same input again with faults, then the comparison."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from bettong.chaos.accounts import broken_accounts, final_accounts
from bettong.chaos.clock import MovableClock
from bettong.chaos.disk import SmallDisk
from bettong.chaos.feeding import Feeding
from bettong.chaos.following import Followed, grown
from bettong.chaos.golden import Golden, golden, sizes, tables
from bettong.chaos.injecting import Say, inject, restarts
from bettong.chaos.lag import LagWatch
from bettong.chaos.memory import BOUNDS_MB, MemoryWatch
from bettong.chaos.nemeses import Arena, Injected, Nemesis
from bettong.chaos.outputs import Table, differences
from bettong.chaos.preparing import PreparedRun, disk_mb
from bettong.chaos.proxy import Proxy
from bettong.chaos.recovery import FaultSpan, median_and_max, recoveries
from bettong.chaos.report import (
    FaultReport,
    GrowthReport,
    MemoryReport,
    Report,
    SinkReport,
    by_kind,
    fault_report,
    sink_report,
    unmet_recoveries,
)
from bettong.chaos.spec import Link, Spec
from bettong.chaos.watching import ResultWatch, file_endings
from bettong.errors import BettongError, SchemaError
from bettong.local.options import SuiteOptions
from bettong.local.services import instances
from bettong.local.suite import Suite
from bettong.local.usable_cpus import usable_cpus
from bettong.services import SENDER

_POLL_S = 0.5
_SETTLES_MAX = 10
# The wait after all results arrived: long enough for a replay, or a second writer, to add duplicates.
_QUIET_S = 3.0
_EVENTS_MAX = 2000


@dataclass(slots=True)
class _Trial:
    """The results of a disturbed run."""

    start_s: float = 0.0
    injected: list[Injected] = field(default_factory=list)
    faults: list[FaultReport] = field(default_factory=list)
    latency_p50_s: float | None = None
    sinks: list[SinkReport] = field(default_factory=list)
    memory: list[MemoryReport] = field(default_factory=list)
    growth: list[GrowthReport] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


def run(prepared: PreparedRun, say: Say, *, logs: Path | None = None) -> Report:
    """Runs everything: takes minutes. `say` gets lines about what happens, from several threads.

    `logs`: the folder in which to keep the logs of all processes of the disturbed run.

    Returns a Report also when invariants are broken; raises errors only for what keeps a run from beginning.
    """
    spec, started = prepared.spec, datetime.now(UTC)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bettong-chaos-")))
        options = _options(spec, folder)
        should = golden(prepared, options, folder, say)
        trial = _disturbed(prepared, should, options, folder, say, logs)
    return Report(
        name=spec.name,
        application=spec.workload.application,
        seed=spec.seed,
        started=started.isoformat(timespec="seconds"),
        machine=machine_text(),
        duration_s=spec.duration_s,
        messages=sum(feed.total for feed in prepared.feeds),
        golden=prepared.golden_from,
        faults=trial.faults,
        kinds=by_kind(trial.faults),
        latency_p50_s=trial.latency_p50_s,
        sinks=trial.sinks,
        memory=trial.memory,
        growth=trial.growth,
        not_tried=prepared.not_tried,
        events=trial.events,
        broken=[*trial.broken, *_broken(prepared, trial)],
    )


def machine_text() -> str:
    """This machine, as a report names it."""
    return f"{usable_cpus()} cores, {platform.system()}, load average {os.getloadavg()[1]:.1f} (5 minutes)"


def _options(spec: Spec, folder: Path) -> SuiteOptions:
    workload = spec.workload
    environment: dict[str, dict[str, str]] = {}
    if workload.spark:
        settings = folder / "spark"
        settings.mkdir()
        lines = (f"{name} {value}\n" for name, value in workload.spark.items())
        (settings / "spark-defaults.conf").write_text("".join(lines))
        environment["processor"] = {"SPARK_CONF_DIR": str(settings)}
    return SuiteOptions(
        application=workload.application,
        partitions=workload.partitions,
        compiled=workload.compiled,
        standby=workload.standby,
        senders=workload.senders,
        settings=workload.settings,
        environment=environment,
    )


def _disturbed(
    prepared: PreparedRun,
    should: Golden,
    options: SuiteOptions,
    folder: Path,
    say: Say,
    logs: Path | None,
) -> _Trial:
    trial = _Trial()

    def report(line: str) -> None:
        if len(trial.events) < _EVENTS_MAX:
            at = f"{time.time() - trial.start_s:8.3f} s" if trial.start_s else " " * 10
            trial.events.append(f"{at}  {line}")
        say(line)

    with ExitStack() as stack:
        clocks = _clocks(prepared, folder)
        fills = any(each.kind == "fill" for each in prepared.faults)
        size_mb = disk_mb(prepared.spec) if fills else None
        disk = stack.enter_context(SmallDisk(size_mb)) if size_mb is not None else None
        results = disk.suite / "results" if disk is not None else folder / "results"
        options = _disturbable(options, prepared, clocks=clocks, disk=disk, results=results)
        report("disturbed run: starting Kafka, Redis, sender, processor and receiver")
        suite = stack.enter_context(Suite(options, say=report))
        proxies = {
            Link.INGEST: [stack.enter_context(Proxy(address)) for address in suite.record.senders],
            Link.SUBSCRIBE: [stack.enter_context(Proxy(suite.record.receiver))],
        }
        arena = Arena(
            lambda: suite.record,
            proxies,
            source=prepared.plan.sources[0].name,
            sinks=tuple(sink.name for sink in prepared.plan.sinks),
            clocks=clocks,
            disk=disk,
            report=report,
        )
        memory = stack.enter_context(MemoryWatch(lambda: suite.record.services))
        lag = stack.enter_context(LagWatch(prepared.plan, lambda: suite.record))
        watched = folder / "watched"
        watch = stack.enter_context(
            ResultWatch(proxies[Link.SUBSCRIBE][0].address, file_endings(prepared.plan), watched)
        )
        try:
            _feed_and_inject(prepared, trial, suite, arena, report)
            _settle(prepared, should.outputs, (suite, watch), (results, watched), report)
            trial.broken += _broken_accounts(prepared, should, suite, report)
        except BettongError as error:
            trial.broken.append(f"the run ended early: {error}")
            report(trial.broken[-1])
        if logs is not None:
            _keep_logs(suite, logs)
        trial.faults = _faults(trial, watch)
        trial.latency_p50_s = _latency_s(trial, watch)
        trial.sinks = _sinks(prepared, should.outputs, results, watched)
        trial.memory = _memory(prepared.spec, memory.peaks_mb)
        followed = Followed(watch.arrivals(), memory.samples, lag.samples)
        trial.growth = grown(prepared.spec, followed, trial.start_s)
    return trial


def _clocks(prepared: PreparedRun, folder: Path) -> dict[str, MovableClock]:
    """A movable clock for each sender, if the spec has clock faults."""
    if not any(fault.kind == "clock" for fault in prepared.faults):
        return {}
    names = instances(SENDER, prepared.spec.workload.senders)
    return {name: MovableClock(folder / f"clock-{name}") for name in names}


def _disturbable(
    options: SuiteOptions,
    prepared: PreparedRun,
    *,
    clocks: dict[str, MovableClock],
    disk: SmallDisk | None,
    results: Path,
) -> SuiteOptions:
    environment = options.environment | {name: clock.environment for name, clock in clocks.items()}
    return options.model_copy(
        update={
            "results": results,
            "environment": environment,
            "keep": disk.suite if disk is not None else None,
            "restarts": restarts(prepared.faults),
        }
    )


def _feed_and_inject(prepared: PreparedRun, trial: _Trial, suite: Suite, arena: Arena, report: Say) -> None:
    """Feeds the input and injects every fault at its time. Raises the error that ended the suite, or the feeding."""
    workload, spec = prepared.spec.workload, prepared.spec
    feeding = Feeding(
        prepared.feeds,
        [proxy.address for proxy in arena.proxies[Link.INGEST]],
        order=workload.order,
        rounds=prepared.rounds,
        paced_s=spec.duration_s,
    )
    report(f"{len(prepared.faults)} faults in {spec.duration_s:g} s")
    with ExitStack() as stack:
        stack.callback(feeding.stop)
        nemesis = stack.enter_context(Nemesis(arena))
        trial.start_s = time.time()
        feeding.start()
        inject(prepared.faults, nemesis, suite, start_s=trial.start_s, injected=trial.injected, report=report)
        while not feeding.done():
            suite.wait_with_all(_POLL_S)


def _settle(
    prepared: PreparedRun,
    should: dict[str, Table],
    running: tuple[Suite, ResultWatch],
    folders: tuple[Path, Path],
    report: Say,
) -> None:
    """Waits until all results are there, then a little longer, for duplicates; or until no more are expected.

    No more are expected when nothing new came for `settle_s_max`, or after _SETTLES_MAX times that.
    Results are compared once they no longer change: comparing reads all of them, which slows the suite down.
    """
    suite, watch = running
    wait_s = prepared.spec.settle_s_max
    report("no more faults: waiting for the last results")
    end_s = time.monotonic() + _SETTLES_MAX * wait_s
    newest_s, before, compared = time.monotonic(), list[dict[str, int]](), list[dict[str, int]]()
    while time.monotonic() < min(end_s, newest_s + wait_s):
        watch.check()
        found = [sizes(folder) for folder in folders]
        if found != before:
            newest_s, before = time.monotonic(), found
        elif found != compared:
            if all(each.right for each in _sinks(prepared, should, *folders)):
                suite.wait_with_all(_QUIET_S)
                return
            compared = found
        suite.wait_with_all(2 * _POLL_S)
    report(f"results are missing or wrong, and nothing new came for {wait_s:g} s")


def _broken_accounts(prepared: PreparedRun, should: Golden, suite: Suite, report: Say) -> list[str]:
    found = final_accounts(prepared.plan, suite.record, suite.wait_with_all)
    broken = broken_accounts(found, should.accounts)
    if found.unknown:
        report(f"the accounts are unknown: {found.unknown}")
    elif not broken:
        against = " and equal those of the undisturbed run" if should.accounts is not None else ""
        report(f"the accounts add up{against}")
    return broken


def _keep_logs(suite: Suite, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for service in suite.record.services.values():
        if service.log.exists():
            shutil.copy(service.log, folder)


def _faults(trial: _Trial, watch: ResultWatch) -> list[FaultReport]:
    done = [injected for injected in trial.injected if not injected.missed]
    spans = [FaultSpan(injected.begun_s, injected.ended_s) for injected in done]
    found = dict(zip((each.fault.number for each in done), recoveries(spans, watch.arrivals()), strict=True))
    return [fault_report(each, found.get(each.fault.number), trial.start_s) for each in trial.injected]


def _latency_s(trial: _Trial, watch: ResultWatch) -> float | None:
    first_s = trial.injected[0].begun_s if trial.injected else float("inf")
    calm = [each.at_s - each.due_s for each in watch.arrivals() if each.at_s < first_s]
    measured = median_and_max(calm)
    return round(measured[0], 3) if measured is not None else None


def _sinks(prepared: PreparedRun, should: dict[str, Table], results: Path, watched: Path) -> list[SinkReport]:
    reports = []
    channels: tuple[tuple[Literal["files", "subscriber"], Path], ...] = (
        ("files", results),
        ("subscriber", watched),
    )
    for channel, folder in channels:
        try:
            found = tables(prepared, folder)
        except SchemaError:  # a message half written: read again later, or reported as missing
            found = {sink: {} for sink in prepared.outputs}
        for sink, output in prepared.outputs.items():
            counts = tuple(sum(map(len, each[sink].values())) for each in (should, found))
            wrong = differences(should[sink], found[sink], output.compare)
            reports.append(sink_report(sink, channel, output.compare, (counts[0], counts[1]), wrong))
    return reports


def _memory(spec: Spec, peaks_mb: dict[str, float]) -> list[MemoryReport]:
    bounds = BOUNDS_MB | spec.invariants.memory_mb
    return [
        MemoryReport(process=target, peak_mb=round(peak_mb, 1), bound_mb=bounds[target])
        for target, peak_mb in sorted(peaks_mb.items())
    ]


def _broken(prepared: PreparedRun, trial: _Trial) -> list[str]:
    """Every invariant that does not hold, in a line each."""
    lines = [
        f"sink {each.sink}, {each.channel}: {each.lost} lost, {each.doubled} doubled,"
        f" {each.unexpected} never expected, {each.misplaced} out of order, of {each.expected}"
        for each in trial.sinks
        if not each.right
    ]
    lines += [
        f"{each.process} used {each.peak_mb:.0f} MB, at most {each.bound_mb:.0f} MB are allowed"
        for each in trial.memory
        if each.peak_mb > each.bound_mb
    ]
    lines += [
        f"{each.fault.label}: {each.streams:,} of {each.fault.by:,.0f} streams were done in {each.fault.for_s:g} s;"
        " allow a longer time, or fewer streams"
        for each in trial.injected
        if each.fault.row and each.streams < each.fault.by
    ]
    lines += unmet_recoveries(trial.faults, prepared.spec.invariants.recovery_s_max)
    lines += [
        f"{each.metric} grows by {each.share:+.0%}, {each.low:+.0%} to {each.high:+.0%}, of its median"
        f" ({each.median:.4g} {each.unit}) over the run; the bound is {each.bound:+.0%}"
        for each in trial.growth
        if not each.holds
    ]
    lines += [
        f"{name} has too few samples to show whether it grows"
        for name in prepared.spec.invariants.growth_max.bounds
        if not any(each.metric.partition(" ")[0] == name for each in trial.growth)
    ]
    if prepared.faults and not any(not fault.missed for fault in trial.faults):
        lines.append("no fault was injected: nothing is proved")
    return lines
