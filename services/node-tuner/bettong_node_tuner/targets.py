"""The files of a wanted setting, and the value that each should hold. Pure: settings and a snapshot in, targets out.

Sources: `Documentation/admin-guide/pm/cpufreq.rst` and `intel_pstate.rst`, `mm/transhuge.rst`, `mm/hugetlbpage.rst`,
`power/pm_qos_interface.rst`, `core-api/workqueue.rst` of the kernel.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from bettong_node_tuner.formats import Form, canonical, choices, cpus_of_list, list_of, mask_of
from bettong_node_tuner.settings import TunerSettings
from bettong_node_tuner.snapshot import LATENCY, OFF, Key, Snapshot

PSTATE = "sys/devices/system/cpu/intel_pstate/no_turbo"
BOOST = "sys/devices/system/cpu/cpufreq/boost"
THP = "sys/kernel/mm/transparent_hugepage"
WORKQUEUES = "sys/devices/virtual/workqueue/cpumask"
POSSIBLE = "sys/devices/system/cpu/possible"
ONLINE = "sys/devices/system/cpu/online"
# Swapped pages return to memory: they may need at most this share of the available memory.
_SWAP_SHARE_MAX = 0.5


class Setting(StrEnum):
    """A setting, by the name under which it is reported."""

    GOVERNOR = "cpu-governor"
    LATENCY = "cpu-latency"
    TURBO = "turbo"
    THP = "thp"
    SWAP = "swap"
    HUGEPAGES = "hugepages"
    IRQ = "irq-affinity"
    RPS = "rps"
    WORKQUEUES = "workqueues"
    SYSCTLS = "sysctls"
    FIFO = "fifo"


class Obstacle(StrEnum):
    """Why a target must not be written."""

    UNSUPPORTED = "unsupported"  # the machine does not have it
    REFUSED = "refused"  # it would do harm, and somebody has to act


@dataclass(frozen=True, slots=True)
class Target:
    """A key that should hold a value. `now`: its current value, in canonical form; None when it does not exist."""

    setting: Setting
    key: Key
    form: Form
    wanted: str
    now: str | None
    obstacle: Obstacle | None = None
    why: str = ""


def of_file(
    snapshot: Snapshot, setting: Setting, path: str, wanted: str, *, form: Form = Form.WORDS
) -> Target:
    """A target that is a file; unsupported when it is missing."""
    key = Key(path)
    text = snapshot.value(key)
    if text is None:
        return missing(setting, path, wanted, form=form)
    return Target(setting, key, form, canonical(form, wanted), canonical(form, text))


def missing(
    setting: Setting, path: str, wanted: str, *, form: Form = Form.WORDS, why: str = "there is no such file"
) -> Target:
    """A target that the machine does not have."""
    return Target(setting, Key(path), form, wanted, None, Obstacle.UNSUPPORTED, why)


def refused(target: Target, why: str) -> Target:
    """The same target, not to be written."""
    return Target(target.setting, target.key, target.form, target.wanted, target.now, Obstacle.REFUSED, why)


def governors(wanted: TunerSettings, snapshot: Snapshot) -> Iterator[Target]:
    """The governor of every frequency policy; unsupported by those that do not offer it."""
    if wanted.cpu_governor is None:
        return
    pattern = "sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
    paths = list(snapshot.matching(pattern))
    if not paths:
        yield missing(
            Setting.GOVERNOR, pattern, wanted.cpu_governor, why="this kernel does not control frequencies"
        )
    for path in paths:
        target = of_file(snapshot, Setting.GOVERNOR, path, wanted.cpu_governor)
        there = snapshot.files.get(path.replace("scaling_governor", "scaling_available_governors"))
        if there is not None and wanted.cpu_governor not in there.split():
            why = f"the kernel has {', '.join(there.split())}"
            yield Target(
                target.setting, target.key, target.form, target.wanted, target.now, Obstacle.UNSUPPORTED, why
            )
        else:
            yield target


def latency(wanted: TunerSettings, snapshot: Snapshot) -> Iterator[Target]:
    """The bound on the wake-up time, held by this process: not journalled, because the kernel lifts it at our end."""
    if wanted.cpu_latency_us is None:
        return
    bound = str(wanted.cpu_latency_us)
    if snapshot.value(LATENCY) is None:
        yield missing(Setting.LATENCY, LATENCY, bound)
    else:
        held = "" if snapshot.held_us is None else str(snapshot.held_us)
        yield Target(Setting.LATENCY, LATENCY, Form.WORDS, bound, held)


def turbo(wanted: TunerSettings, snapshot: Snapshot) -> Iterator[Target]:
    """`no_turbo`, which is inverted, of Intel's driver; `boost` of others."""
    if wanted.turbo is None:
        return
    if PSTATE in snapshot.files:
        yield of_file(snapshot, Setting.TURBO, PSTATE, str(int(not wanted.turbo)))
    else:
        yield of_file(snapshot, Setting.TURBO, BOOST, str(int(wanted.turbo)))


def huge_pages_of_themselves(wanted: TunerSettings, snapshot: Snapshot) -> Iterator[Target]:
    """Transparent huge pages, and when memory is compacted for them."""
    for name, choice in (("enabled", wanted.thp), ("defrag", wanted.thp_defrag)):
        if choice is None:
            continue
        path = f"{THP}/{name}"
        target = of_file(snapshot, Setting.THP, path, choice, form=Form.CHOICE)
        text = snapshot.files.get(path, choice)
        if choice in choices(text):
            yield target
        else:
            yield missing(Setting.THP, path, choice, form=Form.CHOICE, why=f"the kernel has {text.strip()}")


def huge_pages(wanted: TunerSettings, snapshot: Snapshot) -> Iterator[Target]:
    """Reserved pages; the kernel reserves as many as it finds."""
    for kib, count in ((2048, wanted.hugepages_2m), (1_048_576, wanted.hugepages_1g)):
        if count is not None:
            path = f"sys/kernel/mm/hugepages/hugepages-{kib}kB/nr_hugepages"
            yield of_file(snapshot, Setting.HUGEPAGES, path, str(count), form=Form.COUNT)


def swap(wanted: TunerSettings, snapshot: Snapshot) -> Iterator[Target]:
    """Every area off, unless its pages do not fit into memory."""
    if not wanted.swap_off:
        return
    room = _available_kib(snapshot) * _SWAP_SHARE_MAX
    for area in snapshot.swaps:
        target = Target(Setting.SWAP, area.key, Form.WORDS, OFF, str(area.priority))
        if area.used_kib > room:
            why = f"{area.used_kib} KiB are swapped, {room:.0f} KiB is half of the available memory"
            target = refused(target, why)
        room -= area.used_kib
        yield target


def _available_kib(snapshot: Snapshot) -> int:
    for line in snapshot.files.get("proc/meminfo", "").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1])
    return 0


def workqueues(wanted: TunerSettings, snapshot: Snapshot) -> Iterator[Target]:
    """The mask of all unbound workqueues."""
    if wanted.workqueues:
        cpus = cpus_of_list(wanted.housekeeping_cpus)
        target = of_file(snapshot, Setting.WORKQUEUES, WORKQUEUES, mask_of(cpus), form=Form.MASK)
        yield checked(target, wanted, snapshot)


def sysctls(wanted: TunerSettings, snapshot: Snapshot) -> Iterator[Target]:
    """Each of the given sysctls."""
    for name, value in sorted(wanted.sysctls.items()):
        yield of_file(snapshot, Setting.SYSCTLS, sysctl_path(name), value)


def sysctl_path(name: str) -> str:
    """`vm.swappiness` -> `proc/sys/vm/swappiness`."""
    return f"proc/sys/{name.replace('.', '/')}"


def checked(target: Target, wanted: TunerSettings, snapshot: Snapshot) -> Target:
    """The target, refused where the housekeeping CPUs are not CPUs of this machine."""
    cpus = cpus_of_list(wanted.housekeeping_cpus)
    possible = cpus_of_list(snapshot.files.get(POSSIBLE, ""))
    online = cpus_of_list(snapshot.files.get(ONLINE, ""))
    if target.obstacle is not None:
        return target
    if not cpus <= possible:
        return refused(
            target, f"housekeeping_cpus {list_of(cpus)}: this machine has {list_of(possible) or 'none'}"
        )
    if not cpus & online:
        return refused(target, f"none of housekeeping_cpus {list_of(cpus)} is online")
    return target
