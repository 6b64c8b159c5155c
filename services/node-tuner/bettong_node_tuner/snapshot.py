"""The contents of the machine's files at one time, as a value, and the keys of what can be set. Pure."""

import fnmatch
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

# A file's path without the leading slash; or `swap:/dev/sda2`, or `thread:PID:TID:START`.
Key = NewType("Key", str)

LATENCY = Key("dev/cpu_dma_latency")
OFF = "off"
_SWAP = "swap:"
_THREAD = "thread:"
_NETWORK = "proc/sys/net/"


class Namespace(StrEnum):
    """A namespace on which the meaning of some keys depends, by its name in /proc/PID/ns (namespaces(7))."""

    NET = "net"
    PID = "pid"


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread: its identity, and how it is scheduled (`proc_pid_stat(5)`: fields 22, 40, 41).

    `start`: clock ticks between the boot and its start, which distinguish threads with a reused id.
    """

    pid: int
    tid: int
    start: int
    name: str
    policy: int
    priority: int
    in_pod: bool

    @property
    def key(self) -> Key:
        """Names this thread, and no later one with its id."""
        return Key(f"{_THREAD}{self.pid}:{self.tid}:{self.start}")

    @property
    def value(self) -> str:
        """Policy and priority, `1/5`."""
        return f"{self.policy}/{self.priority}"


@dataclass(frozen=True, slots=True)
class Swap:
    """An area that the machine swaps to (`proc_swaps(5)`)."""

    path: str
    used_kib: int
    priority: int

    @property
    def key(self) -> Key:
        """Names this area."""
        return Key(f"{_SWAP}{self.path}")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Facts of one time. `files`: the text of each existing file, by its path without the leading slash.

    `processes`: names of running other tuners. `held_us`: the latency bound that this process holds, in microseconds.
    `outside`: namespaces of the node's first process that this process is not in. Where that cannot be read (without
    privileges, which a write needs too), none.
    """

    boot: str
    files: Mapping[str, str]
    swaps: tuple[Swap, ...] = ()
    threads: tuple[Thread, ...] = ()
    processes: frozenset[str] = frozenset()
    held_us: int | None = None
    outside: frozenset[Namespace] = frozenset()
    _values: Mapping[Key, str] = field(init=False)

    def __post_init__(self) -> None:
        found: dict[Key, str] = {Key(path): text for path, text in self.files.items()}
        found.update((swap.key, str(swap.priority)) for swap in self.swaps)
        found.update((thread.key, thread.value) for thread in self.threads)
        object.__setattr__(self, "_values", found)

    def value(self, key: Key) -> str | None:
        """The value of a key; None when it does not exist. A swap area that is not used is `off`."""
        return self._values.get(key, OFF if is_swap(key) else None)

    def matching(self, pattern: str) -> Iterator[str]:
        """The paths that match, in numerical order."""
        return iter(sorted(fnmatch.filter(self.files, pattern), key=lambda path: (len(path), path)))


def is_swap(key: Key) -> bool:
    """Whether it names a swap area."""
    return key.startswith(_SWAP)


def is_thread(key: Key) -> bool:
    """Whether it names a thread."""
    return key.startswith(_THREAD)


def is_file(key: Key) -> bool:
    """Whether it names a file."""
    return not (is_swap(key) or is_thread(key))


def is_network(key: Key) -> bool:
    """Whether it names a file that shows the network namespace of the process that opens it, whatever the mount."""
    return key.startswith(_NETWORK)


def swap_path(key: Key) -> str:
    """The path of a swap area."""
    return key.removeprefix(_SWAP)


def thread_numbers(key: Key) -> tuple[int, int, int]:
    """Process, thread, and its start."""
    pid, tid, start = key.removeprefix(_THREAD).split(":")
    return int(pid), int(tid), int(start)
