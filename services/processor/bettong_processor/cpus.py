"""Whether the CPUs of a worker are its own, as a kubelet's static CPU manager gives them. Pure but for `read_cpus`.

Such a container's cpuset holds exactly the CPUs of its limit, and never all of the machine's, for some are always
reserved. A container without that shares what is left with all others
(kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies).
"""

import os
from dataclasses import dataclass
from pathlib import Path

from bettong import metrics

_ONLINE = Path("/sys/devices/system/cpu/online")


@dataclass(frozen=True, slots=True)
class Cpus:
    """What a process may use, of what there is; `promised`: how many it was to have for itself, 0 for none."""

    own: frozenset[int]
    machine: frozenset[int]
    promised: int

    @property
    def exclusive(self) -> bool:
        """Whether they are its own."""
        return self.own < self.machine and len(self.own) == self.promised

    @property
    def broken(self) -> bool:
        """Whether CPUs were promised that are not there."""
        return self.promised > 0 and not self.exclusive

    def said(self) -> str:
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
        """For the records of partitions; without a promise they are left out."""
        found: dict[str, str | int | float] = {metrics.CPUS.name: len(self.own)}
        if self.promised:
            found[metrics.EXCLUSIVE.name] = int(self.exclusive)
        return found


def listed(text: str) -> frozenset[int]:
    """The CPUs of a list as Linux writes it: `0-3,8`. Raises ValueError for anything else."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def read_cpus(promised: int, online: Path = _ONLINE) -> Cpus:
    """What this process may use now. A machine that does not list its CPUs has as many as the process counts."""
    try:
        machine = listed(online.read_text())
    except (OSError, ValueError):
        machine = frozenset(range(os.cpu_count() or 1))
    return Cpus(frozenset(os.sched_getaffinity(0)), machine, promised)


# Found by the daemon for the workers that it forks: tasks bring the driver's settings, whom nobody promised these CPUs.
_FOUND: list[Cpus] = []


def keep(cpus: Cpus) -> None:
    """Says what was found to all that is forked from this process."""
    _FOUND[:] = [cpus]


def kept() -> Cpus:
    """What the process found that this one is forked from; without that, what it sees, and no promise."""
    return _FOUND[0] if _FOUND else read_cpus(0)
