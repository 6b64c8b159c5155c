"""What `bettong lab run` leaves, what it makes of latencies, and whether an objective is met."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bettong.lab.comparison import MetricRuns
from bettong.lab.folder import RESULTS, RUN_FILE, SERIES, results, save
from bettong.lab.measures import Measured
from bettong.lab.objective import missed
from bettong.lab.results import read
from bettong.lab.run import Repeat
from bettong.lab.sampling import SeriesPoint
from bettong.lab.spec import LoadStep, Objective, RunSpec

NOW = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)
SPEC = RunSpec(
    name="Steady, 10/s", application="app.py", load="load.py", steps=[LoadStep(messages_per_s=10, seconds=1)]
)
FACTS = {"processor": "a processor"}


def repeats(*values: float) -> list[Repeat]:
    return [
        Repeat(
            [Measured("out at 10/s, p99", "ms", value, "h"), Measured("throughput", "messages/s", 2 * value)],
            [SeriesPoint(1.0, "sender: cores", 0.5)],
            {"target": "a cluster"},
        )
        for value in values
    ]


def test_a_run_gets_a_folder_of_its_own_that_can_be_read_again(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("name = 'kept as it was'")
    made = save(tmp_path / "out", file, SPEC, repeats(5.0, 6.0), FACTS, NOW)
    assert made.name == "2026-11-26T12-00-00Z-steady-10-s"
    assert (made / RUN_FILE).read_text() == file.read_text()
    assert read(made).metrics == [
        MetricRuns("out at 10/s, p99", "ms", (5.0, 6.0)),
        MetricRuns("throughput", "messages/s", (10.0, 12.0)),
    ]
    written = json.loads((made / RESULTS).read_text())
    assert written["asked"]["run"] == "Steady, 10/s"
    assert written["machine"] == {"processor": "a processor", "target": "a cluster"}
    assert pq.read_table(made / SERIES).to_pylist() == [
        {"repeat": number, "at_s": 1.0, "metric": "sender: cores", "value": 0.5} for number in (1, 2)
    ]


def test_the_newest_run_of_a_folder_is_meant_by_it(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("")
    for hour in (1, 2):
        save(tmp_path / "out", file, SPEC, repeats(float(hour)), FACTS, NOW.replace(hour=hour))
    assert read(tmp_path / "out").metrics[0].values == (2.0,)


@pytest.mark.parametrize(("bound", "faults"), [(5.0, 1), (6.0, 0), (None, 0)])
def test_an_objective_is_judged_by_the_median_of_the_repeats(bound: float | None, faults: int) -> None:
    latencies_ms = results(SPEC, repeats(4.0, 6.0, 9.0), FACTS, NOW).latencies_ms
    found = missed(Objective(p99_ms=bound, p50_ms=1.0), latencies_ms)
    assert len(found) == faults
    assert not faults or found == ["out at 10/s, p99 is 6 ms, the objective 5 ms"]
