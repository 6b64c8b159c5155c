"""What each toggle is about, on a fake tree: which files, which values, and why not."""

from pathlib import Path
from typing import Any

import pytest

from bettong_node_tuner.errors import SettingsError
from bettong_node_tuner.processors import KINDS, targets
from bettong_node_tuner.settings import PREFIX, TunerSettings, read
from bettong_node_tuner.targets import Obstacle, Setting, Target
from tests.simulation.fake_node import CPU, SWAP, THREAD, FakeNode


def found(folder: Path, changed: dict[str, str | None] | None = None, **wanted: Any) -> list[Target]:
    settings = TunerSettings(**wanted)
    return targets(settings, FakeNode(folder, changed).snapshot(settings))


def brief(all_of_them: list[Target]) -> list[tuple[str, str | None, str]]:
    return [(each.key, each.now, each.wanted) for each in all_of_them]


def test_nothing_wanted_is_about_nothing(tmp_path: Path) -> None:
    assert found(tmp_path) == []


def test_every_setting_has_a_kind() -> None:
    assert len(KINDS) == len(Setting)


def test_governors_of_all_policies(tmp_path: Path) -> None:
    assert brief(found(tmp_path, cpu_governor="performance")) == [
        (f"{CPU}/cpufreq/policy0/scaling_governor", "powersave", "performance"),
        (f"{CPU}/cpufreq/policy2/scaling_governor", "performance", "performance"),
    ]


def test_a_governor_that_the_kernel_has_not_is_unsupported(tmp_path: Path) -> None:
    assert {each.obstacle for each in found(tmp_path, cpu_governor="schedutil")} == {Obstacle.UNSUPPORTED}


def test_turbo_is_one_of_two_files(tmp_path: Path) -> None:
    pstate, boost = f"{CPU}/intel_pstate/no_turbo", f"{CPU}/cpufreq/boost"
    assert brief(found(tmp_path, turbo=False)) == [(pstate, "0", "1")]
    assert brief(found(tmp_path, turbo=True)) == [(pstate, "0", "0")]
    assert brief(found(tmp_path / "amd", {pstate: None, boost: "1"}, turbo=False)) == [(boost, "1", "0")]
    (neither,) = found(tmp_path / "none", {pstate: None}, turbo=False)
    assert neither.obstacle is Obstacle.UNSUPPORTED


def test_huge_pages(tmp_path: Path) -> None:
    assert brief(found(tmp_path, thp="never", thp_defrag="defer", hugepages_2m=64)) == [
        ("sys/kernel/mm/transparent_hugepage/enabled", "madvise", "never"),
        ("sys/kernel/mm/transparent_hugepage/defrag", "madvise", "defer"),
        ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0", "64"),
    ]
    (page,) = found(tmp_path, hugepages_1g=1)
    assert page.obstacle is Obstacle.UNSUPPORTED


def test_a_choice_that_the_kernel_has_not_is_unsupported(tmp_path: Path) -> None:
    changed: dict[str, str | None] = {"sys/kernel/mm/transparent_hugepage/enabled": "[always] never"}
    (thp,) = found(tmp_path, changed, thp="madvise")
    assert (thp.obstacle, thp.why) == (Obstacle.UNSUPPORTED, "the kernel has [always] never")


def test_swap_goes_off_where_memory_has_room_for_it(tmp_path: Path) -> None:
    assert brief(found(tmp_path, swap_off=True)) == [(SWAP, "-2", "off")]
    full: dict[str, str | None] = {"proc/swaps": "Filename\n/swap\\040file file 9000000 4000001 5"}
    (area,) = found(tmp_path / "full", full, swap_off=True)
    assert (area.key, area.obstacle) == ("swap:/swap file", Obstacle.REFUSED)


def test_interrupts_go_to_housekeeping_unless_they_stay_there(tmp_path: Path) -> None:
    assert brief(found(tmp_path, irq_affinity=True, housekeeping_cpus="0-1")) == [
        ("proc/irq/default_smp_affinity", "f", "3"),
        ("proc/irq/0/smp_affinity_list", "0-3", "0-1"),
        ("proc/irq/24/smp_affinity_list", "2", "0-1"),
        ("proc/irq/25/smp_affinity_list", "1", "1"),
    ]


def test_receive_work_of_hardware_alone(tmp_path: Path) -> None:
    assert brief(found(tmp_path, rps=True, housekeeping_cpus="0,2")) == [
        ("sys/class/net/eth0/queues/rx-0/rps_cpus", "0", "5")
    ]
    (none,) = found(
        tmp_path / "soft", {"sys/class/net/eth0/device/vendor": None}, rps=True, housekeeping_cpus="0"
    )
    assert none.obstacle is Obstacle.UNSUPPORTED


@pytest.mark.parametrize(("cpus", "online"), [("0-4", "0-3"), ("3", "0-2")])
def test_housekeeping_cpus_must_be_there(tmp_path: Path, cpus: str, online: str) -> None:
    (masks,) = found(tmp_path, {f"{CPU}/online": online}, workqueues=True, housekeeping_cpus=cpus)
    assert masks.obstacle is Obstacle.REFUSED
    assert "housekeeping_cpus" in masks.why


def test_sysctls_with_several_words_and_those_that_are_missing(tmp_path: Path) -> None:
    wanted = {"net.ipv4.tcp_rmem": "4096  131072 9", "vm.not_there": "1"}
    rmem, missing = found(tmp_path, sysctls=wanted)
    assert (rmem.now, rmem.wanted) == ("4096 131072 6291456", "4096 131072 9")
    assert missing.obstacle is Obstacle.UNSUPPORTED


FIFO: dict[str, Any] = {"fifo_priority": 5, "fifo_threads": ["bettong*"]}


def test_threads_of_pods_by_name_and_no_others(tmp_path: Path) -> None:
    assert brief(found(tmp_path, **FIFO)) == [(THREAD, "0/0", "1/5")]


@pytest.mark.parametrize(("runtime", "obstacle"), [("-1", Obstacle.REFUSED), (None, Obstacle.UNSUPPORTED)])
def test_no_thread_may_keep_a_cpu_for_ever(tmp_path: Path, runtime: str | None, obstacle: Obstacle) -> None:
    (thread,) = found(tmp_path, {"proc/sys/kernel/sched_rt_runtime_us": runtime}, **FIFO)
    assert thread.obstacle is obstacle


def test_nothing_is_written_beside_tuned_and_no_interrupts_beside_irqbalance(tmp_path: Path) -> None:
    wanted: dict[str, Any] = {"irq_affinity": True, "housekeeping_cpus": "0", "thp": "never"}

    def refused(folder: str, other: str, **more: Any) -> set[str]:
        each = found(tmp_path / folder, {"proc/90/comm": other}, **wanted, **more)
        return {target.setting.value for target in each if target.obstacle is Obstacle.REFUSED}

    assert refused("a", "tuned") == {"irq-affinity", "thp"}
    assert refused("b", "irqbalance") == {"irq-affinity"}
    assert refused("c", "tuned", beside_others=True) == set()
    assert refused("d", "tuned-gui") == set()


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("MODE", "on", "MODE: Input should be 'off', 'dry-run', 'apply' or 'revert'"),
        ("HOUSEKEEPING_CPUS", "0-x", "HOUSEKEEPING_CPUS: '0-x' is not a list of CPUs"),
        ("IRQ_AFFINITY", "true", "IRQ_AFFINITY needs BETTONG_NODE_TUNER_HOUSEKEEPING_CPUS"),
        ("SYSCTLS", '{"fs.file-max": "1"}', "fs.file-max is not a sysctl of vm, net or kernel"),
        ("SYSCTLS", '{"vm.../../x": "1"}', "is not a sysctl of vm, net or kernel"),
        ("SYSCTLS", '{"vm.drop_caches": "1"}', "vm.drop_caches: it is an action"),
        ("SYSCTLS", '{"kernel.shmmax": "1"}', "kernel.shmmax: each pod has its own"),
        ("SYSCTLS", "vm.swappiness=1", "expected JSON"),
        ("FIFO_PRIORITY", "5", "FIFO_PRIORITY and BETTONG_NODE_TUNER_FIFO_THREADS: give both"),
        ("FIFO_THREADS", '["*"]', "FIFO_THREADS"),
        ("METRICS_LISTEN", "7400", "METRICS_LISTEN: expected host:port"),
    ],
)
def test_wrong_settings_are_reported(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, fault: str
) -> None:
    monkeypatch.setenv(PREFIX + name, text)
    with pytest.raises(SettingsError) as raised:
        read({})
    assert fault in str(raised.value)


def test_flags_come_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}MODE", "apply")
    monkeypatch.setenv(f"{PREFIX}SYSCTLS", '{"vm.swappiness": "1"}')
    assert read({"mode": "revert", "root": None}).mode == "revert"
    assert read({}).sysctls == {"vm.swappiness": "1"}


def test_every_setting_is_described() -> None:
    for name, field in TunerSettings.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name
