"""Where the time of partitions goes, from what processors fold to what is shown."""

from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from bettong import Application, metrics
from bettong.application.plan import plan
from bettong.cli.computation_table import computations_table
from bettong.edges.metrics_endpoint import families
from bettong.identifiers import PartitionId
from bettong.inspection.accounts import account_lines
from bettong.inspection.computations import computation_lines
from bettong.inspection.deployment import DeploymentAnswers, inspection
from bettong.worker.stage_program import program
from bettong.worker.stopwatch import Stopwatch, times_of
from bettong_processor.reporting import metrics_of
from tests.samples.worker import data, worker
from tests.simulation.crash_guards import guard

SLOW_S = 0.02
Records = Mapping[PartitionId, Mapping[str, str]]


class Clock:
    """Goes on by a microsecond each time it is asked, and by what a slow function takes."""

    now_ns = 0

    def __call__(self) -> int:
        self.now_ns += 1000
        return self.now_ns


CLOCK = Clock()


@dataclass
class Reading:
    place: str
    value: int


@dataclass
class Sum:
    total: int = 0


def is_high(reading: Reading) -> bool:
    return reading.value > 1


def add(reading: Reading, state: Sum) -> Reading:
    CLOCK.now_ns += round(SLOW_S * 1e9)
    state.total += reading.value
    return Reading(reading.place, state.total)


def meters() -> Application:
    app = Application("meters")
    readings = app.source("readings", schema=Reading, key="place")
    readings.filter(is_high, name="high").stateful(add, state=Sum, name="sums").sink("totals")
    return app


def record_of(partition: int, folder: Path, values: list[int]) -> dict[str, str]:
    """What a processor says of a partition when a frame with these values is folded."""
    (stage,) = plan(meters()).stages
    one = worker(program(stage, compiled=False))
    one.progress.stopwatch = Stopwatch(CLOCK)
    fold = guard(folder / str(partition)).of(one)
    fold(0, data("readings/a", 1, [Reading("ab", value) for value in values]))
    return {name: str(value) for name, value in metrics_of(one).items()}


def records(folder: Path) -> Records:
    return {
        PartitionId("readings", 0): record_of(0, folder, [1, 2, 3]),
        PartitionId("readings", 1): record_of(1, folder, [4]),
    }


def test_a_slow_function_has_its_time_and_its_messages(tmp_path: Path) -> None:
    found = records(tmp_path)
    lines = computation_lines(found, account_lines(found, [], are_ends_known=False))
    assert [(line.name, line.taken, line.given) for line in lines] == [
        ("", None, None),
        ("high", 4, 3),
        ("sums", 3, 3),
        ("totals", 3, 3),
    ]
    sums = lines[2]
    assert sums.max_us >= 2 * SLOW_S * 1e6 * 0.99  # of the partition that had two of them in a frame
    assert all(line.max_us < sums.max_us / 2 for line in lines if line is not sums)
    assert sums.busy_share > sum(line.busy_share for line in lines if line is not sums)
    busy = [times_of(record[metrics.TIMES.name])["sums"].busy_s for record in found.values()]
    assert sum(busy) >= 3 * SLOW_S * 0.99


def test_they_are_shown_in_80_columns(tmp_path: Path) -> None:
    found = records(tmp_path)
    lines = computation_lines(found, account_lines(found, [], are_ends_known=False))
    console = Console(width=80, file=StringIO())
    console.print(computations_table(lines))
    assert isinstance(console.file, StringIO)
    shown = console.file.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in shown) <= 80
    (sums,) = [line.split() for line in shown if "sums" in line]
    assert sums[:3] == ["sums", "3", "3"]
    assert sums[-1] == "ms"


def test_prometheus_gets_them_by_computation(tmp_path: Path) -> None:
    found = {family.name: family for family in families({"service": "processor"}, records(tmp_path))}
    messages = {
        (sample.labels["partition"], sample.labels["computation"]): sample.value
        for sample in found["bettong_computation_messages"].samples
    }
    assert messages == {
        ("0", "high"): 3,
        ("0", "sums"): 2,
        ("0", "totals"): 2,
        ("1", "high"): 1,
        ("1", "sums"): 1,
        ("1", "totals"): 1,
    }
    results = [sample.value for sample in found["bettong_computation_results"].samples]
    assert results == [2, 2, 2, 1, 1, 1]
    busy = {
        sample.labels["computation"]: sample.value
        for sample in found["bettong_computation_busy_seconds"].samples
        if sample.labels["partition"] == "1"
    }
    assert set(busy) == {"", "high", "sums", "totals"}
    assert busy["sums"] >= SLOW_S * 0.99


@pytest.mark.parametrize("text", ["", "x", "[1]", '{"sums":[1]}'])
def test_what_another_version_says_of_times_is_left_out(tmp_path: Path, text: str) -> None:
    both = records(tmp_path)
    one = PartitionId("readings", 1)
    found = {**both, one: {**both[one], metrics.TIMES.name: text}}
    lines = computation_lines(found, account_lines(found, [], are_ends_known=False))
    assert next(line for line in lines if line.name == "sums").max_us > 0
    assert families({"service": "processor"}, found)


def test_a_worker_that_is_kept_from_one_batch_to_the_next_counts_on(tmp_path: Path) -> None:
    (stage,) = plan(meters()).stages
    one, process = worker(program(stage, compiled=False)), guard(tmp_path)
    one.progress.stopwatch = Stopwatch(CLOCK)
    for offset in range(3):
        process.of(one)(offset, data("readings/a", offset + 1, [Reading("ab", 4)]))
    assert times_of(one.progress.stopwatch.text())["sums"].busy_s >= 3 * SLOW_S * 0.99


def test_nothing_is_busy_where_nobody_folds(tmp_path: Path) -> None:
    found = records(tmp_path)
    for live, wanted in (({"p": {"service": "processor", "lag": "0"}}, 4), ({}, 0)):
        seen = inspection("meters", [], DeploymentAnswers(live, found))
        assert len(seen.computations) == wanted
