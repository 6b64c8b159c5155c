"""Whether a worker has exclusive CPUs, which a kubelet's static CPU manager assigns. Pure except for `read_cpus`.

The cpuset of such a container has exactly as many CPUs as its limit, and never all of the machine's, for some are
always reserved. All other containers share the remaining CPUs
(kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies).
"""

import os
from dataclasses import dataclass
from pathlib import Path

from bettong import metrics

_ONLINE = Path("/sys/devices/system/cpu/online")


@dataclass(frozen=True, slots=True)
class Cpus:
    """The CPUs that a process may use, and the machine's. `promised`: how many were to be exclusive, 0 for none."""

    own: frozenset[int]
    machine: frozenset[int]
    promised: int

    @property
    def exclusive(self) -> bool:
        """Whether no other container uses them."""
        return self.own < self.machine and len(self.own) == self.promised

    @property
    def broken(self) -> bool:
        """Whether exclusive CPUs were promised and are not exclusive."""
        return self.promised > 0 and not self.exclusive

    def description(self) -> str:
        """One line for people."""
        used = f"{len(self.own)} of {len(self.machine)} CPUs"
        if not self.promised:
            return f"{used}, none promised"
        if self.exclusive:
            return f"{used}, its own"
        return (
            f"{used}, shared with others, {self.promised} of its own were promised: is the kubelet's cpuManagerPolicy"
            " static, and the pod Guaranteed?"
        )

    def metrics(self) -> dict[str, str | int | float]:
        """For the live records of partitions; without a promise EXCLUSIVE is omitted."""
        found: dict[str, str | int | float] = {metrics.CPUS.name: len(self.own)}
        if self.promised:
            found[metrics.EXCLUSIVE.name] = int(self.exclusive)
        return found


def listed(text: str) -> frozenset[int]:
    """Parses Linux' list format for CPUs: `0-3,8`. Raises ValueError for anything else."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def read_cpus(promised: int, online: Path = _ONLINE) -> Cpus:
    """The CPUs that this process may use now. If the machine does not list its CPUs, `os.cpu_count` counts them."""
    try:
        machine = listed(online.read_text())
    except (OSError, ValueError):
        machine = frozenset(range(os.cpu_count() or 1))
    return Cpus(frozenset(os.sched_getaffinity(0)), machine, promised)


# Read by the daemon, for the workers that it forks: their tasks have the driver's settings, with the driver's promise.
_FOUND: list[Cpus] = []


def keep_for_workers(cpus: Cpus) -> None:
    """Keeps the result for the processes that are forked from this one."""
    _FOUND[:] = [cpus]


def kept_cpus() -> Cpus:
    """What the parent process kept before it forked this one; else this process's CPUs, without a promise."""
    return _FOUND[0] if _FOUND else read_cpus(0)
