"""`bettong lab history`: steps of a metric, and what is only noise."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bettong.cli.main import app
from bettong.errors import LabError
from bettong.lab.history import histories
from bettong.lab.results import (
    COMMITTED,
    BenchmarkResults,
    MeasuredMetric,
    RunValue,
    asked_alike,
    differences,
    read_all,
)
from bettong.lab.statistics.comparison import ChangeVerdict, compare


def result(
    day: int, values: list[float], name: str = "speed", steps: str = "10/s for 60 s"
) -> BenchmarkResults:
    runs = [RunValue(value=value) for value in values]
    return BenchmarkResults(
        date=f"2026-11-{day:02}T00:00:00+00:00",
        machine={"commit": f"commit-{day}"},
        asked={"run": "steady", "steps": steps},
        measurements=[MeasuredMetric(name=name, unit="messages/s", runs=runs)],
    )


def of_commit(day: int, run_on: int, values: list[float]) -> BenchmarkResults:
    """A run on one day of what was committed on another."""
    found = result(run_on, values)
    committed = result(day, values).date
    return found.model_copy(update={"machine": {"commit": f"commit-{day}", COMMITTED: committed}})


def noisy(drawn: random.Random, true: float) -> list[float]:
    return [true * drawn.lognormvariate(0, 0.03) for _ in range(5)]


def test_a_step_is_found_where_it_came_and_once() -> None:
    drawn = random.Random(5)
    results = [result(day, noisy(drawn, 1e6 if day < 5 else 8e5)) for day in range(1, 10)]
    (found,) = histories(results[::-1])
    assert [(step.commit, step.comparison.verdict) for step in found.steps] == [
        ("commit-5", ChangeVerdict.WORSE)
    ]
    assert len(found.runs) == 9


def test_a_run_of_an_older_commit_counts_where_that_commit_is() -> None:
    """As the side `before` of `bettong lab run --against` is: it was slow then, and nothing became slow today."""
    slow, fast = [100.0, 101.0, 102.0, 103.0, 104.0], [200.0, 201.0, 202.0, 203.0, 204.0]
    measured = [of_commit(1, 2, slow), of_commit(5, 6, fast), of_commit(1, 8, slow), of_commit(7, 8, fast)]
    for order in (measured, measured[::-1]):
        (found,) = histories(order)
        assert [(step.commit, step.comparison.verdict) for step in found.steps] == [
            ("commit-5", ChangeVerdict.BETTER)
        ]
        assert found.runs == (tuple(slow), tuple(slow), tuple(fast), tuple(fast))


def test_the_newest_commit_says_which_results_are_alike_not_the_last_run() -> None:
    newest = of_commit(7, 8, [2.0])
    old = of_commit(1, 9, [1.0]).model_copy(update={"asked": {"run": "steady", "steps": "20/s for 60 s"}})
    alike, left_out = asked_alike([newest, old])
    assert alike == [newest]
    assert len(left_out) == 1


def test_results_of_another_machine_are_left_out() -> None:
    newest = of_commit(7, 8, [2.0])
    slow = of_commit(1, 2, [1.0])
    other = slow.model_copy(update={"machine": slow.machine | {"processor": "slow CPU"}})
    assert asked_alike([other, newest]) == (
        [newest],
        ["1 left out, unlike the newest: machine, processor: slow CPU before, unknown after"],
    )


def test_when_a_commit_was_made_is_no_difference_besides_the_commit() -> None:
    assert differences(of_commit(1, 8, [1.0]), of_commit(7, 8, [1.0])) == [
        "machine, commit: commit-1 before, commit-7 after"
    ]


def test_noise_alone_has_hardly_any_steps() -> None:
    drawn = random.Random(6)
    (found,) = histories([result(day, noisy(drawn, 1e6)) for day in range(1, 21)])
    assert len(found.steps) <= 2


def named(day: int, values: dict[str, list[float]]) -> BenchmarkResults:
    each = [result(day, of_day, name).measurements[0] for name, of_day in values.items()]
    return result(day, [1.0]).model_copy(update={"measurements": each})


def test_a_result_of_many_metrics_is_corrected_for_their_number_as_compare_does() -> None:
    """Of five runs each, one of seven metrics can differ by chance alone; one that stands alone cannot so easily."""
    before, after = [100.0, 101.0, 102.0, 103.0, 104.0], [110.0, 111.0, 112.0, 113.0, 114.0]
    others = {f"metric {number}": [100.0, 104.0, 101.0, 103.0, 102.0] for number in range(6)}
    alone = [named(1, {"speed": before}), named(2, {"speed": after})]
    among = [named(1, {"speed": before} | others), named(2, {"speed": after} | others)]
    assert [len(each.steps) for each in histories(alone)] == [1]
    assert [len(each.steps) for each in histories(among)] == [0] * 7
    found = compare(among[0].metrics, among[1].metrics)
    assert found[0].verdict is ChangeVerdict.TOO_FEW


def test_each_metric_has_a_stretch_of_its_own() -> None:
    uneven = (1.0, 1.01, 0.99, 1.02, 0.98)
    results = [
        named(
            day,
            {
                "a": [each * (1e6 if day < 4 else 5e5) for each in uneven],
                "b": [each * (10 if day < 7 else 30) for each in uneven],
            },
        )
        for day in range(1, 10)
    ]
    assert [[step.commit for step in each.steps] for each in histories(results)] == [
        ["commit-4"],
        ["commit-7"],
    ]


def test_a_metric_that_is_new_has_a_history_of_its_own() -> None:
    older, newer = result(1, [1.0]), result(2, [2.0], name="latency")
    assert [(each.name, each.runs) for each in histories([older, newer])] == [("latency", ((2.0,),))]
    assert histories([]) == []


def test_the_command_shows_the_steps_of_a_run(tmp_path: Path) -> None:
    for day in range(1, 4):
        folder = tmp_path / f"{day}-steady"
        folder.mkdir()
        values = [100.0 * (1 if day < 3 else 2) + number for number in range(5)]
        (folder / "results.json").write_text(result(day, values).model_dump_json())
    said = CliRunner().invoke(app, ["lab", "history", str(tmp_path)], env={"COLUMNS": "120"})
    assert said.exit_code == 0, said.output
    assert "commit-3" in said.output
    assert "better" in said.output
    assert "commit-2" not in said.output
    (metric,) = json.loads(CliRunner().invoke(app, ["lab", "history", str(tmp_path), "--json"]).output)
    assert (metric["name"], metric["runs"][0]) == ("speed", [100.0, 101.0, 102.0, 103.0, 104.0])
    assert [(step["commit"], step["comparison"]["verdict"]) for step in metric["steps"]] == [
        ("commit-3", "better")
    ]


def test_results_that_were_asked_differently_are_left_out_and_named(tmp_path: Path) -> None:
    for day, steps in enumerate(["10/s for 60 s", "20/s for 60 s", "20/s for 60 s", "10/s for 60 s"], 1):
        folder = tmp_path / f"{day}-steady"
        folder.mkdir()
        text = result(day, [100.0 * day], steps=steps).model_dump_json()
        (folder / "results.json").write_text(text)
    said = CliRunner().invoke(app, ["lab", "history", str(tmp_path), "--json"])
    assert said.exit_code == 0, said.output
    (metric,) = json.loads(said.stdout)
    assert metric["runs"] == [[100.0], [400.0]]
    assert said.stderr.splitlines() == [
        "2 left out, unlike the newest: settings, steps: 20/s for 60 s before, 10/s for 60 s after"
    ]


def test_names_of_runs_are_told_apart_though_they_have_commas(tmp_path: Path) -> None:
    for day, name in enumerate(["a, b", "c"], 1):
        folder = tmp_path / f"{day}"
        folder.mkdir()
        named = result(day, [1.0]).model_copy(update={"asked": {"run": name}})
        (folder / "results.json").write_text(named.model_dump_json())
    with pytest.raises(LabError, match="holds the runs 'a, b', 'c': choose one by --run"):
        read_all(tmp_path, None)
    with pytest.raises(LabError, match="no results of d: there are 'a, b', 'c'"):
        read_all(tmp_path, "d")


def test_the_command_says_where_there_is_no_such_run(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["lab", "history", str(tmp_path)]).exit_code != 0
