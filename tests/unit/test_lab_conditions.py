"""`bettong lab check`: what distorts a measurement on a machine."""

from __future__ import annotations

import json
import platform
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bettong.cli.main import app
from bettong.lab.machine.conditions import Conditions, examine
from bettong.lab.machine.facts import condition_facts, run_facts
from bettong.lab.machine.machine_state import Hiccups, cpu_list, inspect_machine, measure_hiccups
from bettong.lab.results import COMMITTED, BenchmarkResults, MeasuredMetric, RunValue, differences
from bettong.local.prerequisites import Grade

QUIET = Conditions(
    cpus=8,
    governors=("performance",) * 8,
    turbo=False,
    smt=False,
    isolated=(2, 3),
    interrupts_on_isolated=0,
    huge_pages="madvise",
    swapped_mb=0.0,
    swappiness=60,
    clock_source="tsc",
    quota=None,
    open_files_max=65_536,
    load=0.1,
    busy=0.01,
    stolen=0.0,
    hiccup_p50_us=60.0,
    hiccup_p99_us=90.0,
    hiccup_max_us=200.0,
)


def test_a_machine_made_for_it_has_nothing_to_mend() -> None:
    assert {finding.grade for finding in examine(QUIET)} == {Grade.GOOD}


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("stolen time", {"stolen": 0.02}),
        ("other work", {"busy": 0.4}),
        ("hiccups", {"hiccup_p99_us": 900.0}),
        ("quota", {"quota": 2.5}),
        ("frequency", {"governors": ("performance", "powersave")}),
        ("turbo", {"turbo": True}),
        ("SMT", {"smt": True}),
        ("isolation", {"isolated": ()}),
        ("isolation", {"interrupts_on_isolated": 3}),
        ("huge pages", {"huge_pages": "always"}),
        ("swap", {"swapped_mb": 512.0}),
        ("clock source", {"clock_source": "hpet"}),
        ("limits", {"open_files_max": 1024}),
    ],
)
def test_each_distortion_is_named_with_its_remedy(name: str, seen: dict[str, object]) -> None:
    bad = [finding for finding in examine(replace(QUIET, **seen)) if finding.grade is not Grade.GOOD]  # type: ignore[arg-type]
    assert [finding.name for finding in bad] == [name]
    assert bad[0].remedy


def test_what_a_machine_does_not_say_is_not_held_against_it() -> None:
    unknown = replace(
        QUIET, governors=(), turbo=None, smt=None, huge_pages="", clock_source="", swappiness=None
    )
    assert {finding.grade for finding in examine(unknown)} == {Grade.GOOD}


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("", ()), ("3", (3,)), ("0-2,5", (0, 1, 2, 5)), ("nonsense", ()), ("1-", (1,)), ("-2", ())],
)
def test_the_kernels_lists_of_processors_are_read(text: str, cpus: tuple[int, ...]) -> None:
    assert cpu_list(text) == cpus


def kernel_files(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    return root


NO_HICCUPS = Hiccups(60.0, 90.0, 100.0, busy=0.0, stolen=0.0)


def test_what_the_kernel_says_is_read(tmp_path: Path) -> None:
    cpu = "sys/devices/system/cpu"
    root = kernel_files(
        tmp_path,
        {
            f"{cpu}/isolated": "2-3",
            f"{cpu}/cpufreq/policy0/scaling_governor": "powersave",
            f"{cpu}/cpufreq/policy1/scaling_governor": "performance",
            f"{cpu}/intel_pstate/no_turbo": "0",
            f"{cpu}/smt/active": "1",
            "proc/irq/1/smp_affinity_list": "0-1",
            "proc/irq/2/smp_affinity_list": "0-3",
            "proc/sys/vm/swappiness": "10",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
            "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
            "sys/fs/cgroup/cpu.max": "250000 100000",
        },
    )
    seen = inspect_machine(NO_HICCUPS, root)
    assert seen.isolated == (2, 3)
    assert seen.governors == ("powersave", "performance")
    assert (seen.turbo, seen.smt, seen.interrupts_on_isolated) == (True, True, 1)
    assert (seen.swappiness, seen.huge_pages, seen.clock_source) == (10, "madvise", "tsc")
    assert seen.quota == 2.5


def test_a_kernel_that_says_nothing_or_garbage_is_unknown(tmp_path: Path) -> None:
    nothing = inspect_machine(NO_HICCUPS, tmp_path)
    assert (nothing.governors, nothing.turbo, nothing.smt, nothing.quota) == ((), None, None, None)
    root = kernel_files(tmp_path, {"sys/fs/cgroup/cpu.max": "max 100000", "proc/sys/vm/swappiness": "much"})
    garbage = inspect_machine(NO_HICCUPS, root)
    assert (garbage.quota, garbage.swappiness, garbage.huge_pages) == (None, None, "")


def test_boost_says_whether_turbo_is_on_where_it_is_no_intel(tmp_path: Path) -> None:
    root = kernel_files(tmp_path, {"sys/devices/system/cpu/cpufreq/boost": "0"})
    assert inspect_machine(NO_HICCUPS, root).turbo is False


def test_hiccups_are_in_order_and_shares_are_shares() -> None:
    found = measure_hiccups(0.05)
    assert 0 < found.p50_us <= found.p99_us <= found.max_us
    assert 0 <= found.busy <= 1
    assert 0 <= found.stolen <= 1


def test_what_is_looked_at_is_a_fact_of_a_run() -> None:
    assert condition_facts(replace(QUIET, turbo=None, quota=2.5)) == {
        "kernel": platform.release(),
        "governor": "performance",
        "turbo": "unknown",
        "SMT": "off",
        "isolated processors": "2,3",
        "interrupts on isolated processors": "0",
        "huge pages": "madvise",
        "swappiness": "60",
        "clock source": "tsc",
        "quota": "2.5 processors",
        "open files": "65536",
        "swap used before": "0 MB",
        "other work before": "1%",
        "stolen time before": "0.0%",
        "hiccups before": "p50 60, p99 90, max 200 us",
    }
    unknown = replace(
        QUIET, governors=(), smt=None, huge_pages="", clock_source="", swappiness=None, isolated=()
    )
    kept = condition_facts(unknown)
    assert {kept[name] for name in ("governor", "SMT", "huge pages", "swappiness", "clock source")} == {
        "unknown"
    }
    assert (kept["isolated processors"], condition_facts(QUIET)["quota"]) == ("none", "none")


def test_compare_names_what_differs_of_a_machine_and_not_what_does_each_time() -> None:
    def measured(seen: Conditions) -> BenchmarkResults:
        metric = MeasuredMetric(name="x", unit="s", runs=[RunValue(value=1.0)])
        return BenchmarkResults(date="", machine=condition_facts(seen), asked={}, measurements=[metric])

    varying = {"busy": 0.3, "stolen": 0.2, "swapped_mb": 9.0, "hiccup_p50_us": 1.0, "hiccup_p99_us": 9e4}
    each_time = replace(QUIET, load=9.0, hiccup_max_us=1e6, **varying)  # type: ignore[arg-type]
    assert differences(measured(QUIET), measured(each_time)) == []
    other = replace(each_time, huge_pages="always", turbo=True)
    assert differences(measured(QUIET), measured(other)) == [
        "machine, huge pages: madvise before, always after",
        "machine, turbo: off before, on after",
    ]


def test_a_run_begins_with_all_facts() -> None:
    found = run_facts()
    assert {
        "processor",
        "commit",
        COMMITTED,
        "load before",
        "kernel",
        "governor",
        "hiccups before",
    } <= found.keys()


def test_the_command_prints_a_line_each_and_json() -> None:
    said = CliRunner().invoke(app, ["lab", "check", "--seconds", "0.1"])
    assert said.exit_code == 0
    assert "hiccups" in said.output
    found = json.loads(CliRunner().invoke(app, ["lab", "check", "--seconds", "0.1", "--json"]).stdout)
    assert [each["name"] for each in found][:3] == ["stolen time", "other work", "hiccups"]
