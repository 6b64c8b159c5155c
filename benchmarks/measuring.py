"""Measurements of several runs, each with the machine's state just before: a plain loop's speed, its own hiccups."""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median

import psutil

from bettong.lab.machine.machine_state import measure_hiccups
from bettong.lab.statistics.comparison import COSTS
from bettong.local.record import ServiceRecord

_HICCUP_S = 0.5


@dataclass(frozen=True, slots=True)
class Sample:
    """What one run gave, in the measurement's unit, and CPU seconds for a million messages: of all, and by part.

    `histogram`: of all waits, where the value is one of their percentiles; HDR's compressed encoding, in base64.
    """

    value: float
    cpu_s_per_million: float | None = None
    parts: dict[str, float] = field(default_factory=dict)
    histogram: str = ""


@dataclass(frozen=True, slots=True)
class Before:
    """The machine just before a run: what nobody's program can do better than.

    `plain_loop_per_s`: messages a second of a plain CPython loop. Hiccups: by how much a sleep of 1 ms was too long.
    `busy` and `stolen`: shares of all cores' time in use, and taken by other virtual machines, meanwhile.
    """

    plain_loop_per_s: float
    hiccup_p50_us: float
    hiccup_p99_us: float
    hiccup_max_us: float
    busy: float
    stolen: float
    load: float


@dataclass(frozen=True, slots=True)
class Bar:
    """What a measurement is to reach, and what it is hoped for. `of_loop`: as multiples of the plain loop."""

    bar: float
    goal: float
    of_loop: bool = False


@dataclass(slots=True)
class Measurement:
    """A name, a unit (`messages/s`, `us`, `ms`, `s`, `%`, `% of a core`, `x`), and each run with what was before it."""

    name: str
    unit: str
    bar: Bar | None
    samples: list[Sample] = field(default_factory=list)
    before: list[Before] = field(default_factory=list)

    @property
    def values(self) -> list[float]:
        """The value of each run."""
        return [each.value for each in self.samples]

    @property
    def of_loop(self) -> float | None:
        """Median of what the runs are as multiples of the plain loops before them; None for what is no speed."""
        if self.unit != "messages/s":
            return None
        pairs = zip(self.values, self.before, strict=True)
        return median(value / before.plain_loop_per_s for value, before in pairs)

    @property
    def of_bar(self) -> float | None:
        """How much of its bar the median reaches: from 1 on, all of it."""
        if self.bar is None:
            return None
        value = (self.of_loop or 0.0) if self.bar.of_loop else median(self.values)
        return self.bar.bar / value if self.unit in COSTS else value / self.bar.bar


def measure_machine(plain_loop_per_s: Callable[[], float]) -> Before:
    """Measures the machine for about a second and a half."""
    hiccups = measure_hiccups(_HICCUP_S)
    return Before(
        plain_loop_per_s=plain_loop_per_s(),
        hiccup_p50_us=hiccups.p50_us,
        hiccup_p99_us=hiccups.p99_us,
        hiccup_max_us=hiccups.max_us,
        busy=hiccups.busy,
        stolen=hiccups.stolen,
        load=os.getloadavg()[0],
    )


def cpu_s(process: psutil.Process) -> float:
    """CPU seconds of a process and all below it, alive or waited for."""
    total = 0.0
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # ended meanwhile: its parent has its time
            total += sum(each.cpu_times()[:4])
    return total


class Stopwatch:
    """Wall clock, and CPU time of this process and of a suite's services, from when it was made."""

    def __init__(self, services: Mapping[str, ServiceRecord]) -> None:
        self._services = {name: psutil.Process(each.pid) for name, each in services.items()}
        self._spent, self._begun = self._now(), time.perf_counter()

    def sample(self, messages: int) -> Sample:
        """Messages a second since then."""
        seconds = time.perf_counter() - self._begun
        parts = {
            name: round((spent_s - self._spent.get(name, 0.0)) * 1e6 / messages, 3)
            for name, spent_s in self._now().items()
        }
        return Sample(messages / seconds, sum(parts.values()), parts)

    def _now(self) -> dict[str, float]:
        """Of the processor's processes, Java's apart from Python's."""
        spent = {"client": sum(psutil.Process().cpu_times()[:2])}
        for name, service in self._services.items():
            every, javas_s = cpu_s(service), []
            for each in service.children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    if each.name().startswith("java"):
                        javas_s.append(sum(each.cpu_times()[:2]))
            if javas_s:
                spent[f"{name}, Java"] = sum(javas_s)
            spent[name] = every - sum(javas_s)
        return spent
