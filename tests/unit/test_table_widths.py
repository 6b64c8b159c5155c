"""Every table that a command prints: no line is wider than the terminal, no number is broken, no name is lost."""

import io
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest
import typer
from rich.console import Console
from rich.table import Table

from bettong.chaos.growth import Growth
from bettong.chaos.report import GrowthReport, KindReport, MemoryReport, Report, SinkReport
from bettong.cli import chaos_tables
from bettong.cli.account_tables import accounts_table
from bettong.cli.computation_table import computations_table
from bettong.cli.doctor import table as doctor_table
from bettong.cli.fitting_tables import fitting, print_fitting
from bettong.cli.k8s.status_form import release_form
from bettong.cli.k8s.tables import pods_table
from bettong.cli.lab.tables import comparison_table, growth_table, history_table, results_table
from bettong.cli.latency_tables import latency_table
from bettong.cli.main import app
from bettong.cli.queue_texts import clients_table, queues_table, subscribers_table
from bettong.cli.status import partitions_table, services_table, stages_table
from bettong.cli.watermark_texts import watermarks_table
from bettong.cluster.counts import Workers
from bettong.cluster.pods import PodRow
from bettong.cluster.rolling import RolloutProgress
from bettong.hot_keys import HotKey, HotKeys
from bettong.identifiers import Origin, PartitionId
from bettong.inspection.accounts import AccountLine
from bettong.inspection.computations import ComputationLine
from bettong.inspection.latency_parts import sink_parts
from bettong.inspection.open_windows import InputWatermark
from bettong.inspection.overview import StageSummary, partition_rows
from bettong.inspection.queues import QueueKind, QueueLine
from bettong.inspection.services import ProcessFacts, ServiceRow
from bettong.lab.history import histories
from bettong.lab.results import BenchmarkResults, MeasuredMetric, RunValue
from bettong.lab.statistics.comparison import ChangeVerdict, Comparison
from bettong.lab.statistics.growing import SeriesGrowth
from bettong.latency_parts import PartsOfLate
from bettong.local.prerequisites import Finding, Grade
from bettong.queued import ClientCredits, SubscriberQueue

# As long as a name of an application's part may well be.
NAME = "orders-of-all-shops-by-customer-and-day"
OTHER = "payments-of-all-shops-by-customer-and-day"
NOW_NS = 1_800_000_000_000_000_000


def report() -> Report:
    return Report.model_construct(
        name=NAME,
        seed=7,
        golden="golden.jsonl",
        latency_p50_s=1.5,
        kinds=[
            KindReport(
                kind="kill-processor-executor",
                injected=1234,
                missed=12,
                not_recovered=0,
                measured=9,
                together=345,
                recovery_p50_s=123.45,
                recovery_max_s=1234.56,
            )
        ],
        sinks=[
            SinkReport(
                sink=NAME,
                channel="subscriber",
                compare="key-by-key-in-order",
                expected=1_234_567,
                found=1_234_560,
                lost=7_654_321,
                doubled=2_345_678,
                unexpected=3_456_789,
                misplaced=4_567_890,
                differences=[],
            )
        ],
        memory=[MemoryReport(process=NAME, peak_mb=1234.0, bound_mb=2000.0)],
        growth=[
            GrowthReport(
                metric=f"{NAME} p99 latency",
                unit="messages/s",
                median=123456.7,
                share=0.0123,
                low=-0.1,
                high=0.25,
                bound=0.5,
            )
        ],
    )


def partitions() -> Table:
    hot = HotKeys(5000, (HotKey("customer-with-a-long-name", 0.42, 0.4),)).to_text()
    record = {
        "offset": "1234567890",
        "snapshot_offset": "1234560000",
        "messages": "2345678901",
        "lag": "7654321",
        "messages_per_s": "123456.0",
        "latency_p50_ms": "1234.5",
        "latency_p99_ms": "65432.1",
        "watermark_ns": str(NOW_NS - 90 * 10**9),
        "watermark_held_by": f"{NAME}/{OTHER}/12",
        "hot_keys": hot,
    }
    return partitions_table(partition_rows({}, {PartitionId(NAME, 12): record}), NOW_NS)


def watermarks() -> Table:
    of = InputWatermark(
        id=PartitionId(NAME, 12),
        producer=f"{OTHER}/{NAME}",
        origin=Origin(f"{OTHER}/json-0123456789abcdef0123456789abcdef"),
        live=1,
        awaited=0,
        watermark_ns=NOW_NS - 10**12,
        since_ns=NOW_NS - 10**11,
        at_least=True,
        silent_s=1234.5,
        idle_s=60.0,
        idle_at_ns=None,
    )
    return watermarks_table([of], NOW_NS)


def pod_row() -> PodRow:
    return PodRow(
        name=f"{NAME}-bettong-worker-12",
        component="worker",
        state="CrashLoopBackOff",
        ready=False,
        restarts=123,
        qos="Guaranteed",
        cpus=Fraction(8),
        whole=True,
        node="ip-10-0-12-34.eu-central-1.compute.internal",
        since_s=0.0,
    )


def account(**changes: int) -> AccountLine:
    counts = {
        "taken": 9_876_543,
        "used": 8_765_432,
        "given": 7_654_321,
        "filtered": 6_543_210,
        "late": 5_432_109,
    }
    more = {"partly_late": 4_321_098, "dead_letters": 3_210_987, "skipped": 2_109_876, "pending": 1_098_765}
    return AccountLine(
        stage=OTHER, kind="computation", name=NAME, differences=(), **(counts | more | changes)
    )


def services() -> Table:
    process = ProcessFacts(
        pid=1_234_567, started_s=1.0, restarts=99, runs=True, log="x.log", fault="", final_status=None
    )
    return services_table([ServiceRow(NAME, "running", 1.0, f"waits for {OTHER} " * 5, process)], 300.0)


def benchmark_results(day: int = 1) -> BenchmarkResults:
    runs = [
        RunValue(value=value * (1 + day // 20)) for value in (12345678.0, 12345679.0, 12445678.0, 12345673.0)
    ]
    return BenchmarkResults(
        date=f"2026-11-{day:02}T00:00:00+00:00",
        machine={"commit": f"{day:040x}"},
        asked={"run": NAME},
        measurements=[MeasuredMetric(name=NAME, unit="messages/s", runs=runs)],
    )


TABLES: dict[str, Callable[[], Table]] = {
    "services": services,
    "stages": lambda: stages_table(
        [StageSummary(NAME, 4096, *(1_234_567_890 + number for number in range(7)))]
    ),
    "partitions": partitions,
    "accounts": lambda: accounts_table([account()]),
    "computations": lambda: computations_table(
        [ComputationLine(OTHER, NAME, 9_876_543, 8_765_432, 0.875, 123.0, 1234567.0, 0.0, 0.0, 7654321.0)]
    ),
    "latency": lambda: latency_table(
        sink_parts([{f"latency_parts/{NAME}": PartsOfLate(9, [12345.0] * 5, [98765.0] * 5).to_text()}])
    ),
    "watermarks": watermarks,
    "queues": lambda: queues_table([QueueLine(NAME, QueueKind.DECODING, OTHER, 1_234_567, 7654321.9)]),
    "clients": lambda: clients_table([(NAME, ClientCredits(f"{OTHER}/{NAME}", 0, 12_345, 765432.1))]),
    "subscribers": lambda: subscribers_table(
        [(NAME, SubscriberQueue(OTHER, "ipv4:10.101.102.103:65432", 6543.2, 1_234_567, 7_654_321))]
    ),
    "pods": lambda: pods_table([pod_row()], "shop", NOW_NS / 1e9),
    "faults": lambda: chaos_tables.faults(report()),
    "sinks": lambda: chaos_tables.sinks(report()),
    "memory": lambda: chaos_tables.memory(report()),
    "growth": lambda: chaos_tables.growth(report()),
    "measured": lambda: results_table(benchmark_results()),
    "soaked": lambda: growth_table([SeriesGrowth(NAME, Growth(123456.7, 0.5, -0.123, 0.456, ()), 0.25)]),
    "history": lambda: history_table(histories([benchmark_results(day) for day in range(1, 29)])),
    "compared": lambda: comparison_table(
        [Comparison(NAME, "messages/s", 12345678.0, 2345678.0, 0.19, 0.123, 0.256, 0.01, ChangeVerdict.WORSE)]
    ),
    "doctor": lambda: doctor_table([Finding("memory", Grade.WARNING, f"{NAME} " * 6, f"{OTHER} " * 6)]),
}

# Each command that prints one; `setup` ends with that of `doctor`.
COMMANDS = {
    *("doctor", "status", "replay", "chaos", "dead-letters list", "state list", "k8s status"),
    *("lab check", "lab run", "lab soak", "lab history", "lab compare"),
}

NUMBER = re.compile(r"\d[\d,.]*\d|\d")


def with_json(command: Any, name: str) -> Iterator[str]:
    for each, below in getattr(command, "commands", {}).items():
        yield from with_json(below, f"{name} {each}".strip())
    if any("--json" in each.opts for each in command.params):
        yield name


def test_each_command_that_prints_a_table_prints_json_too() -> None:
    assert sorted(COMMANDS - set(with_json(typer.main.get_command(app), ""))) == []


def printed(table: Table, width: int) -> str:
    text = io.StringIO()
    print_fitting(Console(width=width, file=text, highlight=False), table)
    return text.getvalue()


def numbers(table: Table) -> list[str]:
    """All numbers in columns of numbers."""
    columns = [column for column in table.columns if column.justify == "right"]
    return [found for column in columns for cell in column.cells for found in NUMBER.findall(str(cell))]


@pytest.mark.parametrize("name", TABLES)
def test_no_line_is_wider_than_80_columns_and_no_number_is_broken(name: str) -> None:
    table = TABLES[name]()
    text = printed(table, 80)
    assert max(map(len, text.splitlines())) <= 80, text
    assert [number for number in numbers(table) if number not in NUMBER.findall(text)] == [], text
    assert "…" not in text


@pytest.mark.parametrize("name", TABLES)
def test_200_columns_are_used_before_anything_goes_below(name: str) -> None:
    table = TABLES[name]()
    text = printed(table, 200)
    assert max(map(len, text.splitlines())) <= 200, text
    assert "…" not in text
    if name != "doctor":
        assert NAME in text, text
        assert len(fitting(table, 200)) == 1
    assert len(printed(table, 80).splitlines()) >= len(text.splitlines())


def test_what_has_no_room_beside_stands_below_with_the_names_again() -> None:
    table = Table(box=None)
    table.add_column("name")
    for number in range(12):
        table.add_column(f"column {number}", justify="right")
    for row in ("first", "second"):
        table.add_row(row, *(f"{row}-{number}" for number in range(12)))
    lines = printed(table, 80).splitlines()
    assert [line.split()[0] for line in lines] == ["name", "first", "second"] * 2
    assert [f"first-{number}" for number in range(12)] == lines[1].split()[1:] + lines[4].split()[1:]


def test_a_narrow_table_is_one_table_whatever_the_width() -> None:
    table = Table(box=None)
    table.add_column("name")
    table.add_row("first")
    assert printed(table, 80).split() == ["name", "first"]


def test_pods_of_a_release_have_a_form_for_scripts() -> None:
    workload = RolloutProgress(name="shop-worker", wanted=3, updated=3, ready=2, seen=True, left=0)
    workers = Workers(name="shop-worker", wanted=3, live=2, slots=2, partitions=16)
    form = release_form("shop", "prod", [pod_row()], [workload], workers, None, ["a crash loop"])
    assert form.all_ready is False
    assert form.model_dump()["pods"] == [
        {
            "component": "worker",
            "pod": f"{NAME}-bettong-worker-12",
            "state": "CrashLoopBackOff",
            "ready": False,
            "restarts": 123,
            "qos_class": "Guaranteed",
            "cpus": 8.0,
            "whole_cpus": True,
            "node": "ip-10-0-12-34.eu-central-1.compute.internal",
            "since_unix_s": 0.0,
        }
    ]
    assert form.model_dump()["workers"] == {"wanted": 3, "live": 2, "slots": 2, "partitions": 16}
    ready = RolloutProgress(name="shop-worker", wanted=3, updated=3, ready=3, seen=True, left=0)
    assert release_form("shop", "prod", [], [ready], workers, "lag 0", []).all_ready is True
    assert release_form("shop", "prod", [], [workload], workers, None, []).all_ready is False
