"""Reads the facts of this machine that `conditions` judges, and measures its hiccups."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from bettong.lab.machine.conditions import Conditions
from bettong.local.usable_cpus import usable_cpus

_SLEEP_S = 0.001
_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Hiccups:
    """By how much sleeps of 1 ms were too long.

    `busy`, `stolen`: shares of all cores' time meanwhile, in use and taken by other virtual machines.
    """

    p50_us: float
    p99_us: float
    max_us: float
    busy: float
    stolen: float


def measure_hiccups(seconds: float) -> Hiccups:
    """Measures for `seconds` by how much sleeps of 1 ms are too long."""
    times = psutil.cpu_times()
    late_us = []
    until = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < until:
        time.sleep(_SLEEP_S)
        late_us.append((time.perf_counter() - begun - _SLEEP_S) * 1e6)
    spent = {
        name: after - before
        for name, before, after in zip(times._fields, times, psutil.cpu_times(), strict=True)
    }
    total = max(sum(spent.values()) - spent.get("guest", 0.0) - spent.get("guest_nice", 0.0), 1e-9)
    late_us.sort()
    return Hiccups(
        late_us[len(late_us) // 2],
        late_us[len(late_us) * 99 // 100],
        late_us[-1],
        busy=1 - (spent["idle"] + spent.get("iowait", 0.0)) / total,
        stolen=spent.get("steal", 0.0) / total,
    )


def inspect_machine(hiccups: Hiccups, root: Path = Path("/")) -> Conditions:
    """Reads what the kernel reports below `root`; what it does not report is unknown."""
    system = root / "sys/devices/system"
    isolated = cpu_list(_text(system / "cpu/isolated"))
    swappiness = _text(root / "proc/sys/vm/swappiness")
    return Conditions(
        cpus=usable_cpus(),
        governors=tuple(
            filter(None, map(_text, sorted(system.glob("cpu/cpufreq/policy*/scaling_governor"))))
        ),
        turbo=_turbo(system / "cpu"),
        smt=_flag(system / "cpu/smt/active"),
        isolated=isolated,
        interrupts_on_isolated=_interrupts_on(isolated, root / "proc/irq"),
        huge_pages=_bracketed(_text(root / "sys/kernel/mm/transparent_hugepage/enabled")),
        swapped_mb=psutil.swap_memory().used / _MEBIBYTE,
        swappiness=int(swappiness) if swappiness.isdecimal() else None,
        clock_source=_text(system / "clocksource/clocksource0/current_clocksource"),
        quota=_quota(_text(root / "sys/fs/cgroup/cpu.max")),
        open_files_max=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        load=os.getloadavg()[0],
        busy=hiccups.busy,
        stolen=hiccups.stolen,
        hiccup_p50_us=hiccups.p50_us,
        hiccup_p99_us=hiccups.p99_us,
        hiccup_max_us=hiccups.max_us,
    )


def cpu_list(text: str) -> tuple[int, ...]:
    """Processors of the kernel's list format, `0-2,5`. Returns none for malformed text."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            return ()
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def _flag(file: Path) -> bool | None:
    return {"0": False, "1": True}.get(_text(file))


def _turbo(folder: Path) -> bool | None:
    """Intel's driver reports whether turbo is off, others whether it is on."""
    off = _flag(folder / "intel_pstate/no_turbo")
    return not off if off is not None else _flag(folder / "cpufreq/boost")


def _bracketed(text: str) -> str:
    """The word in brackets, of `always [madvise] never`."""
    return text.partition("[")[2].partition("]")[0]


def _quota(text: str) -> float | None:
    """The number of processors: 2 for `200000 100000`; None for `max 100000`, or an empty text."""
    quota, _, period = text.partition(" ")
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) else None


def _interrupts_on(cpus: tuple[int, ...], folder: Path) -> int:
    """How many interrupts may be served by one of these processors."""
    lists = (cpu_list(_text(file)) for file in folder.glob("*/smp_affinity_list"))
    return sum(not set(cpus).isdisjoint(each) for each in lists) if cpus else 0
