"""Conditions of a machine that distort measurements, and their remedies. Pure: `machine_state` reads the facts.

Which of them matter is the field's consensus: pyperf's `system` command (governor, turbo, isolated CPUs, interrupts),
and the kernel's guides for the others (Documentation/admin-guide: pm/cpufreq, mm/transhuge, kernel-parameters).
"""

from __future__ import annotations

from dataclasses import dataclass

from bettong.local.prerequisites import Finding, Grade

# Shares of all cores' time while no process of ours ran.
BUSY_MAX = 0.05
STOLEN_MAX = 0.005
# A sleep of 1 ms on an idle machine with high-resolution timers is 60 to 200 us too long.
HICCUP_P99_US_MAX = 500.0
SWAPPED_MB_MAX = 64.0
OPEN_FILES_MIN = 4096
_TIMERS_GOOD = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page")
_TUNER = "docs/node-tuning.md says how the node tuner does it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Facts of a machine; None, or "", if it does not report them.

    `governors`: of all processors. `isolated`: those on which nothing else is scheduled. `interrupts_on_isolated`: how
    many interrupts they may serve. `quota`: processors that a control group grants. `stolen`, `busy`: shares of all
    cores' time, while the hiccups (by how much a sleep of 1 ms was too long) were measured.
    """

    cpus: int
    governors: tuple[str, ...]
    turbo: bool | None
    smt: bool | None
    isolated: tuple[int, ...]
    interrupts_on_isolated: int
    huge_pages: str
    swapped_mb: float
    swappiness: int | None
    clock_source: str
    quota: float | None
    open_files_max: int
    load: float
    busy: float
    stolen: float
    hiccup_p50_us: float
    hiccup_p99_us: float
    hiccup_max_us: float


def examine(seen: Conditions) -> list[Finding]:
    """A finding for each condition, in the order in which they usually matter."""
    return [
        _stolen(seen),
        _busy(seen),
        _hiccups(seen),
        _quota(seen),
        _governor(seen),
        _turbo(seen),
        _smt(seen),
        _isolation(seen),
        _huge_pages(seen),
        _swap(seen),
        _clock(seen),
        _files(seen),
    ]


def _stolen(seen: Conditions) -> Finding:
    text = f"{seen.stolen:.1%} of the processors' time went to other virtual machines"
    if seen.stolen <= STOLEN_MAX:
        return Finding("stolen time", Grade.GOOD, text)
    remedy = (
        "measure when the host is idle, or on a machine of its own; compare only runs that were interleaved"
    )
    return Finding("stolen time", Grade.WARNING, text, remedy)


def _busy(seen: Conditions) -> Finding:
    text = f"{seen.busy:.0%} in use by others, load {seen.load:.1f}"
    if seen.busy <= BUSY_MAX:
        return Finding("other work", Grade.GOOD, text)
    return Finding(
        "other work", Grade.WARNING, text, "stop other programs: they take CPU time from the measurement"
    )


def _hiccups(seen: Conditions) -> Finding:
    text = (
        f"a sleep of 1 ms is too long by {seen.hiccup_p50_us:.0f} us (p50), {seen.hiccup_p99_us:.0f} us (p99),"
        f" {seen.hiccup_max_us:.0f} us (max)"
    )
    if seen.hiccup_p99_us <= HICCUP_P99_US_MAX:
        return Finding("hiccups", Grade.GOOD, text)
    remedy = "no latency below this can be measured: isolate processors, or stop other programs"
    return Finding("hiccups", Grade.WARNING, text, remedy)


def _quota(seen: Conditions) -> Finding:
    if seen.quota is None:
        return Finding("quota", Grade.GOOD, f"none: {seen.cpus} processors")
    text = f"a control group grants {seen.quota:g} of {seen.cpus} processors' time"
    if seen.quota >= seen.cpus:
        return Finding("quota", Grade.GOOD, text)
    remedy = "a process that uses it up is throttled for the rest of 100 ms: give whole processors (a cpuset) instead"
    return Finding("quota", Grade.WARNING, text, remedy)


def _governor(seen: Conditions) -> Finding:
    if not seen.governors:
        return Finding("frequency", Grade.GOOD, "not reported: the host decides")
    text = f"governor {', '.join(sorted(set(seen.governors)))}"
    if set(seen.governors) == {"performance"}:
        return Finding("frequency", Grade.GOOD, text)
    remedy = f"`cpupower frequency-set -g performance`: an idle processor takes time to speed up; {_TUNER}"
    return Finding("frequency", Grade.WARNING, text, remedy)


def _turbo(seen: Conditions) -> Finding:
    if seen.turbo is None:
        return Finding("turbo", Grade.GOOD, "not reported: the host decides")
    if not seen.turbo:
        return Finding("turbo", Grade.GOOD, "off")
    remedy = "the speed depends on heat and on how many cores work: turn it off to compare runs"
    return Finding("turbo", Grade.WARNING, "on", remedy)


def _smt(seen: Conditions) -> Finding:
    if seen.smt is None:
        return Finding("SMT", Grade.GOOD, "not reported")
    if not seen.smt:
        return Finding("SMT", Grade.GOOD, "off: a processor is a core")
    remedy = f"two processors share a core: leave one of each pair idle; {_TUNER}"
    return Finding("SMT", Grade.WARNING, "on", remedy)


def _isolation(seen: Conditions) -> Finding:
    if not seen.isolated:
        remedy = f"boot with isolcpus= to measure tails (p99.99); {_TUNER}"
        return Finding(
            "isolation", Grade.WARNING, "no processor is isolated: the kernel puts other work on all", remedy
        )
    numbers = ",".join(map(str, seen.isolated))
    if not seen.interrupts_on_isolated:
        return Finding("isolation", Grade.GOOD, f"processors {numbers}, without interrupts")
    text = f"processors {numbers}, but {seen.interrupts_on_isolated} interrupts may be served there"
    return Finding("isolation", Grade.WARNING, text, f"keep interrupts off them (irqaffinity=); {_TUNER}")


def _huge_pages(seen: Conditions) -> Finding:
    if seen.huge_pages != "always":
        return Finding("huge pages", Grade.GOOD, seen.huge_pages or "not reported")
    remedy = "programs stall while the kernel makes them: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
    return Finding("huge pages", Grade.WARNING, "always", remedy)


def _swap(seen: Conditions) -> Finding:
    if seen.swapped_mb <= SWAPPED_MB_MAX:
        return Finding("swap", Grade.GOOD, f"{seen.swapped_mb:.0f} MB in use")
    text = f"{seen.swapped_mb:.0f} MB in use, swappiness {seen.swappiness}"
    return Finding(
        "swap", Grade.WARNING, text, "`swapoff -a`: pages are swapped in while something is measured"
    )


def _clock(seen: Conditions) -> Finding:
    if not seen.clock_source:
        return Finding("clock source", Grade.GOOD, "not reported")
    if seen.clock_source.startswith(_TIMERS_GOOD):
        return Finding("clock source", Grade.GOOD, seen.clock_source)
    remedy = "each reading of the clock is a system call: boot with clocksource=tsc where it is stable"
    return Finding("clock source", Grade.WARNING, seen.clock_source, remedy)


def _files(seen: Conditions) -> Finding:
    text = f"{seen.open_files_max:,} open files"
    if seen.open_files_max >= OPEN_FILES_MIN:
        return Finding("limits", Grade.GOOD, text)
    remedy = f"`ulimit -n {OPEN_FILES_MIN}`: many clients or partitions need more"
    return Finding("limits", Grade.WARNING, text, remedy)
