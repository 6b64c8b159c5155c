"""What `make bench` says of its runs, and what it leaves in its folder."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from benchmarks import report
from benchmarks.measuring import Bar, Before, Measurement, Sample, Stopwatch, cpu_s, measure_machine
from benchmarks.worker_alone import hot_against_rare
from bettong.lab.machine.facts import facts
from bettong.local.record import ServiceRecord

FACTS = {"processor": "a processor", "cores": "2"}


def measurement(
    unit: str, values: list[float], bar: Bar | None, loops: list[float] | None = None
) -> Measurement:
    loops = loops or [1e6] * len(values)
    before = [Before(loop, 60.0, 90.0, 100.0, busy=0.5, stolen=0.1, load=1.0) for loop in loops]
    return Measurement("name", unit, bar, [Sample(value, 0.5) for value in values], before)


@pytest.mark.parametrize(
    ("unit", "values", "bar", "of_loop", "of_bar"),
    [
        ("messages/s", [3e6, 2e6, 4e6], Bar(2e6, 5e6), 3.0, 1.5),
        ("messages/s", [1e6, 5e5, 6e5], Bar(0.5, 1.0, of_loop=True), 0.6, 1.2),
        ("us", [100, 120, 110], Bar(55, 20), None, 0.5),
        ("%", [80, 60, 70], Bar(70, 90), None, 1.0),
        ("%", [80], None, None, None),
    ],
)
def test_a_measurement_is_judged_by_the_median_of_its_runs(
    unit: str, values: list[float], bar: Bar | None, of_loop: float | None, of_bar: float | None
) -> None:
    found = measurement(unit, values, bar)
    assert found.of_loop == pytest.approx(of_loop)
    assert found.of_bar == pytest.approx(of_bar)


def test_each_run_is_compared_with_the_loop_before_it() -> None:
    assert measurement("messages/s", [1e6, 4e6, 9e6], None, [1e6, 2e6, 3e6]).of_loop == 2.0


def test_json_and_page_are_written_by_date(tmp_path: Path) -> None:
    speeds = measurement("messages/s", [3e6, 2e6, 4e6], Bar(2e6, 5e6))
    path = report.save(tmp_path / "made", [speeds, measurement("us", [100], Bar(50, 20))], FACTS, {"runs": 3})
    content = json.loads(path.read_text())
    assert content["date"].startswith(path.stem[:10])
    assert (content["machine"], content["asked"]) == (FACTS, {"runs": 3})
    first = content["measurements"][0]
    assert (first["median"], first["range"], first["of_bar"]) == (3e6, [2e6, 4e6], 1.5)
    assert [run["value"] for run in first["runs"]] == [3e6, 2e6, 4e6]
    assert first["runs"][0]["before"]["hiccup_p99_us"] == 90.0
    assert first["runs"][0]["cpu_s_per_million"] == 0.5
    page = path.with_suffix(".html").read_text()
    assert "3,000,000 messages/s" in page
    assert "150%" in page


def test_the_table_tells_the_machines_own_pace_beside_each_measurement() -> None:
    console = Console(width=200, record=True)
    console.print(
        report.table([measurement("ms", [100, 300, 200], Bar(250, 20), [1e6, 3e6, 2.5e6])], "title")
    )
    text = console.export_text()
    assert "200 ms" in text
    assert "250 ms: reached" in text
    assert "2.50 M/s; 60, 90 us" in text


def test_the_versions_of_what_ran_are_reported() -> None:
    found = facts()
    assert "confluent-kafka 2" in found["packages"]
    assert re.fullmatch(r"Kafka 4\S+, Redis \d\S+, Java \d\S+", found["servers"])


def test_the_machine_is_looked_at_before_a_run() -> None:
    found = measure_machine(lambda: 7.0)
    assert found.plain_loop_per_s == 7.0
    assert found.hiccup_p50_us <= found.hiccup_p99_us <= found.hiccup_max_us
    assert 0 <= found.busy <= 1


def test_a_stopwatch_counts_what_is_burnt_below_it() -> None:
    watch, before = Stopwatch({}), cpu_s(psutil.Process())
    while cpu_s(psutil.Process()) - before < 0.05:
        pass
    sample = watch.sample(1_000_000)
    assert sample.cpu_s_per_million is not None
    assert sample.cpu_s_per_million >= 0.04, "the kernel counts in ticks of 10 ms"
    assert sample.parts == {"client": sample.cpu_s_per_million}


def test_a_process_that_ends_while_it_is_looked_at_stops_no_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that starts Java lives for a moment."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        gone = psutil.Process(child.pid)
        child.communicate(b"\n")
    monkeypatch.setattr(psutil.Process, "children", lambda *_, **__: [gone])
    own = psutil.Process()
    service = ServiceRecord(pid=own.pid, started_s=own.create_time(), log=Path("log"))
    sample = Stopwatch({"service": service}).sample(1_000_000)
    assert sample.parts.keys() == {"client", "service"}


@pytest.mark.parametrize("compiled", [True, False])
def test_sums_are_reported_rightly_however_hot_the_output(*, compiled: bool) -> None:
    assert hot_against_rare(20_000, compiled=compiled).value > 0
