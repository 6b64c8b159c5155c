"""A node made of files: /sys and /proc of a machine with four CPUs, written as its kernel would write them.

What is real: reading, writing, journal. What is played: the kernel's formats, its refusals, swap areas and threads.
"""

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from bettong_node_tuner.formats import choices
from bettong_node_tuner.machine import BOOT, Machine
from bettong_node_tuner.snapshot import LATENCY, OFF, Key
from bettong_node_tuner.targets import THP, WORKQUEUES, sysctl_path

SWAPPINESS = Key(sysctl_path("vm.swappiness"))
SOMAXCONN = Key(sysctl_path("net.core.somaxconn"))
THP_ENABLED = Key(f"{THP}/enabled")
HUGEPAGES = Key("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
SWAP = Key("swap:/dev/vda2")
THREAD = Key("thread:70:71:9000")
CPU = "sys/devices/system/cpu"

FILES: Mapping[str, str] = {
    BOOT: "11111111-2222-3333-4444-555555555555",
    SWAPPINESS: "60",
    SOMAXCONN: "4096",
    "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456",
    "proc/sys/kernel/sched_rt_runtime_us": "950000",
    "proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB",
    "proc/swaps": "Filename Type Size Used Priority\n/dev/vda2 partition 4000000 1000 -2",
    "proc/1/comm": "systemd",
    "proc/irq/default_smp_affinity": "f",
    "proc/irq/0/smp_affinity_list": "0-3",
    "proc/irq/24/smp_affinity_list": "2",
    "proc/irq/25/smp_affinity_list": "1",
    "proc/70/comm": "python3",
    "proc/70/cgroup": "0::/kubepods.slice/kubepods-pod7.slice/cri-a.scope",
    "proc/70/task/70/stat": "70 (python3) S " + "1 " * 18 + "8000 " + "0 " * 17 + "0 0 0",
    "proc/70/task/71/stat": "71 (bettong (x) 1) S " + "1 " * 18 + "9000 " + "0 " * 17 + "0 0 0",
    "proc/80/cgroup": "0::/system.slice/sshd.service",
    "proc/80/task/80/stat": "80 (bettong-like) S " + "1 " * 18 + "9100 " + "0 " * 17 + "0 0 0",
    "dev/cpu_dma_latency": "",
    THP_ENABLED: "always [madvise] never",
    f"{THP}/defrag": "always defer defer+madvise [madvise] never",
    HUGEPAGES: "0",
    WORKQUEUES: "f",
    f"{CPU}/possible": "0-3",
    f"{CPU}/online": "0-3",
    f"{CPU}/cpufreq/policy0/scaling_governor": "powersave",
    f"{CPU}/cpufreq/policy0/scaling_available_governors": "performance powersave",
    f"{CPU}/cpufreq/policy2/scaling_governor": "performance",
    f"{CPU}/cpufreq/policy2/scaling_available_governors": "performance powersave",
    f"{CPU}/intel_pstate/no_turbo": "0",
    "sys/class/net/eth0/device/vendor": "0x1af4",
    "sys/class/net/eth0/queues/rx-0/rps_cpus": "00000000,00000000",
    "sys/class/net/veth1/queues/rx-0/rps_cpus": "00000000,00000000",
}


class FakeNode(Machine):
    """Its files lie in a folder. `refuses`: keys whose writes fail, with the error's number.

    `makes`: keys of which the kernel makes another value than what is written.
    """

    def __init__(self, folder: Path, changed: Mapping[str, str | None] | None = None) -> None:
        super().__init__(folder)
        self.folder = folder
        self.refuses: dict[Key, int] = {}
        self.makes: dict[Key, str] = {}
        self.written: list[Key] = []
        for path, text in {**FILES, **(changed or {})}.items():
            if text is not None:
                self.put(path, text)

    def put(self, path: str, text: str) -> None:
        """What the kernel, or somebody else, writes there."""
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text + "\n")

    def text(self, path: str) -> str:
        """What is there, without the line's end."""
        return (self.folder / path).read_text().strip()

    def write(self, key: Key, value: str) -> None:
        """As the kernel does."""
        if number := self.refuses.get(key):
            raise OSError(number, os.strerror(number))
        self.written.append(key)
        before = self.read(key)
        super().write(key, value)
        if key in self.makes:
            self.put(key, self.makes[key])
        elif key.startswith(THP):
            words = choices(before or "")
            self.put(key, " ".join(f"[{word}]" if word == value else word for word in words))

    def set_swap(self, path: str, value: str) -> None:
        """One line of /proc/swaps more or less; the kernel chooses priorities below 0 itself."""
        head, *areas = self.text("proc/swaps").splitlines()
        left = [area for area in areas if not area.startswith(f"{path} ")]
        if value != OFF:
            left.append(f"{path} partition 4000000 0 {value if int(value) >= 0 else -3}")
        self.put("proc/swaps", "\n".join([head, *left]))

    def schedule(self, tid: int, policy: int, priority: int) -> None:
        """In its line of /proc."""
        (path,) = self.folder.glob(f"proc/*/task/{tid}/stat")
        words = path.read_text().split()
        words[-3:-1] = [str(priority), str(policy)]
        path.write_text(" ".join(words))

    def refuse(self, path: str, number: int = errno.EIO) -> None:
        """Lets writes of a file fail."""
        self.refuses[Key(path)] = number

    @property
    def latency_bytes(self) -> bytes:
        """What was last written to the device of the latency bound."""
        return (self.folder / LATENCY).read_bytes()
