"""What `bettong lab run` leaves, what it makes of latencies, and whether an objective is met."""

from __future__ import annotations

import errno
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bettong.errors import LabError
from bettong.lab import spec as run_file
from bettong.lab.folder import RESULTS, RUN_FILE, SERIES, check_writable, results, save
from bettong.lab.measures import Measured
from bettong.lab.results import differences, read
from bettong.lab.run import Repeat
from bettong.lab.series import SeriesPoint
from bettong.lab.spec import KubernetesTable, LoadStep, Objective, RunSpec
from bettong.lab.statistics.comparison import MetricRuns
from bettong.lab.statistics.objective import missed

NOW = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)
SPEC = RunSpec(
    name="Steady, 10/s", application="app.py", load="load.py", steps=[LoadStep(messages_per_s=10, seconds=9)]
)
FAST = RunSpec(name="fast", application="app.py", load="load.py", messages=1_000_000, frame_messages=8192)
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
    found = repeats(5.0, 6.0)
    measured = results(SPEC, found, FACTS, NOW)
    made = save(tmp_path / "out", SPEC, found, measured)
    assert made.name == "2026-11-26T12-00-00Z-steady-10-s"
    assert read(made) == measured
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


ODD = RunSpec.model_validate(
    {
        "name": 'a "name" with \x7f, \\ and \u00fc',
        "application": "app.py",
        "load": "load.py",
        "settings": {"spark_master": "host:9092", "log_level": "\n"},
        "warm_up_s": 0.25,
        "steps": [{"messages_per_s": 0.5, "seconds": 60}, {"messages_per_s": 1e9, "seconds": 1e-5}],
        "objective": {"p99_ms": 5},
        "faults": [
            {"kind": "kill", "targets": ["kafka", "sender"], "every_s": [5, 9]},
            {"kind": "starve", "at_s": [20], "for_s": [1, 2]},
        ],
    }
)


TABLE = RunSpec.model_validate(
    {
        "name": "table",
        "application": "app.py",
        "load": {
            "sources": [
                {"source": "a", "file": 'a "file"\x7f.csv', "disorder_ms": 5},
                {
                    "source": "b",
                    "share": 0.25,
                    "fields": {
                        "key": {"kind": "keys", "count": 9, "skew": 1.5},
                        "an odd name": {"kind": "counter"},
                        "at": {"kind": "time", "start": datetime(2026, 5, 1, tzinfo=UTC), "span_s": 9},
                        "kind": {"kind": "choice", "values": ["x", 1, 2.5, True], "weights": [1, 2, 3, 4]},
                    },
                },
            ],
            "any_order": True,
        },
        "messages": 10,
    }
)


@pytest.mark.parametrize(
    "spec",
    [
        SPEC,
        FAST,
        ODD,
        TABLE,
        FAST.model_copy(update={"kubernetes": KubernetesTable(values=Path("dev.yaml"))}),
    ],
    ids=["steady", "fast", "odd", "table", "cluster"],
)
def test_the_run_file_in_a_folder_says_what_ran(spec: RunSpec, tmp_path: Path) -> None:
    found = repeats(5.0, 6.0)
    made = save(tmp_path, spec, found, results(spec, found, FACTS, NOW))
    assert run_file.read(made / RUN_FILE) == spec.model_copy(update={"repeats": 2})


def test_results_say_all_that_was_asked() -> None:
    asked = results(SPEC, repeats(1.0), FACTS, NOW).asked
    assert {name: asked[name] for name in ("load", "steps", "warm_up_s", "processes", "frame_messages")} == {
        "load": "load.py",
        "steps": "10/s for 9 s",
        "warm_up_s": "5",
        "processes": 1,
        "frame_messages": 500,
    }
    steps = [LoadStep(messages_per_s=0.5, seconds=60), LoadStep(messages_per_s=1_000_000, seconds=7.5)]
    on_cluster = SPEC.model_copy(
        update={"steps": steps, "kubernetes": KubernetesTable(context="bench", images="my/bettong:1")}
    )
    asked = results(on_cluster, repeats(1.0), FACTS, NOW).asked
    assert asked["steps"] == "0.5/s for 60 s, 1,000,000/s for 7.5 s"
    assert asked["kubernetes"] == "context bench"
    asked = results(FAST, repeats(1.0), FACTS, NOW).asked
    assert (asked["messages"], asked["frame_messages"]) == (1_000_000, 8192)
    assert asked.keys().isdisjoint({"steps", "warm_up_s", "kubernetes"})


def test_what_was_asked_differently_is_told_where_two_are_compared() -> None:
    longer = SPEC.over([LoadStep(messages_per_s=20, seconds=9)])
    one, other = (results(each, repeats(1.0), FACTS, NOW) for each in (SPEC, longer))
    assert differences(one, other) == ["settings, steps: 10/s for 9 s before, 20/s for 9 s after"]


def test_a_metric_that_one_repeat_alone_has_is_kept() -> None:
    first, second = repeats(1.0, 2.0)
    del first.measured[0]
    second.measured.insert(0, Measured("GC pauses of kafka, all", "s", 0.5))
    assert results(SPEC, [first, second], FACTS, NOW).metrics == [
        MetricRuns("throughput", "messages/s", (2.0, 4.0)),
        MetricRuns("GC pauses of kafka, all", "s", (0.5,)),
        MetricRuns("out at 10/s, p99", "ms", (2.0,)),
    ]


def test_the_newest_run_of_a_folder_is_meant_by_it(tmp_path: Path) -> None:
    for hour in (1, 2):
        found = repeats(float(hour))
        save(tmp_path / "out", SPEC, found, results(SPEC, found, FACTS, NOW.replace(hour=hour)))
    assert read(tmp_path / "out").metrics[0].values == (2.0,)


@pytest.mark.parametrize(("bound", "faults"), [(5.0, 1), (6.0, 0), (None, 0)])
def test_an_objective_is_judged_by_the_median_of_the_repeats(bound: float | None, faults: int) -> None:
    latencies_ms = results(SPEC, repeats(4.0, 6.0, 9.0), FACTS, NOW).latencies_ms
    found = missed(Objective(p99_ms=bound), latencies_ms, [])
    assert len(found) == faults
    assert not faults or found == ["out at 10/s, p99 is 6 ms, the objective 5 ms"]


def test_an_objective_of_which_nothing_was_measured_is_missed() -> None:
    latencies_ms = results(SPEC, repeats(4.0), FACTS, NOW).latencies_ms
    assert missed(Objective(p50_ms=1, p99_ms=5), latencies_ms, []) == [
        "p50: no latency was measured, the objective is 1 ms"
    ]
    assert missed(Objective(p999_ms=5), {}, []) == ["p99.9: no latency was measured, the objective is 5 ms"]
    assert missed(Objective(), {}, []) == []


def test_an_objective_of_which_a_step_measured_nothing_is_missed() -> None:
    steps = [LoadStep(messages_per_s=rate, seconds=9) for rate in (10, 0, 20)]
    spec = SPEC.model_copy(update={"steps": steps})
    assert results(spec, repeats(4.0), FACTS, NOW).judged_steps == ["at 10/s", "at 20/s"]
    assert missed(Objective(p99_ms=5), {"out at 10/s, p99": [4.0]}, spec.judged_steps) == [
        "at 20/s, p99: no latency was measured, the objective is 5 ms"
    ]


def test_an_objective_is_over_a_thousand_ms_in_plain_numbers() -> None:
    found = missed(Objective(p99_ms=1000), {"out at 10/s, p99": [1752.0]}, [])
    assert found == ["out at 10/s, p99 is 1,752 ms, the objective 1,000 ms"]


def test_runs_whose_names_lead_to_one_folder_get_two(tmp_path: Path) -> None:
    found = repeats(5.0)
    made = [
        save(tmp_path, spec, found, results(spec, found, FACTS, NOW))
        for spec in (SPEC, SPEC.model_copy(update={"name": "Steady: 10/s!"}))
    ]
    assert [each.name for each in made] == [
        "2026-11-26T12-00-00Z-steady-10-s",
        "2026-11-26T12-00-00Z-steady-10-s-2",
    ]


def test_a_folder_that_cannot_be_written_is_told_before_and_after_a_run(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    found = repeats(5.0)
    said = "cannot be written: .*; choose another place by --out"
    for folder in (taken, taken / "below"):
        with pytest.raises(LabError, match=said):
            check_writable(folder)
        with pytest.raises(LabError, match=said):
            save(folder, SPEC, found, results(SPEC, found, FACTS, NOW))
    check_writable(tmp_path / "new" / "er")
    assert [each.name for each in tmp_path.iterdir()] == ["taken"]


def test_of_results_that_do_not_fit_on_the_disk_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pq, "write_table", full)
    found = repeats(5.0)
    with pytest.raises(
        LabError, match="cannot be written: No space left on device; choose another place by --out"
    ):
        save(tmp_path, SPEC, found, results(SPEC, found, FACTS, NOW))
    assert list(tmp_path.iterdir()) == []
