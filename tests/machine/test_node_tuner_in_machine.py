"""The node tuner on a kernel of its own: a virtual machine with four CPUs, two threads a core.

`make machine` runs these, on the command itself and without Kubernetes: what it says to the API server is tested in
tests/kubernetes.
"""

import re
from collections.abc import Iterator

import pytest

from bettong_node_tuner.formats import cpus_of_list, list_of
from tests.machine.building import disk
from tests.machine.guest_agent import GuestAgent
from tests.machine.guest_node import CPU, SWAP, SWAPPINESS, Facts, GuestTuner, facts, latency_us, put, states
from tests.machine.virtual_machine import CPUS, VirtualMachine

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

CORE = frozenset({0, 1})
PINNED = frozenset(range(CPUS)) - CORE
HOUSEKEEPING = list_of(CORE)
MASK = "3"
FREE_US = 2_000_000_000  # PM_QOS_CPU_LATENCY_DEFAULT_VALUE: nobody holds a bound
SETTINGS = {
    "HOUSEKEEPING_CPUS": HOUSEKEEPING,
    "CPU_GOVERNOR": "performance",
    "CPU_LATENCY_US": "10",
    "TURBO": "false",
    "THP": "madvise",
    "THP_DEFRAG": "never",
    "SWAP_OFF": "true",
    "HUGEPAGES_2M": "8",
    "IRQ_AFFINITY": "true",
    "RPS": "true",
    "WORKQUEUES": "true",
    "SYSCTLS": '{"vm.swappiness": 1, "vm.stat_interval": 10, "net.core.somaxconn": 1024}',
}
TUNED = {
    SWAPPINESS: "1",
    "/proc/sys/vm/stat_interval": "10",
    "/proc/sys/net/core/somaxconn": "1024",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "/sys/kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise madvise [never]",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "8",
    "/sys/devices/virtual/workqueue/cpumask": MASK,
    "/sys/class/net/eth0/queues/rx-0/rps_cpus": MASK,
    "/proc/irq/default_smp_affinity": MASK,
}
ABSENT = {"cpu-governor": {"unsupported"}, "turbo": {"unsupported"}}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualMachine]:
    with VirtualMachine(disk(), tmp_path_factory.mktemp("machine")) as found:
        found.agent.text(f"mkswap {SWAP}")
        swap_on(found)
        yield found


@pytest.fixture(scope="module")
def first(machine: VirtualMachine) -> Facts:
    return facts(machine.agent)


@pytest.fixture
def agent(machine: VirtualMachine, first: Facts) -> GuestAgent:
    """Of a machine as it started: where a test before has left it otherwise, it loses its power."""
    if facts(machine.agent) != first:
        machine.kill()
        machine.start()
        swap_on(machine)
    return machine.agent


def swap_on(machine: VirtualMachine) -> None:
    machine.agent.text(f"swapon -p 5 {SWAP}")


def in_journal(agent: GuestAgent, tuner: GuestTuner) -> str:
    return agent.text(f"ls {tuner.journal}")


def test_the_kernel_lists_cpus_as_the_tuner_reads_them(agent: GuestAgent) -> None:
    siblings = agent.text(f"cat {CPU}/cpu*/topology/thread_siblings_list").splitlines()
    assert {cpus_of_list(text) for text in siblings} == {CORE, PINNED}
    assert [list_of(cpus_of_list(text)) for text in siblings] == siblings
    assert agent.text(f"cat {CPU}/smt/control {CPU}/online").split() == ["on", list_of(CORE | PINNED)]


def test_a_dry_run_changes_nothing_and_knows_what_a_virtual_machine_has_not(agent: GuestAgent) -> None:
    before = facts(agent)
    assert before.values[SWAP] == "5"
    tuner = GuestTuner(agent, SETTINGS, "dry")
    ended = tuner.once("dry-run")
    assert ended.status == 0, ended
    found = states(ended.text)
    assert {name: found.pop(name) for name in ABSENT} == ABSENT
    # Interrupts that the kernel gives to a queue of a disk are where they should be by chance.
    assert found.pop("irq-affinity") == {"pending", "tuned"}
    assert set.union(*found.values()) == {"pending"}, ended.text
    assert facts(agent) == before
    assert "journal.json" not in in_journal(agent, tuner)


def test_a_node_is_tuned_and_all_but_what_another_set_is_set_back(agent: GuestAgent) -> None:
    before = facts(agent)
    pod = "/sys/fs/cgroup/kubepods.slice"
    task = agent.start("cp /bin/sleep /tmp/bettong-task; exec /tmp/bettong-task 9999")
    agent.text(f"mkdir -p {pod}; echo {task} > {pod}/cgroup.procs")
    fifo = {"FIFO_PRIORITY": "5", "FIFO_THREADS": '["bettong-*"]'}
    tuner = GuestTuner(agent, SETTINGS | fifo, "whole")
    tuner.start()
    tuner.wait_until_done()
    during = facts(agent)
    elsewhere = {number for number, cpus in during.interrupts().items() if not cpus <= CORE}
    assert SWAP not in during.values
    assert {path: during.values[path] for path in TUNED} == TUNED
    assert scheduling(agent, task) == (1, 5)
    assert latency_us(agent) == 10
    # The timer, the cascade of two old controllers, and the queues of disks that belong to pinned CPUs.
    assert elsewhere == kept_by_the_kernel(agent)
    assert set(re.findall(r"/proc/irq/(\d+)/smp_affinity_list: unsupported", tuner.log())) == set(
        map(str, elsewhere)
    )
    put(agent, SWAPPINESS, "33")
    tuner.wait_until_said(f"{SWAPPINESS}: external")
    assert tuner.end("TERM") == 0, tuner.log()
    assert facts(agent).values == before.but({SWAPPINESS: "33"})
    assert scheduling(agent, task) == (0, 0)
    assert latency_us(agent) == FREE_US
    agent.text(f"kill {task}")
    put(agent, SWAPPINESS, before.values[SWAPPINESS])


def scheduling(agent: GuestAgent, task: int) -> tuple[int, int]:
    """Policy and priority (`proc_pid_stat(5)`, fields 41 and 40)."""
    words = agent.text(f"cat /proc/{task}/stat").split()
    return int(words[40]), int(words[39])


def kept_by_the_kernel(agent: GuestAgent) -> set[int]:
    """Interrupts that cannot be sent elsewhere, of those that are not sent to housekeeping CPUs."""
    lines = [line.split() for line in agent.text("cat /proc/interrupts").splitlines()[1:]]
    queues = tuple(f"-req.{cpu}" for cpu in PINNED)
    kept = {words[0] for words in lines if words[-1] == "timer" or words[-1].endswith(queues)}
    return {2} | {int(number.rstrip(":")) for number in kept}


def test_interrupts_keep_off_the_cpus_of_a_partition(agent: GuestAgent) -> None:
    """The partition is what pins a pod's CPUs; the tuner sends the rest of the work to the other core."""
    pods = "/sys/fs/cgroup/pinned"
    agent.text("echo +cpuset > /sys/fs/cgroup/cgroup.subtree_control")
    agent.text(
        f"mkdir {pods}; echo {list_of(PINNED)} > {pods}/cpuset.cpus; echo root > {pods}/cpuset.cpus.partition"
    )
    task = agent.start("exec sleep 9999")
    put(agent, f"{pods}/cgroup.procs", str(task))
    assert agent.text("cat /sys/fs/cgroup/cpuset.cpus.effective").strip() == HOUSEKEEPING
    numbers = network_interrupts(agent)
    for number in numbers:
        put(agent, f"/proc/irq/{number}/smp_affinity_list", list_of(PINNED))
    before = facts(agent)
    assert on_pinned_cpus(agent, numbers) > 0
    tuner = GuestTuner(agent, SETTINGS, "partition")
    ended = tuner.once("apply")
    assert ended.status == 0, ended
    assert on_pinned_cpus(agent, numbers) == 0
    allowed = agent.text(f"grep Cpus_allowed_list /proc/{task}/status").split()[1]
    assert cpus_of_list(allowed) == PINNED
    assert tuner.once("revert").status == 0
    assert facts(agent) == before
    assert on_pinned_cpus(agent, numbers) > 0
    agent.text(f"kill {task}")
    for number in numbers:
        put(agent, f"/proc/irq/{number}/smp_affinity_list", list_of(CORE | PINNED))
    agent.text(f"echo member > {pods}/cpuset.cpus.partition")


def network_interrupts(agent: GuestAgent) -> list[int]:
    lines = (line.split() for line in agent.text("grep virtio0-.*put /proc/interrupts").splitlines())
    return [int(words[0].rstrip(":")) for words in lines]


def on_pinned_cpus(agent: GuestAgent, numbers: list[int]) -> int:
    """How often pinned CPUs were interrupted while something went over the network and back."""
    before = counts(agent, numbers)
    # One that was on its way while its interrupt was moved comes where it was meant to go.
    agent.run("for i in 1 2 3; do bash -c 'echo > /dev/tcp/10.0.2.2/9'; done")
    middle = counts(agent, numbers)
    agent.run("for i in 1 2 3; do bash -c 'echo > /dev/tcp/10.0.2.2/9'; done")
    after = counts(agent, numbers)
    assert sum(after) > sum(middle) > sum(before)
    return sum(after[cpu] - middle[cpu] for cpu in PINNED)


def counts(agent: GuestAgent, numbers: list[int]) -> list[int]:
    """By CPU, of some interrupts together."""
    lines = [line.split() for line in agent.text("cat /proc/interrupts").splitlines()[1:]]
    rows = [words[1 : 1 + CPUS] for words in lines if words[0] in {f"{number}:" for number in numbers}]
    return [sum(int(row[cpu]) for row in rows) for cpu in range(CPUS)]


def test_what_a_killed_tuner_leaves_the_next_sets_back(agent: GuestAgent) -> None:
    before = facts(agent)
    tuner = GuestTuner(agent, SETTINGS, "killed")
    tuner.start()
    tuner.wait_until_done()
    during = facts(agent)
    assert tuner.end("KILL") != 0
    assert facts(agent) == during != before
    assert latency_us(agent) == FREE_US, "the kernel lifts it"
    after = GuestTuner(agent, SETTINGS, "killed")
    after.start()
    after.wait_until_done()
    assert facts(agent) == during
    assert latency_us(agent) == 10
    assert after.end("TERM") == 0, after.log()
    assert facts(agent) == before


def test_threads_that_go_away_take_housekeeping_cpus_along(agent: GuestAgent) -> None:
    before = facts(agent)
    tuner = GuestTuner(agent, SETTINGS, "smt")
    assert tuner.once("apply").status == 0
    put(agent, f"{CPU}/smt/control", "off")
    assert agent.text(f"cat {CPU}/online").strip() == "0,2"
    ended = tuner.once("apply")
    # virtio_net gives its interrupts to all CPUs whenever there are more or fewer of them: another has set them.
    assert (ended.status, states(ended.text)["irq-affinity"]) == (0, {"tuned", "unsupported", "external"})
    alone = GuestTuner(agent, SETTINGS | {"HOUSEKEEPING_CPUS": "1,3"}, "alone")
    found = states(alone.plan())
    assert (found["workqueues"], found["rps"]) == ({"refused"}, {"refused"})
    put(agent, f"{CPU}/smt/control", "on")
    assert tuner.once("apply").status == 0
    assert {path: facts(agent).values[path] for path in TUNED} == TUNED
    assert tuner.once("revert").status == 0
    assert facts(agent) == before


def test_old_values_of_an_earlier_boot_are_void(machine: VirtualMachine, agent: GuestAgent) -> None:
    before, boot = facts(agent), boot_of(agent)
    tuner = GuestTuner(agent, SETTINGS, "boots")
    tuner.start()
    tuner.wait_until_done()
    machine.kill()
    machine.start()
    agent = machine.agent
    swap_on(machine)
    assert boot_of(agent) != boot
    fresh = facts(agent)
    assert fresh.of_all_boots() == before.of_all_boots()
    # By chance what the tuner had set: in this boot it is somebody else's.
    put(agent, SWAPPINESS, TUNED[SWAPPINESS])
    tuner = GuestTuner(agent, SETTINGS, "boots")
    assert tuner.once("revert").status == 0
    assert facts(agent).values == fresh.but({SWAPPINESS: TUNED[SWAPPINESS]})
    assert "journal.earlier-boot.json" in in_journal(agent, tuner)
    tuner.start()
    tuner.wait_until_done()
    assert {path: facts(agent).values[path] for path in TUNED} == TUNED
    assert tuner.end("TERM") == 0, tuner.log()
    assert facts(agent).values == fresh.but({SWAPPINESS: TUNED[SWAPPINESS]})


def boot_of(agent: GuestAgent) -> str:
    return agent.text("cat /proc/sys/kernel/random/boot_id").strip()
