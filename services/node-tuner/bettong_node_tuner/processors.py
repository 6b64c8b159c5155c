"""Targets that name CPUs or threads: interrupts, the receive work of network devices, SCHED_FIFO. Pure.

Sources: `Documentation/core-api/irq/irq-affinity.rst`, `networking/scaling.rst`, `scheduler/sched-rt-group.rst` of the
kernel; sched(7).
"""

import fnmatch
from collections.abc import Callable, Iterator

from bettong_node_tuner.formats import Form, canonical, cpus_of_list, list_of, mask_of
from bettong_node_tuner.settings import TunerSettings
from bettong_node_tuner.snapshot import Snapshot
from bettong_node_tuner.targets import (
    Obstacle,
    Setting,
    Target,
    checked,
    governors,
    huge_pages,
    huge_pages_of_themselves,
    latency,
    missing,
    of_file,
    refused,
    swap,
    sysctls,
    turbo,
    workqueues,
)

SCHED_FIFO = 1  # os.SCHED_FIFO on Linux, kept as a constant in a pure module
THROTTLE = "proc/sys/kernel/sched_rt_runtime_us"
DEFAULT_IRQ = "proc/irq/default_smp_affinity"
# Other programs that write these files, by the name of their process, and which settings.
OTHERS: dict[str, frozenset[Setting]] = {
    "tuned": frozenset(Setting),
    "irqbalance": frozenset({Setting.IRQ}),
}


def targets(wanted: TunerSettings, snapshot: Snapshot) -> list[Target]:
    """All targets of the wanted settings, in the order in which they are written."""
    found = [target for kind in KINDS for target in kind(wanted, snapshot)]
    return found if wanted.beside_others else [_beside(target, snapshot) for target in found]


def interrupts(wanted: TunerSettings, snapshot: Snapshot) -> Iterator[Target]:
    """Every interrupt, and the default of new ones; one within the housekeeping CPUs stays as it is."""
    if not wanted.irq_affinity:
        return
    cpus = cpus_of_list(wanted.housekeeping_cpus)
    default = of_file(snapshot, Setting.IRQ, DEFAULT_IRQ, mask_of(cpus), form=Form.MASK)
    yield checked(default, wanted, snapshot)
    for path in snapshot.matching("proc/irq/*/smp_affinity_list"):
        now = canonical(Form.LIST, snapshot.files[path])
        within = now and _is_within(now, wanted.housekeeping_cpus)
        text = now if within else list_of(cpus)
        yield checked(of_file(snapshot, Setting.IRQ, path, text, form=Form.LIST), wanted, snapshot)


def _is_within(text: str, cpus: str) -> bool:
    try:
        return cpus_of_list(text) <= cpus_of_list(cpus)
    except ValueError:
        return False


def receive_work(wanted: TunerSettings, snapshot: Snapshot) -> Iterator[Target]:
    """Every receive queue of hardware devices."""
    if not wanted.rps:
        return
    pattern = "sys/class/net/*/queues/rx-*/rps_cpus"
    paths = list(snapshot.matching(pattern))
    mask = mask_of(cpus_of_list(wanted.housekeeping_cpus))
    if not paths:
        yield missing(Setting.RPS, pattern, mask, form=Form.MASK, why="no hardware device has receive queues")
    for path in paths:
        yield checked(of_file(snapshot, Setting.RPS, path, mask, form=Form.MASK), wanted, snapshot)


def first_in_first_out(wanted: TunerSettings, snapshot: Snapshot) -> Iterator[Target]:
    """Threads of pods by their names; refused where the kernel would let them keep a CPU for ever."""
    if wanted.fifo_priority is None:
        return
    value = f"{SCHED_FIFO}/{wanted.fifo_priority}"
    runtime = snapshot.files.get(THROTTLE, "").strip()
    if not runtime:
        yield missing(Setting.FIFO, THROTTLE, value)
        return
    for thread in snapshot.threads:
        named = any(fnmatch.fnmatchcase(thread.name, pattern) for pattern in wanted.fifo_threads)
        if not (thread.in_pod and named):
            continue
        target = Target(Setting.FIFO, thread.key, Form.WORDS, value, thread.value)
        if runtime == "-1":
            target = refused(target, f"/{THROTTLE} is -1: a thread that spins would keep its CPU for ever")
        yield target


def _beside(target: Target, snapshot: Snapshot) -> Target:
    if target.obstacle is Obstacle.UNSUPPORTED:
        return target
    for name, settings in OTHERS.items():
        if name in snapshot.processes and target.setting in settings:
            why = f"{name} runs here and writes the same files: stop it, or set beside_others"
            return refused(target, why)
    return target


KINDS: tuple[Callable[[TunerSettings, Snapshot], Iterator[Target]], ...] = (
    sysctls,
    governors,
    turbo,
    latency,
    huge_pages_of_themselves,
    swap,
    huge_pages,
    workqueues,
    interrupts,
    receive_work,
    first_in_first_out,
)
