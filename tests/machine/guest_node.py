"""The node in a virtual machine, as a node tuner's pod sees it, and as whoever sits at its console sees it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bettong_node_tuner.formats import cpus_of_list
from tests.machine.guest_agent import Ended, GuestAgent
from tests.machine.virtual_machine import NODE
from tests.servers.scraped import Scraped
from tests.waiting import eventually

SWAP = "/dev/vdc"
CPU = "/sys/devices/system/cpu"
SWAPPINESS = "/proc/sys/vm/swappiness"
_LOG = f"{NODE}/log"
_WAIT_S_MAX = 300.0  # for what takes ten seconds on a machine of its own
_FILES = (
    *("/proc/irq/*/smp_affinity_list", "/proc/irq/default_smp_affinity"),
    *(SWAPPINESS, "/proc/sys/vm/stat_interval", "/proc/sys/net/core/somaxconn"),
    *("/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/mm/transparent_hugepage/defrag"),
    "/sys/kernel/mm/hugepages/*/nr_hugepages",
    "/sys/devices/virtual/workqueue/cpumask",
    "/sys/class/net/*/queues/rx-*/rps_cpus",
)
_COLUMNS = re.compile(r"\s{2,}")
_INTERRUPT = re.compile(r"/proc/irq/(\d+)/.*")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the kernel holds, by the path of a file; a swap area by its device, with its priority."""

    values: Mapping[str, str]

    def interrupts(self) -> dict[int, frozenset[int]]:
        """The CPUs of each interrupt."""
        found = {_INTERRUPT.fullmatch(path): text for path, text in self.values.items()}
        return {int(match[1]): cpus_of_list(text) for match, text in found.items() if match}

    def of_all_boots(self) -> dict[str, str]:
        """The values that are the same after each boot: devices get their interrupts in the order they are found."""
        return {path: text for path, text in self.values.items() if not _INTERRUPT.fullmatch(path)}

    def but(self, changed: Mapping[str, str]) -> dict[str, str]:
        """The values, some of them changed."""
        return {**self.values, **changed}


def facts(agent: GuestAgent) -> Facts:
    """Everything that the tests' tuner may set."""
    swaps = (
        'tail -n +2 /proc/swaps | while read -r path kind size used priority; do echo "$path:$priority"; done'
    )
    text = agent.text(f"grep -s '' {' '.join(_FILES)} || true; {swaps}")
    pairs = (line.partition(":") for line in text.splitlines())
    return Facts({path: " ".join(value.split()) for path, _, value in pairs})


def latency_us(agent: GuestAgent) -> int:
    """The bound that the kernel keeps now, whoever holds it."""
    return int(agent.text("od -An -td4 /dev/cpu_dma_latency"))


def put(agent: GuestAgent, path: str, text: str) -> None:
    """Somebody at the console sets a file."""
    agent.text(f"echo {text} > {path}")


def states(table: str) -> dict[str, set[str]]:
    """The states that a table of the tuner gives to the files of each setting."""
    found: dict[str, set[str]] = {}
    for row in (_COLUMNS.split(line) for line in table.splitlines()[1:]):
        found.setdefault(row[0], set()).add(row[4])
    return found


class GuestTuner:
    """The command in the guest, under tini, with the machine's files under /host, and no devices but those there.

    In a namespace of processes of its own, as a pod is, unless it looks for threads.
    """

    def __init__(self, agent: GuestAgent, settings: Mapping[str, str], journal: str) -> None:
        self.journal = f"{NODE}/{journal}"
        self._agent = agent
        self._own = [] if "FIFO_THREADS" in settings else ["--pid", "--fork", "--mount-proc"]
        self._variables = {
            "PATH": f"{NODE}/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "PYTHONPATH": f"/opt/packages:{NODE}/code",
            "BETTONG_NODE_TUNER_ROOT": "/host",
            "BETTONG_NODE_TUNER_JOURNAL": self.journal,
            "BETTONG_NODE_TUNER_INTERVAL_S": "1",
            **{f"BETTONG_NODE_TUNER_{name}": value for name, value in settings.items()},
        }
        self._number = 0

    def once(self, mode: str) -> Ended:
        """One look, and what it printed."""
        return self._agent.run(self._script(f"--mode {mode} --once"), self._variables)

    def plan(self) -> str:
        """What it would do."""
        ended = self._agent.run(self._script("plan"), self._variables)
        assert ended.status == 0, ended
        return ended.text

    def start(self) -> None:
        """It applies from now on."""
        self._number = self._agent.start(f"{self._script('--mode apply')} 2> {_LOG}", self._variables)

    def metrics(self) -> Scraped:
        """Its metrics; nothing while it does not answer."""
        ask = "exec 3<>/dev/tcp/127.0.0.1/7400; printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
        ended = self._agent.run(f'bash -c "{ask}"')
        return Scraped(ended.text.partition("\r\n\r\n")[2] if ended.status == 0 else "")

    def wait_until_done(self) -> Scraped:
        """Blocks until all is set that can be set."""

        def done() -> Scraped | None:
            assert self._agent.ended(self._number) is None, self.log()
            found = self.metrics()
            return found if found.values.get(("bettong_node_tuner_done",)) == 1 else None

        return eventually(done, seconds=_WAIT_S_MAX, what="all is set that can be set")

    def wait_until_said(self, words: str) -> None:
        """Blocks until its log has them."""
        eventually(lambda: words in self.log(), seconds=_WAIT_S_MAX, what=words)

    def log(self) -> str:
        """What it said."""
        return self._agent.text(f"cat {_LOG}")

    def end(self, signal: str) -> int:
        """Sends a signal to the first process of its container; the exit code, or minus the signal's number."""
        self._agent.text(f"kill -{signal} $(cat /proc/{self._number}/task/{self._number}/children)")
        ended = eventually(
            lambda: self._agent.ended(self._number), seconds=_WAIT_S_MAX, what=f"ends by {signal}"
        )
        return ended.status

    def _script(self, words: str) -> str:
        inside = f"mount -t tmpfs none /dev && exec tini -- bettong-node-tuner {words}"
        return f"exec unshare --mount --ipc {' '.join(self._own)} sh -c '{inside}'"
