"""The machine: reads and writes files, swap areas, threads and the latency bound. Decides nothing.

All paths are below a root, so that a container sees the node's /sys, /proc and /dev where they are mounted. Threads and
swap areas are accessed by system calls, which know no root: threads need the node's PID namespace, swap areas are
opened through the node's first process. /proc/sys/net knows none either: it shows the reader's network namespace.
"""

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from bettong_node_tuner.processors import DEFAULT_IRQ, OTHERS, THROTTLE
from bettong_node_tuner.settings import TunerSettings
from bettong_node_tuner.snapshot import (
    LATENCY,
    OFF,
    Key,
    Namespace,
    Snapshot,
    Swap,
    Thread,
    is_file,
    is_swap,
    is_thread,
    swap_path,
    thread_numbers,
)
from bettong_node_tuner.targets import BOOST, ONLINE, POSSIBLE, PSTATE, THP, WORKQUEUES, sysctl_path

BOOT = "proc/sys/kernel/random/boot_id"
_SINGLE = (
    *(BOOST, PSTATE, POSSIBLE, ONLINE, f"{THP}/enabled", f"{THP}/defrag", WORKQUEUES, THROTTLE, DEFAULT_IRQ),
    "proc/meminfo",
)
_MANY = (
    "sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
    "sys/devices/system/cpu/cpufreq/policy*/scaling_available_governors",
    "sys/kernel/mm/hugepages/hugepages-*/nr_hugepages",
)
_IRQS = "proc/irq/*/smp_affinity_list"
_QUEUES = "sys/class/net/*/queues/rx-*/rps_cpus"
_SWAP_FLAG_PREFER = 0x8000  # swapon(2)
_SWAP_PRIORITY_MASK = 0x7FFF


class Machine:
    """The node whose files are below `root`. Writes raise OSError; missing files are read as None."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._bound: int | None = None  # descriptor of the latency bound
        self._held_us: int | None = None

    def snapshot(self, wanted: TunerSettings, keys: Iterable[Key] = ()) -> Snapshot:
        """Everything that decisions need: for the wanted settings, and for the keys of a journal."""
        keys = list(keys)
        paths = [*_SINGLE, *(sysctl_path(name) for name in wanted.sysctls), *filter(is_file, keys)]
        for pattern in (*_MANY, *([_IRQS] if wanted.irq_affinity else [])):
            paths += self._found(pattern)
        if wanted.rps:
            paths += [path for path in self._found(_QUEUES) if self._is_hardware(path)]
        files = {path: text for path in paths if (text := self._text(path)) is not None}
        if (self._root / LATENCY).exists():
            files[LATENCY] = ""
        threads = bool(wanted.fifo_threads) or any(is_thread(key) for key in keys)
        return Snapshot(
            self.boot(),
            files,
            tuple(self._swaps()),
            tuple(self._threads()) if threads else (),
            frozenset(self._processes()),
            self._held_us,
            frozenset(self._outside()),
        )

    def boot(self) -> str:
        """The id of this boot: `random(4)`. Empty where the kernel has none."""
        return (self._text(BOOT) or "").strip()

    def read(self, key: Key) -> str | None:
        """The current value of a key, as the kernel writes it."""
        if is_swap(key):
            return next((str(area.priority) for area in self._swaps() if area.key == key), OFF)
        if is_thread(key):
            pid, tid, _start = thread_numbers(key)
            thread = self._thread(pid, tid, in_pod=False)
            return thread.value if thread is not None and thread.key == key else None
        return self._text(key)

    def write(self, key: Key, value: str) -> None:
        """Sets the value of a key. Raises OSError."""
        if is_swap(key):
            self.set_swap(swap_path(key), value)
        elif is_thread(key):
            policy, priority = (int(number) for number in value.split("/"))
            self.schedule(thread_numbers(key)[1], policy, priority)
        else:
            # One write call per value: the kernel takes each call as a whole value.
            descriptor = os.open(self._root / key, os.O_WRONLY | os.O_TRUNC)
            try:
                os.write(descriptor, value.encode())
            finally:
                os.close(descriptor)

    def hold(self, latency_us: int | None) -> None:
        """Holds the bound from now on, or releases it. The kernel lifts it when this process ends, however it ends."""
        if latency_us is None:
            if self._bound is not None:
                os.close(self._bound)
            self._bound = self._held_us = None
            return
        if self._bound is None:
            self._bound = os.open(self._root / LATENCY, os.O_WRONLY | os.O_CLOEXEC)
        os.write(self._bound, struct.pack("=i", latency_us))
        self._held_us = latency_us

    def set_swap(self, path: str, value: str) -> None:
        """Switches a swap area `off`, or on with a priority; the kernel itself chooses those below 0."""
        libc = ctypes.CDLL(None, use_errno=True)
        where = os.fsencode(f"{self._root / 'proc/1/root'}{path}")
        if value == OFF:
            failed = libc.swapoff(where)
        else:
            priority = int(value)
            prefer = _SWAP_FLAG_PREFER | (priority & _SWAP_PRIORITY_MASK)
            failed = libc.swapon(where, prefer if priority >= 0 else 0)
        if failed:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)

    def schedule(self, tid: int, policy: int, priority: int) -> None:
        """Sets the scheduling policy of a thread: sched_setscheduler(2)."""
        os.sched_setscheduler(tid, policy, os.sched_param(priority))

    def _text(self, path: str) -> str | None:
        try:
            return (self._root / path).read_text(errors="replace")
        except OSError:
            # Missing, removed since it was listed, or not readable on this device.
            return None

    def _found(self, pattern: str) -> list[str]:
        return [str(path.relative_to(self._root)) for path in sorted(self._root.glob(pattern))]

    def _is_hardware(self, queue: str) -> bool:
        return (self._root / queue).parents[2].joinpath("device").exists()

    def _outside(self) -> Iterator[Namespace]:
        for each in Namespace:
            with contextlib.suppress(OSError):
                if Path(f"/proc/self/ns/{each}").readlink() != (self._root / f"proc/1/ns/{each}").readlink():
                    yield each

    def _swaps(self) -> Iterator[Swap]:
        for line in (self._text("proc/swaps") or "").splitlines()[1:]:
            path, _kind, _size, used, priority = line.split()
            # Blanks are written as in fstab(5).
            name = path.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n")
            yield Swap(name.replace("\\134", "\\"), int(used), int(priority))

    def _processes(self) -> Iterator[str]:
        for path in self._root.glob("proc/[0-9]*/comm"):
            name = (self._text(str(path.relative_to(self._root))) or "").strip()
            if name in OTHERS:
                yield name

    def _threads(self) -> Iterator[Thread]:
        for task in self._root.glob("proc/[0-9]*/task"):
            pid = int(task.parent.name)
            in_pod = "kubepods" in (self._text(f"proc/{pid}/cgroup") or "")
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                for each in sorted(task.iterdir()):
                    thread = self._thread(pid, int(each.name), in_pod=in_pod)
                    if thread is not None:
                        yield thread

    def _thread(self, pid: int, tid: int, *, in_pod: bool) -> Thread | None:
        text = self._text(f"proc/{pid}/task/{tid}/stat")
        if not text or ")" not in text:
            return None
        # The name is in parentheses and may contain anything; then come numbers, the state (field 3) first.
        name = text[text.index("(") + 1 : text.rindex(")")]
        fields = text[text.rindex(")") + 2 :].split()
        return Thread(pid, tid, int(fields[19]), name, int(fields[38]), int(fields[37]), in_pod)
